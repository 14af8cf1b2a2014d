"""Sequences of a PostgreSQL target: of identity columns, of serial columns, and others that a default names."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql

from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.errors import TargetError
from migrator.model.sequence import Advance, NumberSequence
from migrator.model.table import TableId

# A sequence belongs to a column (identity: i, serial: a), or the column's default names it. A sequence may fill
# columns of other tables too: they count, mapped or not. Of a partitioned table the root stands for all.
_FOUND: LiteralString = """
WITH used AS (
    SELECT d.objid AS sequence, d.refobjid AS relation, d.refobjsubid AS number
    FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class s ON s.oid = d.objid AND s.relkind = 'S'
    WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
      AND d.refobjsubid > 0 AND d.deptype IN ('a', 'i')
    UNION
    SELECT d.refobjid, f.adrelid, f.adnum
    FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
    JOIN pg_catalog.pg_attrdef f ON f.oid = d.objid
    WHERE d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.refclassid = 'pg_catalog.pg_class'::regclass
), wanted AS (
    SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = %(schema)s AND c.relname = ANY(%(names)s) AND c.relkind IN ('r', 'p')
)
SELECT sn.nspname, s.relname, q.seqincrement, q.seqmin, q.seqmax, q.seqcycle, n.nspname, c.relname, a.attname,
       CASE WHEN t.typtype = 'd' THEN b.typname ELSE t.typname END,
       COALESCE(pg_catalog.pg_get_expr(f.adbin, f.adrelid), '')
FROM used u JOIN pg_catalog.pg_sequence q ON q.seqrelid = u.sequence
JOIN pg_catalog.pg_class s ON s.oid = u.sequence JOIN pg_catalog.pg_namespace sn ON sn.oid = s.relnamespace
JOIN pg_catalog.pg_class c ON c.oid = u.relation JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = u.relation AND a.attnum = u.number
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid LEFT JOIN pg_catalog.pg_type b ON b.oid = t.typbasetype
LEFT JOIN pg_catalog.pg_attrdef f ON f.adrelid = u.relation AND f.adnum = u.number
WHERE u.sequence IN (SELECT sequence FROM used JOIN wanted ON oid = relation)
  AND (NOT c.relispartition OR c.oid IN (SELECT oid FROM wanted))
ORDER BY sn.nspname, s.relname, n.nspname, c.relname, a.attnum
"""
# The name is only known when the default is computed: no catalog says which sequence that will be.
_HIDDEN: LiteralString = """
SELECT c.relname, a.attname, pg_catalog.pg_get_expr(f.adbin, f.adrelid)
FROM pg_catalog.pg_attrdef f JOIN pg_catalog.pg_class c ON c.oid = f.adrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = f.adrelid AND a.attnum = f.adnum
WHERE n.nspname = %(schema)s AND c.relname = ANY(%(names)s)
  AND pg_catalog.pg_get_expr(f.adbin, f.adrelid) LIKE '%%nextval(%%'
  AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
                  JOIN pg_catalog.pg_class s ON s.oid = d.refobjid AND s.relkind = 'S'
                  WHERE d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = f.oid)
ORDER BY c.relname, a.attname
"""
_BOUNDS = {"int2": 15, "int4": 31, "int8": 63}


@dataclass(frozen=True, slots=True)
class _Found:
    """A sequence with the columns it fills, before its value is known."""

    id: TableId
    step: int
    least: int
    greatest: int
    cycles: bool
    columns: tuple[tuple[TableId, str, str, str], ...]


class PostgresNumbers:
    """``ports.sequences.TargetNumbers`` on PostgreSQL."""

    def __init__(self, settings: PostgresTarget):
        self._settings = settings

    def find(self, tables: Sequence[str]) -> list[NumberSequence]:
        """See the port."""
        parameters = {"schema": self._settings.server.schema, "names": list(tables)}
        with catalog(self._settings) as connection, _refused(self._settings):
            known: dict[tuple[Any, ...], list[tuple[TableId, str, str, str]]] = {}
            for row in connection.execute(_FOUND, parameters).fetchall():
                column = (TableId(row[6], row[7]), *row[8:11])
                known.setdefault(row[:6], []).append(column)
            found = [
                _Found(TableId(schema, name), step, least, greatest, cycles, tuple(columns))
                for (schema, name, step, least, greatest, cycles), columns in known.items()
            ]
            hidden = connection.execute(_HIDDEN, parameters).fetchall()
            return [*(_read(connection, sequence) for sequence in found), *(_unseen(*row) for row in hidden)]

    def statement(self, advance: Advance) -> str:
        """Compares and sets in one statement, so that no value is taken in between but by a hair's breadth."""
        name, step = advance.sequence.name, advance.sequence.step
        literal = name.replace("'", "''")
        compared = "<" if step > 0 else ">"
        return (
            f"SELECT pg_catalog.setval('{literal}', {advance.following}, false) FROM {name}"
            f" WHERE last_value::numeric + CASE WHEN is_called THEN {step} ELSE 0 END {compared} {advance.following}"
        )

    def move(self, advances: Sequence[Advance]) -> None:
        """See the port. Values that sessions have cached already are theirs: PostgreSQL can't take them back."""
        with catalog(self._settings) as connection:
            for advance in advances:
                with _refused(self._settings):
                    connection.execute(self.statement(advance).encode())


