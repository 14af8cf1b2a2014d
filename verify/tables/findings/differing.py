"""All keys that differ, in full: the file beside the report that `migrator repair` works from.

JSON lines, readable by this user only. The first line says what the file is (``format``, ``migration``, ``tables``:
per target table its key, the compared columns with their types, and how many keys differ and are listed). Each
further line is one key: ``table``, ``status``, ``key``, and the compared cells of both sides as text, null
for a side that has no row. Keys that were set aside aren't in it, because they aren't settled.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Row

from migrator.errors import VerifyError
from verify.report.display import shown
from verify.tables.compare.compare import EXTRA, MISSING, STATUS, key_names
from verify.tables.compare.normalise import kind_of
from verify.tables.result import table_verdict
from verify.tables.rounds.progress import TableProgress

DIFFERING_FORMAT = 1
DIFFERING_FILE = "verify-keys.jsonl"
MOST_LISTED = 100_000
"""Keys listed of one table; the report says how many more differ."""

Values = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class DifferingTable:
    """One target table of the file.

    Attributes:
        table: its name.
        key: its key columns.
        columns: name, declared type and base type of each compared column.
        differ: keys that differ.
        listed: how many of them the file has.
        verdict: of the table; ``unknown`` where keys were set aside, or nothing could be compared.
    """

    table: str
    key: tuple[str, ...]
    columns: tuple[tuple[str, str, str], ...]
    differ: int
    listed: int
    verdict: str


@dataclass(frozen=True, slots=True)
class DifferingKey:
    """One key that differs. ``mapped`` and ``target`` are its cells, in the order of ``DifferingTable.columns``."""

    table: str
    status: str
    key: tuple[str, ...]
    mapped: Values | None
    target: Values | None


@dataclass(frozen=True, slots=True)
class Differing:
    """The whole file."""

    migration: str
    tables: tuple[DifferingTable, ...]
    keys: tuple[DifferingKey, ...]


def write_differing(migration: str, tables: Sequence[TableProgress], path: Path) -> tuple[int, int]:
    """Writes the file; returns how many keys it lists and how many more differ."""
    heads = []
    for table in tables:
        counts = table.counts()
        number = counts.different + counts.missing + counts.extra + counts.duplicate
        columns = tuple((column.name, column.native, column.base) for column in table.columns)
        verdict = table_verdict(counts, table.unknown).value
        listed = min(number, MOST_LISTED)
        heads.append(DifferingTable(table.target.name, table.target.key, columns, number, listed, verdict))
    path.touch(mode=0o600)
    path.chmod(0o600)  # one of an earlier run
    with path.open("w", encoding="utf-8") as file:
        head_line = {"format": DIFFERING_FORMAT, "migration": migration, "tables": [asdict(h) for h in heads]}
        file.write(json.dumps(head_line, ensure_ascii=False) + "\n")
        for table in tables:
            for line in _lines(table):
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
    return sum(head.listed for head in heads), sum(head.differ - head.listed for head in heads)


def _lines(table: TableProgress) -> Iterator[dict[str, Any]]:
    rows, shape = table.differing(), table.shape
    if rows is None or shape is None:
        return
    kinds = {column.name: kind_of(column) for column in table.columns}
    for row in rows.orderBy(*key_names(shape)).limit(MOST_LISTED).toLocalIterator():
        status = row[STATUS]
        yield {
            "table": table.target.name,
            "status": status,
            "key": [shown(kinds[name], row[f"__key_{n}"]) for n, name in enumerate(shape.key)],
            "mapped": None if status == EXTRA else _cells(table, kinds, row, "m"),
            "target": None if status == MISSING else _cells(table, kinds, row, "t"),
        }


def _cells(table: TableProgress, kinds: dict[str, str], row: Row, side: str) -> list[str | None]:
    return [shown(kinds[column.name], row[f"{side}_{n}"]) for n, column in enumerate(table.columns)]


def read_differing(report: Path) -> Differing:
    """The keys that the report of a verification names, from the file beside it.

    Raises ``VerifyError`` for a report of another format, without the file, or that isn't one of ours.
    """
    document = _document(report, _text(report))
    if "differing_file" not in document:
        raise VerifyError(
            "the report doesn't name the keys that differ",
            where=str(report),
            cause=f"its format is {document.get('format')}; they are named from format 2 on",
            remedy="verify again with this version, or name table and keys: migrator repair --table T --key K",
        )
    path = report.parent / str(document["differing_file"])
    # only where the writer ended one: cells may hold U+2028 and the like, which `splitlines` takes for ends as well
    lines = _text(path).removesuffix("\n").split("\n")
    head = _document(path, lines[0])
    if head.get("format") != DIFFERING_FORMAT:
        raise VerifyError(
            "the file of differing keys has another format",
            where=str(path),
            cause=f"its format is {head.get('format')}, this version knows format {DIFFERING_FORMAT}",
            remedy="verify again with this version",
        )
    try:
        return _differing(head, [_document(path, line) for line in lines[1:]])
    except (KeyError, TypeError, ValueError) as error:
        raise _no_report(path, f"a field is missing or has another form: {error}") from error


def _differing(head: dict[str, Any], lines: Sequence[dict[str, Any]]) -> Differing:
    tables = tuple(
        DifferingTable(
            table["table"],
            tuple(table["key"]),
            tuple((name, native, base) for name, native, base in table["columns"]),
            table["differ"],
            table["listed"],
            table["verdict"],
        )
        for table in head["tables"]
    )
    return Differing(head["migration"], tables, tuple(map(_key, lines)))


def _key(line: dict[str, Any]) -> DifferingKey:
    mapped, target = (None if line[side] is None else tuple(line[side]) for side in ("mapped", "target"))
    return DifferingKey(line["table"], line["status"], tuple(line["key"]), mapped, target)


def _text(path: Path) -> str:
    """Reads a file as text; empty if the file isn't there."""
    try:
        return path.read_text("utf-8") if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise _no_report(path, f"it can't be read: {error}") from error


def _document(path: Path, text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
        if isinstance(found, dict):
            return found
        cause = "it holds no object"
    except ValueError as error:
        cause = f"{error}" if text else "there is no such file, or it is empty"
    raise _no_report(path, cause)


def _no_report(path: Path, cause: str) -> VerifyError:
    return VerifyError(
        "this is no report of `migrator verify`",
        where=str(path),
        cause=cause,
        remedy="name the verify.json that the command wrote",
    )
