"""Statements that would make a target equal to the mapped rows, for users who want to read and run them.

Each statement is guarded by the row as the judge saw it, so a row that the pipeline has changed since is left alone
(0 rows). The statements know nothing of the stream, unlike `migrator repair --apply`. Rows that reference others are
removed before them and inserted after them, so that foreign keys hold at each statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from migrator.errors import VerifyError
from verify.readers.engines import JUDGED
from verify.readers.statements import Statements
from verify.tables.compare.compare import DIFFERENT, EXTRA, MISSING
from verify.tables.findings.differing import Differing, DifferingKey, DifferingTable

_UNGUARDED = ("json", "jsonb", "xml", "float4", "float")
"""Types that have no equality, or whose text isn't the value: left out of the guard."""


def write_fix_sql(
    differing: Differing, kind: str, schema: str, path: Path, children_first: Sequence[str] = ()
) -> int:
    """Writes the statements, readable by this user only; returns their number.

    Args:
        differing: keys and both sides' cells.
        kind: the target's engine (``verify.readers.engines.JUDGED``).
        schema: of the target tables, on PostgreSQL.
        path: the file. Raises ``VerifyError`` if it can't be written.
        children_first: the tables that differ, each before the tables that it references; empty: in any order.
    """
    dialect = JUDGED[kind].statements(schema)
    number = 0
    try:
        path.touch(mode=0o600)
        path.chmod(0o600)
        with path.open("w", encoding="utf-8") as file:
            file.write(
                f"-- migration {differing.migration}: read before running; a row changed since is left alone\n"
            )
            file.write(dialect.begin)
            for table, key in _ordered(differing, children_first):
                for line in _statement(dialect, table, key):
                    file.write(line + "\n")
                    number += not line.startswith("--")
            file.write("COMMIT;\n")
    except OSError as error:
        raise VerifyError(
            "the file of statements can't be written",
            where=str(path),
            cause=error.strerror or str(error),
            remedy="name a file in a folder that is there and may be written to",
        ) from error
    return number


def _ordered(
    differing: Differing, children_first: Sequence[str]
) -> Iterator[tuple[DifferingTable, DifferingKey]]:
    """Yields the rows that are removed, children first; then all others, parents first."""
    rank = {name: place for place, name in enumerate(children_first)}
    tables = sorted(differing.tables, key=lambda table: rank.get(table.table, 0))
    for removed in (True, False):
        for table in tables if removed else reversed(tables):
            for key in differing.keys:
                if key.table == table.table and (key.status == EXTRA) == removed:
                    yield table, key


def _statement(dialect: Statements, table: DifferingTable, key: DifferingKey) -> Iterator[str]:
    names = [name for name, _, _ in table.columns]
    shown = ", ".join(f"{n}={v}" for n, v in zip(table.key, key.key, strict=True))
    yield "-- " + _one_line(f"{key.status}: {table.table} {shown}")
    if key.status == MISSING and key.mapped is not None:
        values = ", ".join(
            dialect.literal(value, base)
            for value, (_, _, base) in zip(key.mapped, table.columns, strict=True)
        )
        columns = ", ".join(map(dialect.name, names))
        yield dialect.insert(table.table, table.key[0], columns, values)
    elif key.status == EXTRA and key.target is not None:
        yield f"DELETE FROM {dialect.table(table.table)} WHERE {_guard(dialect, table, key.target)};"
    elif key.status == DIFFERENT and key.mapped is not None and key.target is not None:
        cells = zip(table.columns, key.mapped, key.target, strict=True)
        sets = ", ".join(
            f"{dialect.name(name)} = {dialect.literal(new, base)}"
            for (name, _, base), new, old in cells
            if new != old
        )
        yield f"UPDATE {dialect.table(table.table)} SET {sets} WHERE {_guard(dialect, table, key.target)};"
    else:
        yield "-- no statement can choose between the mapping's rows: correct the mapping"


def _one_line(text: str) -> str:
    """Replaces characters that end a comment, or that clients and terminals act upon, by spaces."""
    return "".join(character if character.isprintable() else " " for character in text)


def _guard(dialect: Statements, table: DifferingTable, target: tuple[str | None, ...]) -> str:
    """The row exactly as it was seen, its key first."""
    cells = list(zip(table.columns, target, strict=True))
    ordered = [cell for cell in cells if cell[0][0] in table.key] + [
        cell for cell in cells if cell[0][0] not in table.key and cell[0][2] not in _UNGUARDED
    ]
    return " AND ".join(
        f"{dialect.name(name)} = {dialect.literal(value, base)}"
        if name in table.key
        else dialect.same(dialect.name(name), dialect.literal(value, base))
        for (name, _, base), value in ordered
    )
