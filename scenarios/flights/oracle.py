"""An independent judge of the demo: what the new tables must hold, computed in plain SQL from the old ones.

It shares no code with ``mapping.py``. The old rows are only read: they are copied into temporary tables of a
session on the new database's server, where ``oracle_facts.sql`` and ``oracle.sql`` work on them, for either
old engine.
"""

from __future__ import annotations

import functools
import re
import uuid
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from migrator.errors import VerifyError
from scenarios.database import Connection, Database
from scenarios.flights.dataset import TABLES

FOLDER = Path(__file__).parent

_NAMESPACES = {
    "carrier": uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a01"),
    "place": uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a02"),
    "aircraft": uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a03"),
    "flight": uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a04"),
    "directory": uuid.UUID("6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a05"),
}
_COPY_HERE = "-- copy: here the rows come in\n"
_TARGET = re.compile(r"^-- new table: (\w+)\n(.*?);$", re.MULTILINE | re.DOTALL)
_FETCH_ROWS = 20_000

Row = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that is on one side only. A changed row makes two of them.

    Attributes:
        table: new table.
        side: ``missing`` if the new database lacks the row, ``extra`` if it should not have it.
        columns: names of the values.
        row: the values as PostgreSQL's text; None is NULL.
    """

    table: str
    side: str
    columns: tuple[str, ...]
    row: Row

    def __str__(self) -> str:
        values = ", ".join(f"{name}={value}" for name, value in zip(self.columns, self.row, strict=True))
        return f"{self.side} in {self.table}: {values}"


def targets() -> tuple[str, ...]:
    """The new tables that the oracle judges: all of them, parents first."""
    return tuple(found[1] for found in _TARGET.finditer(_oracle()))


def differences(old: Database, new: Database, *, schema: str | None = None) -> list[Difference]:
    """All rows in which the new tables are not what the old ones say they must be; empty if they agree.

    Both databases must stand still, or the new one be known to hold exactly what is committed in the old one.

    Args:
        old: the old database, of either engine; only read.
        new: the new database; only a session's temporary tables are made in it.
        schema: the new tables' schema, if it isn't ``new.schema``.

    Raises:
        VerifyError: the old database has no flights at all, so agreement would mean nothing.
    """
    found: list[Difference] = []
    with new.postgres() as session:
        _prepare(old, session)
        for match in _TARGET.finditer(_oracle()):
            table, query = match[1], match[2]
            columns, expected = _expected(session, query)
            names = sql.SQL(", ").join(map(sql.Identifier, columns))
            source = sql.SQL("{}.{}").format(sql.Identifier(schema or new.schema), sql.Identifier(table))
            actual = Counter(_copy(session, sql.SQL("SELECT {} FROM {}").format(names, source)))
            found += [Difference(table, "missing", columns, row) for row in (expected - actual).elements()]
            found += [Difference(table, "extra", columns, row) for row in (actual - expected).elements()]
        session.rollback()
    return found


def expected_rows(old: Database, scratch: Database) -> dict[str, tuple[tuple[str, ...], Counter[Row]]]:
    """Columns and rows that every new table must have, as PostgreSQL's text.

    Args:
        old: the old database.
        scratch: any PostgreSQL database in which temporary tables may be made.
    """
    with scratch.postgres() as session:
        _prepare(old, session)
        expected = {match[1]: _expected(session, match[2]) for match in _TARGET.finditer(_oracle())}
        session.rollback()
    return expected


def _oracle() -> str:
    return (FOLDER / "oracle.sql").read_text(encoding="utf-8")


def _prepare(old: Database, session: psycopg.Connection[tuple[Any, ...]]) -> None:
    tables, facts = (FOLDER / "oracle_facts.sql").read_text(encoding="utf-8").split(_COPY_HERE)
    session.execute("SET LOCAL search_path = pg_temp, pg_catalog")
    session.execute(tables.encode())
    reader = old.connect()
    try:
        isolation = "START TRANSACTION WITH CONSISTENT SNAPSHOT"
        if old.kind == "postgresql":
            isolation = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
        reader.cursor().execute(isolation)
        counts = {table: _copy_old(reader, session, table) for table in TABLES}
    finally:
        reader.close()
    if not counts["flights"]:
        raise VerifyError(
            "the old database has no flights, so there is nothing to judge",
            where=f"{old.host}:{old.port}/{old.database}",
            remedy="load it with scenarios.flights.old_schema",
        )
    session.execute(facts.encode())


def _copy_old(reader: Connection, session: psycopg.Connection[tuple[Any, ...]], table: str) -> int:
    columns = [
        row[0]
        for row in session.execute(
            "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 ORDER BY attnum",
            [f"pg_temp.{table}"],
        )
    ]
    cursor = reader.cursor()
    names = ", ".join(f'"{name}"' for name in columns)
    cursor.execute(f'SELECT {names} FROM "{table}"')
    rows = cursor.fetchall()
    with session.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(table))) as copy:
        for row in rows:
            copy.write_row(row)
    return len(rows)


def _expected(
    session: psycopg.Connection[tuple[Any, ...]], query: str
) -> tuple[tuple[str, ...], Counter[Row]]:
    described = session.execute(f"SELECT * FROM ({query}) AS q LIMIT 0".encode()).description
    columns = tuple(column.name for column in described or ())
    ids = [index for index, name in enumerate(columns) if name.endswith("_id")]
    rows: Counter[Row] = Counter()
    for row in _copy(session, sql.SQL(query)):
        values = list(row)
        for index in ids:
            values[index] = _identifier(values[index])
        rows[tuple(values)] += 1
    return columns, rows


@functools.lru_cache(maxsize=500_000)
def _identifier(text: str | None) -> str | None:
    """``kind:name`` as the UUID it stands for; derived numbers as they are."""
    kind, colon, name = (text or "").partition(":")
    return str(uuid.uuid5(_NAMESPACES[kind], name)) if colon else text


def _copy(session: psycopg.Connection[tuple[Any, ...]], query: sql.Composable) -> Iterator[Row]:
    with session.cursor().copy(sql.SQL("COPY ({}) TO STDOUT").format(query)) as copy:
        for row in copy.rows():
            yield tuple(row)
