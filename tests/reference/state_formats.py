"""What a migration leaves in files, nodes, control tables and outputs, as its own writers and schemas have it."""

from __future__ import annotations

import ast
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.adapters.coordination import zookeeper
from migrator.adapters.coordination.zookeeper import leadership
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import StoredPlace, write_place
from migrator.adapters.outputs.json_lines.lines import encode
from migrator.adapters.outputs.parquet_events.output import ParquetFolder
from migrator.columnar import types
from migrator.columnar.events import order_events
from migrator.model import segment
from migrator.model.codecs.codec import manifest_to_json, requests_to_json
from migrator.model.codecs.hint_codec import hint_to_json
from migrator.model.codecs.ledger_codec import ledger_to_json, reset_to_json
from migrator.model.hint import Hint
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import Doubt, DumpRequest, Pace, RequestBook, RequestState, Scope
from migrator.model.segment import FileKind, Manifest, SegmentFile
from migrator.model.table import Column, TableSchema
from migrator.ports.eventlog import ReaderPlace
from tests.reference import ddl, full, records
from tests.reference.blocks import table
from tests.reference.records import Document, attributes, described

PAGE = "reference/formats/file-formats.md"
_NODES: Mapping[str, str] = {
    "epoch": "the highest epoch granted, as digits",
    "leader": "who leads: `format`, `pid`, `host`, `epoch`; ephemeral",
    "standbys": "a node for each process that waits: `format`, `pid`, `host`; ephemeral",
    "requests": "[dump requests](#dump-requests)",
    "progress": "[progress](#progress)",
}
_OF_A_LEDGER = frozenset({"fed", "awaited", "mapped", "filling", "bad_rows", "remaps"})


_RESET = (
    "While a [reset](../../how-to/start-anew.md) isn't finished: `<state>/reset.json` has `format` (1) and `reset`,"
    " a text that says who began it and when; the ledger has"
    f" `{json.dumps(reset_to_json('...'))}` with the same text where its checkpoint was, and with"
    " `besides` where tables beside targets are to be dropped: their names."
)


def lines() -> Iterator[str]:
    """All sections of the page."""
    yield from _event_log()
    yield from _requests_and_progress()
    yield from ("## Reset", "", _RESET, "")
    yield from ("## Nodes of ZooKeeper", "", "Below the migration's node:", "")
    yield from table(("Node", "Holds"), ((f"`{name}`", _node(name)) for name in nodes()))
    yield from ("", "## Tables of the target", "")
    yield from ddl.target_lines()
    yield from _ledger()
    yield from ("## Table of the source", "", 'Only with `placement = "watermark"`.', "")
    yield from ddl.source_lines()
    yield from _outputs()


def nodes() -> list[str]:
    """Names of the nodes below a migration's own, by the calls that ask for their paths or hold a document."""
    folder = Path(str(zookeeper.__file__)).parent
    calls = [
        call
        for file in folder.glob("*.py")
        for call in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(call, ast.Call)
    ]
    names = [call.args[0] for call in calls if getattr(call.func, "attr", "") == "path"]
    names += [call.args[1] for call in calls if getattr(call.func, "id", "") == "Node"]
    return sorted({str(name.value) for name in names if isinstance(name, ast.Constant)})


def _node(name: str) -> str:
    if list(leadership._self()) != ["format", "pid", "host"]:
        raise ValueError("a process tells something else of itself now")
    return _NODES[name]


def _event_log() -> Iterator[str]:
    yield from ("## Event log", "", "`<state>/eventlog`. The manifest's creation makes a segment exist.", "")
    layout = Layout(Path("/"))
    paths = {
        "manifest": layout.manifest(42),
        "data_file": layout.data_file(42, 3, 0),
        "epoch": layout.epoch,
        "released": layout.released,
        "readers": layout.readers,
    }
    yield from table(
        ("Path", "Is"),
        ((f"`{str(path)[1:]}`", records.summary(getattr(Layout, name))) for name, path in paths.items()),
    )
    yield from ("", "A manifest is one line of JSON, and a line with the SHA-256 of the first.", "")
    manifest = manifest_to_json(full.MANIFEST)
    (file,), checkpoint = manifest["files"], manifest["checkpoint"]
    schema = file["schema"]
    yield from records.lines(Document("Manifest", manifest, Manifest, apart=frozenset({"id"})))
    yield from records.lines(Document("Checkpoint", checkpoint, Checkpoint, apart=_OF_A_LEDGER))
    yield from records.lines(Document("Position", checkpoint["position"], Position))
    yield from records.lines(Document("Dump of a table", checkpoint["requests"][0], TableDump))
    kept = {"path": "relative to the event log's folder", "kind": "of the [data file](#data-file)"}
    yield from records.lines(Document("File", file, SegmentFile, kept))
    told = {
        "table": "schema (MySQL, MariaDB: database) and name",
        "key": "names of the key's columns, in order",
    }
    told["columns"] = "[each column](#column), in order"
    # What a mapping needs, and how the server sorts at present, is the affair of each run.
    apart = frozenset({"id", "needed", "order"})
    yield from records.lines(Document("Row schema", schema, TableSchema, told, apart))
    yield from records.lines(Document("Column", schema["columns"][0], Column))
    yield from records.lines(Document("Doubt", manifest["doubts"][0], Doubt))
    yield from _data_files()
    yield from _place()


