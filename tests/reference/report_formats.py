"""What commands report, as JSON schemas and records have it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from migrator.model.codecs.reads_codec import reads_to_json
from migrator.model.cutover.reads import ReadShape
from tests.reference import full, records
from tests.reference.blocks import table
from tests.reference.records import Document, as_json
from verify.tables.coverage import Coverage, TableCoverage, write_coverage
from verify.tables.findings.differing import DifferingKey, DifferingTable

PAGE = "reference/formats/report-formats.md"
SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"
_TYPES = {
    "string": "text", "integer": "whole number", "number": "number", "boolean": "true or false", "object": "object",
    "null": "null",
}  # fmt: skip
_REPORTS = {"verify": "verify.json", "repair": "repair.json", "dual-read": "dual-read.json"}


def lines() -> Iterator[str]:
    """All sections of the page."""
    for name, file in _REPORTS.items():
        yield from _schema(file, json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8")))
        if name == "verify":
            yield from _differing()
    yield from _dual_reads()
    yield from _coverage()


def _dual_reads() -> Iterator[str]:
    told = (
        "Results of dual reads in the state folder, for [the gate of reads](../../how-to/cut-over.md#reads-first):"
        " `format` (1) and `shapes`, a list:"
    )
    yield from ("## reads.json", "", told, "")
    (document,) = reads_to_json(full.READS)["shapes"]
    yield from records.lines(Document("Result of a pair of queries", document, ReadShape))


def _schema(file: str, schema: Mapping[str, Any]) -> Iterator[str]:
    link = f"../../schemas/{file.replace('.json', '.schema.json')}"
    told = " ".join(schema["description"].split())
    yield from (f"## {file}", "", f"{told} The same for programs: [{Path(link).name}]({link}).", "")
    yield from _fields(schema, file)
    for name, kind in schema.get("$defs", {}).items():
        yield from (f"### {file}: {name}", "", kind["description"], "")
        yield from _fields(kind, file)


def _fields(kind: Mapping[str, Any], file: str) -> Iterator[str]:
    yield from table(
        ("Field", "Value", "Meaning"),
        (
            (f"`{name}`", _value(field, file), field["description"])
            for name, field in kind["properties"].items()
        ),
    )
    yield ""


def _value(field: Mapping[str, Any], file: str) -> str:
    """What a schema lets a value be, in words."""
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return " or ".join(f"`{json.dumps(one)}`" for one in field["enum"])
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_value(one, file) for one in field["anyOf"]))
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{file.replace('.', '')}-{name.lower()})"
    if isinstance(field.get("type"), list):
        return " or ".join(_value({**field, "type": one}, file) for one in field["type"])
    if "prefixItems" in field:
        return f"({', '.join(_value(one, file) for one in field['prefixItems'])})"
    if field.get("type") == "array":
        return f"list of {_value(field['items'], file)}" if "items" in field else "list"
    return _TYPES[field["type"]]


def _differing() -> Iterator[str]:
    """The file of keys beside the report: heads are written by ``asdict``, lines have the fields of their record."""
    yield from (
        "## verify-keys.jsonl",
        "",
        "One line that says what the file is, then a line for each key that differs.",
        "",
    )
    told = {"tables": "what stands below for each target table", "migration": "its name"}
    head = {"format": 1, "migration": "", "tables": [{}]}
    yield from table(
        ("First line", "Meaning"), ((f"`{name}`", {**told, **records.OWN}[name]) for name in head)
    )
    yield ""
    of_table = asdict(DifferingTable("item", ("id",), (("id", "bigint", "bigint"),), 1, 1, "different"))
    yield from records.lines(Document("A table in it", as_json(of_table), DifferingTable))
    told = {
        "table": "its name",
        "status": "`different`, `missing`, `extra` or `duplicate`",
        "key": "values of the key columns",
        "mapped": "cells of mapping(source), in the order of the table's columns; null: there is no such row",
        "target": "the same of the target",
    }
    of_key = asdict(DifferingKey("item", "different", ("7",), ("7",), ("7",)))
    yield from records.lines(Document("Each further line", as_json(of_key), DifferingKey, told))


def _coverage() -> Iterator[str]:
    yield from ("## coverage.json", "", "What the verifier of `run --verify` keeps.", "")
    with tempfile.TemporaryDirectory() as folder:
        write_coverage(Coverage((TableCoverage("item"),)), Path(folder))
        written = json.loads((Path(folder) / "coverage.json").read_text("utf-8"))
    told = {
        "tables": "each table's",
        "problem": "why the verifier doesn't work, or empty",
        "at_us": "when it told last, microseconds since 1970",
    }
    yield from records.lines(Document("All tables", written, Coverage, told))
    yield from records.lines(Document("A table", written["tables"][0], TableCoverage))
