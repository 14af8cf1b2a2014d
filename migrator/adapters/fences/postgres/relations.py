"""The relations of a fence: the plan's tables with their partitions and heirs; and who is at work on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.adapters.fences.postgres.session import SESSION_ID, PostgresFenceSession
from migrator.errors import CutoverError
from migrator.model.cutover.fence import OpenTransaction
from migrator.model.table import TableId

ROOTS = (
    "WITH RECURSIVE named AS (SELECT * FROM ROWS FROM (pg_catalog.unnest(%s::text[]), pg_catalog.unnest(%s::text[]))"
    " AS one(schema, name)),"
    " family AS (SELECT c.oid, c.oid AS root FROM named JOIN pg_catalog.pg_namespace n ON n.nspname = named.schema"
    " JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = named.name"
    " UNION SELECT i.inhrelid, f.root FROM family f JOIN pg_catalog.pg_inherits i ON i.inhparent = f.oid)"
)
"""Begins a query with ``family``: the plan's tables and all below them, by two values of names."""
_RELATIONS = (
    ROOTS + " SELECT DISTINCT c.oid::bigint, n.nspname::text, c.relname::text, c.relkind::text,"
    " c.relispartition AND EXISTS (SELECT FROM pg_catalog.pg_inherits i JOIN family p ON p.oid = i.inhparent"
    " WHERE i.inhrelid = c.oid)"
    " FROM family f JOIN pg_catalog.pg_class c ON c.oid = f.oid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace ORDER BY 2, 3"
)
_AT_WORK = (
    ROOTS + " SELECT DISTINCT coalesce(" + SESSION_ID.format("a.") + ", p.gid),"
    " coalesce(a.usename, p.owner)::text, coalesce(a.xact_start, p.prepared)::text,"
    " coalesce(pg_catalog.left(a.query, 200), 'a prepared transaction'), p.gid IS NOT NULL"
    " FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
    " LEFT JOIN pg_catalog.pg_locks x ON l.pid IS NULL AND x.pid IS NULL AND x.locktype = 'transactionid'"
    " AND x.virtualtransaction = l.virtualtransaction"
    " LEFT JOIN pg_catalog.pg_prepared_xacts p ON p.transaction = x.transactionid"
    " WHERE l.locktype = 'relation' AND l.granted AND l.relation IN (SELECT oid FROM family)"
    " AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())"
    " AND l.pid IS DISTINCT FROM pg_catalog.pg_backend_pid()"
    " AND coalesce(a.backend_type, '') <> 'autovacuum worker' AND l.mode = ANY(%s)"
    " AND coalesce(a.usename, p.owner, '') <> %s"
    # One whose beginning the server hides from us counts: it may have begun before.
    " AND (p.gid IS NOT NULL OR (a.pid IS NOT NULL AND a.backend_start IS NULL)"
    " OR extract(epoch FROM a.xact_start) <= coalesce(%s, 'infinity'::float8)) ORDER BY 3"
)
WRITING = ("RowExclusiveLock", "ShareRowExclusiveLock", "ExclusiveLock", "AccessExclusiveLock")
"""Locks of transactions that have changed rows, or are about to."""
HOLDING = ("AccessShareLock", "RowShareLock", "ShareUpdateExclusiveLock", "ShareLock", *WRITING)
"""Locks that keep a trigger from being dropped."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A table of the fence.

    Attributes:
        oid: the server's number.
        table: its name.
        kind: ``r`` for a table, ``p`` for a partitioned one, and so on (``pg_class.relkind``).
        below: whether it is a partition of another one of them, which its row triggers come from.
    """

    oid: int
    table: TableId
    kind: str
    below: bool


def names(tables: Sequence[TableId]) -> tuple[list[str], list[str]]:
    """The values of ``ROOTS``."""
    return [table.schema for table in tables], [table.name for table in tables]


def relations(session: PostgresFenceSession, tables: Sequence[TableId]) -> list[Relation]:
    """The tables, their partitions and heirs. Raises ``CutoverError`` for a table that isn't there."""
    found = [
        Relation(int(oid), TableId(schema, name), kind, below)
        for oid, schema, name, kind, below in session.rows(_RELATIONS, names(tables))
    ]
    missing = {*tables} - {one.table for one in found}
    if missing:
        raise CutoverError(
            f"there is no table {min(missing)}",
            where=str(min(missing)),
            cause="the fence is to keep rows of it from being changed",
            remedy="name tables that exist, with their schemas",
        )
    return found


def at_work(
    session: PostgresFenceSession,
    tables: Sequence[TableId],
    but: str = "",
    modes: Sequence[str] = WRITING,
    until: float | None = None,
) -> list[OpenTransaction]:
    """The transactions of others that hold such locks of these tables; prepared ones too, whoever is connected.

    A transaction that wrote a table keeps its lock until its end. One that began to write before the fence was up had
    the lock by then: whoever gets it later has seen what the fence changed.

    Args:
        session: ours.
        tables: of the plan.
        but: a login whose transactions don't count.
        modes: of locks.
        until: those that began later don't count, seconds since 1970; None where all count.
    """
    return [
        OpenTransaction(str(id_), login or "", str(since or ""), doing, prepared)
        for id_, login, since, doing, prepared in session.rows(
            _AT_WORK, (*names(tables), list(modes), but, until)
        )
        if id_ is not None
    ]