def _data_files() -> Iterator[str]:
    yield from ("### Data file", "", "Parquet, by the file's `kind`:", "")
    kinds = described(segment, "FileKind")
    yield from table(("Kind", "Columns"), ((f"`{kind.value}`", kinds[kind.name]) for kind in FileKind))
    yield from ("", "Columns of the source, by their logical type:", "")
    logical = {**types._ARROW, "decimal(p,s)": types.arrow_type(Column("", "decimal(12,2)", True, ""))}
    yield from table(
        ("Logical type", "Arrow"),
        ((f"`{name}`", f"`{kind}`".replace("12, 2", "p, s")) for name, kind in logical.items()),
    )
    yield ""


def _place() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        write_place(Path(folder) / "a.json", full.PLACE)
        document = json.loads((Path(folder) / "a.json").read_bytes())
    told = {
        "output": "what the reader writes to, for people",
        "passing": "whether it counts only while the reader runs: standard output",
        "place": "see below",
    }
    yield from records.lines(Document("Place of an output", document, StoredPlace, told))
    yield from records.lines(Document("Place", document["place"], ReaderPlace))


def _requests_and_progress() -> Iterator[str]:
    book = requests_to_json(full.BOOK)
    (request,) = book["requests"]
    yield from (
        "## Dump requests",
        "",
        "`<state>/requests.json`, with the SHA-256 of its line on a second one, or a node.",
        "",
    )
    told = {
        "requests": "each [request](#request), in the order of their start",
        "pace": "the [pace](#pace)",
        "started": "how many were ever started",
    }
    yield from records.lines(Document("Book", book, RequestBook, told))
    told = attributes(Scope) | {"state": ", ".join(f"`{one.value}`" for one in RequestState)}
    yield from records.lines(Document("Request", request, DumpRequest, told, frozenset({"scope"})))
    yield from records.lines(Document("Pace", book["pace"], Pace))
    yield from ("## Progress", "", "`<state>/progress.json`, or a node: what the leader tells onlookers.", "")
    yield from records.lines(Document("Hint", hint_to_json(full.HINT), Hint))


def _ledger() -> Iterator[str]:
    written = ledger_to_json(full.LEDGER, "0f")
    more = {
        name: value
        for name, value in written.items()
        if name not in manifest_to_json(full.MANIFEST)["checkpoint"]
    }
    if _OF_A_LEDGER - more.keys():
        raise ValueError("a ledger's checkpoint has other fields")
    told = {
        "segment_id": "the last applied segment: the SHA-256 of its manifest's line",
        "contents": "per target the fingerprint of what its mapping makes of rows, and what that is taken with",
        "outlines": "per target what its mapping consists of: short digests of columns, of other parts, and of the"
        " types of source columns that it reads",
        "identities": "per target which table it is (PostgreSQL: its number; MySQL, MariaDB: when it was made), and"
        " which the ledger is",
        "written": "targets that rows were written to",
        "holding": "targets that had rows after the last batch that wrote into them",
        "without_rows": "those that had none. Of others nothing is known",
        "parents": "of rows set aside that wait for another one: their target and key, that row's table, columns and"
        " values, and whether it came",
        "grains": "those of `bad_rows` that are grains of joined targets: target, columns of the source, values",
    }
    yield from ("### Checkpoint of a ledger", "", "A [checkpoint](#checkpoint), and:", "")
    known = frozenset(Checkpoint.__dataclass_fields__)
    yield from list(records.lines(Document("", more, Checkpoint, told, known)))[2:]


def _outputs() -> Iterator[str]:
    rows = order_events([(full.SCHEMA, FileKind.LOG, full.IMAGES)])[0][1]
    line = json.loads(encode(full.events(rows)))
    yield from ("## Outputs of `migrator events`", "", "What the fields mean: [events.md](../events.md).", "")
    yield from ("### JSON lines", "", "An event, one line in the file:", "", "```json")
    parts = (f'"{name}": {json.dumps(value)}' for name, value in line.items())
    yield from (f"{{{', '.join(parts)}}}".replace(', "source"', ',\n "source"'), "```", "", "### Parquet", "")
    yield from table(
        ("Column", "Type"),
        ((f"`{one.name}`", f"`{_shown(one.type)}`") for one in _parquet(full.events(rows))),
    )
    yield ""


def _parquet(events: Any) -> pa.Schema:
    with tempfile.TemporaryDirectory() as folder:
        output = ParquetFolder(Path(folder))
        output.open(None)
        output.write(events)
        output.commit(events.segment)
        (file,) = Path(folder).rglob("*.parquet")
        return pq.read_schema(file)


def _shown(kind: pa.DataType) -> str:
    """A type, with that of the table's own columns left open."""
    return "struct of the table's columns" if pa.types.is_struct(kind) else str(kind)
