"""Tries rows on a PostgreSQL target, in a temporary copy of the table that nobody else sees."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa

from migrator.adapters.targets.postgres.refusal import Refusal
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.prepared import prepare
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.rows.writer import BatchWriter, DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.rows import renamed
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.ports.target import TargetRows

_COPY = TableId("pg_temp", "migrator_dry_run")
_OID = "'pg_temp.migrator_dry_run'::pg_catalog.regclass"
_NO_PARTITION = "no_partition_for_the_row"
_DEFAULTS = (
    "SELECT a.attname::text, pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) d.adrelid"
    " AND a.attnum OPERATOR(pg_catalog.=) d.adnum WHERE d.adrelid OPERATOR(pg_catalog.=) $1::pg_catalog.regclass"
    " AND a.attgenerated OPERATOR(pg_catalog.=) ''"
)
_DOMAINS = (
    "SELECT a.attname::text, pg_catalog.format_type(t.typbasetype, t.typtypmod) FROM pg_catalog.pg_attribute a"
    " JOIN pg_catalog.pg_type t ON t.oid OPERATOR(pg_catalog.=) a.atttypid"
    f" WHERE a.attrelid OPERATOR(pg_catalog.=) {_OID} AND t.typtype OPERATOR(pg_catalog.=) 'd'"
)
_CONDITIONS = (
    "SELECT c.conname::text, ARRAY(SELECT a.attname::text FROM pg_catalog.pg_attribute a WHERE a.attrelid"
    " OPERATOR(pg_catalog.=) c.conrelid AND a.attnum OPERATOR(pg_catalog.=) ANY (c.conkey))"
    f" FROM pg_catalog.pg_constraint c WHERE c.conrelid OPERATOR(pg_catalog.=) {_OID}"
    " AND c.contype OPERATOR(pg_catalog.=) 'c'"
)
_PARTITIONS = (
    "SELECT pg_catalog.pg_get_partition_constraintdef(i.inhrelid) FROM pg_catalog.pg_inherits i"
    " JOIN pg_catalog.pg_class c ON c.oid OPERATOR(pg_catalog.=) i.inhrelid"
    " WHERE i.inhparent OPERATOR(pg_catalog.=) $1::pg_catalog.regclass AND c.relispartition"
)
_CONSTANT = re.compile(
    r"(?:'(?:[^']|'')*'|-?\d[\d.]*|\(-\d[\d.]*\)|true|false|NULL)"
    r"(?:::[\w\". ]+(?:\(\d+(?:,\d+)?\))?(?:\[\])*)*",
    re.IGNORECASE,
)
"""A default that no function makes: trying it moves no sequence."""


def refused(
    settings: PostgresTarget, structure: Structure, rows: pa.Table, untried: Collection[str]
) -> TargetError | None:
    """Returns the error with which the table's types and conditions refuse rows; None if they take them.

    Foreign keys aren't asked, nor rows that the table has, nor what depends on ``untried`` columns. Raises
    ``ConnectionFailed``, ``TargetError`` where rows can't be tried, the session's ``ConnectionLost``.
    """
    copy = replace(
        structure,
        table=replace(structure.table, id=_COPY),
        outgoing=(),
        incoming=(),
        exclusive=frozenset(),
        deferrable=False,
    )
    session = Session(settings)
    try:
        session.run("BEGIN")
        _make_copy(session, structure, rows.column_names, untried)
        staging = StagingTables(session)
        staging.begin()
        prepared = prepare(copy, TargetRows(copy.table, None, None, rows, True), staging)
        if prepared is not None:
            BatchWriter(session, settings.server.user, DirectLoads(), {_COPY: copy}).insert(prepared)
    except TargetError as error:
        return renamed(error, _COPY, structure.table.id)
    except Refusal as refusal:
        raise TargetError(
            "the target can't try rows", where=str(structure.table.id), cause=refusal.cause()
        ) from None
    finally:
        session.close()
    return None


def _make_copy(
    session: Session, structure: Structure, written: Collection[str], untried: Collection[str]
) -> None:
    """Makes the copy, without what depends on columns that nobody knows a value for.

    These are columns that the rows don't have and that are ``untried`` or whose default isn't a constant: they stay
    empty in the copy, and what the table asks of them is left out. A row is also asked for its partition, which the
    copy doesn't have.
    """
    original = qualified(structure.table.id)
    session.run(
        f"CREATE TEMPORARY TABLE {_COPY.name} (LIKE {original} INCLUDING CONSTRAINTS INCLUDING GENERATED)"
    )
    change = f"ALTER TABLE {qualified(_COPY)}"
    left = {column.name: column for column in structure.table.columns if column.name not in written}
    for name, default in session.rows(_DEFAULTS, [original]):
        if name in left and name not in untried and _CONSTANT.fullmatch(default):
            session.run(f"{change} ALTER {quoted(name)} SET DEFAULT {default}")
            del left[name]
    if all(column.generated for column in left.values()):
        left.clear()
    for name, columns in session.rows(_CONDITIONS):
        if not left.keys().isdisjoint(columns):
            session.run(f"{change} DROP CONSTRAINT {quoted(name)}")
    for name, column in left.items():
        if not column.nullable:
            session.run(f"{change} ALTER {quoted(name)} DROP NOT NULL")
    for name, base in session.rows(_DOMAINS) if left else ():
        if name in left and not left[name].generated:
            session.run(f"{change} ALTER {quoted(name)} TYPE {base}")
    partitions = [condition for (condition,) in session.rows(_PARTITIONS, [original])]
    if partitions and all(partitions):  # a default partition that stands alone has no condition
        rule = " OR ".join(f"({condition})" for condition in partitions)
        session.run(f"{change} ADD CONSTRAINT {_NO_PARTITION} CHECK ({rule})")