def _read(connection: psycopg.Connection[Any], found: _Found) -> NumberSequence:
    """The values held are read before the sequence's own: one given out in between is behind the latter then."""
    held: list[int] = []
    least, greatest, problem, remedy = found.least, found.greatest, "", ""
    far = sql.SQL("max") if found.step > 0 else sql.SQL("min")
    for table, column, kind, default in found.columns:
        where = f"column {table}.{column}"
        if kind not in _BOUNDS and kind != "numeric":
            problem = f"{where} is of type {kind}: how far its values have got can't be told"
        elif default and not _plain(default):
            problem = f"{where} computes with its value: {default}"
        else:
            if kind in _BOUNDS:
                least = max(least, -(2 ** _BOUNDS[kind]))
                greatest = min(greatest, 2 ** _BOUNDS[kind] - 1)
            query = sql.SQL("SELECT {}({})::numeric FROM {}").format(
                far, sql.Identifier(column), sql.Identifier(table.schema, table.name)
            )
            [value] = connection.execute(query).fetchone() or (None,)
            if value is not None and value.is_finite():
                held.append(math.ceil(value) if found.step > 0 else math.floor(value))
    name = qualified(found.id)
    if problem:
        remedy = f"set it by hand: SELECT setval('{name}', ...)"
    [last, called] = connection.execute(
        sql.SQL("SELECT last_value, is_called FROM {}").format(sql.Identifier(found.id.schema, found.id.name))
    ).fetchone() or (0, False)
    return NumberSequence(
        name=name,
        kind="sequence",
        columns=tuple((table.name, column) for table, column, _, _ in found.columns),
        following=last + found.step if called else last,
        step=found.step,
        least=least,
        greatest=greatest,
        cycles=found.cycles,
        held=(max(held) if found.step > 0 else min(held)) if held else None,
        problem=problem,
        remedy=remedy,
    )


def _plain(default: str) -> bool:
    """Tells whether a default is the sequence's next value and nothing else, casts aside."""
    inner, _, rest = default.strip("(").partition("::regclass)")
    return inner.startswith("nextval('") and all(
        part.strip(")") in ("", "integer", "smallint", "bigint", "numeric") for part in rest.split("::")
    )


def _unseen(table: str, column: str, default: str) -> NumberSequence:
    return NumberSequence(
        name=f"{quoted(table)}.{quoted(column)}",
        kind="sequence",
        columns=((table, column),),
        following=0,
        step=1,
        least=0,
        greatest=0,
        cycles=False,
        held=None,
        problem=f"its default finds the sequence when it runs: {default}",
        remedy="set that sequence by hand, or write the default as nextval('...'::regclass)",
    )


@contextmanager
def _refused(settings: PostgresTarget) -> Iterator[None]:
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        role = quoted(settings.server.user)
        raise TargetError(
            "the target's sequences can't be read or set",
            where=settings.server.address,
            cause=str(error).partition("\n")[0],
            remedy=f"{sequence_grant(settings)}; SELECT on tables beside the migration's that share a sequence, to"
            f" {role}; or run `migrator sequences` as their owner",
        ) from None


def sequence_grant(settings: PostgresTarget) -> str:
    """The grant for reading and setting sequences."""
    schema, role = quoted(settings.server.schema), quoted(settings.server.user)
    return f"GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}"
