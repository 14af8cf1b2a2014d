"""Proves that change tables are those that were read up to a place.

A server that is put back to a copy of its disk gives transaction ids and sequence numbers out again. Written to
again, it soon has more transactions than it had at the place, which then shows some that nobody has read. So
a place tells of the last change before it (its number, transaction and content) and of the highest number
that was read. Before reading goes on, that change is read again, and nothing that the place shows may have a
higher number: numbers only rise, and a copy that still has the last change has given out all numbers up to
the highest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Any

from migrator.adapters.sources.postgres.change_tables.layout import (
    OPERATION,
    PLACE,
    TRANSACTION,
    change_table,
    identifier,
)
from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.adapters.sources.postgres.reflection import ReflectedTable
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import GapError
from migrator.model.table import TableId

_T, _P, _O = (identifier(name) for name in (TRANSACTION, PLACE, OPERATION))


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change before a place.

    Attributes:
        schema, table: captured table; empty: there was no change as yet.
        number: its sequence number.
        transaction: its transaction id.
        digest: of its row or rows; empty where it may be printed otherwise by now, or be gone: a table whose
            rows are
            asked for had a label renamed, say, or was replaced.
        high: the highest number of a change before the place. An older transaction that commits later has
            lower ones.
    """

    schema: str = ""
    table: str = ""
    number: int = 0
    transaction: int = 0
    digest: str = ""
    high: int = 0

    def parts(self) -> list[str | int]:
        """Returns the part of a token that tells of it."""
        return list(astuple(self))

    @classmethod
    def of(cls, parts: Sequence[Any]) -> LastChange:
        """Reads a token's document. Raises ``TypeError`` and ``ValueError`` for what isn't ours."""
        schema, table, number, transaction, digest, high = parts
        return cls(str(schema), str(table), int(number), int(transaction), str(digest), int(high))

    def text(self) -> str:
        """Says the same in words."""
        if not self.table:
            return "no change"
        return f"change {self.number} of transaction {self.transaction} in {self.schema}.{self.table} as the last one"


def shown(snapshot: SnapshotWitness) -> str:
    """The condition that a snapshot shows a change's transaction; only numbers in it."""
    running = f"'{{{','.join(map(str, sorted(snapshot.xip)))}}}'::pg_catalog.xid8[]"
    return f"{_T} < '{snapshot.xmax}'::pg_catalog.xid8 AND {_T} <> ALL ({running})"


def last_change(
    connection: Any, tables: Sequence[ReflectedTable], condition: str, before: LastChange
) -> LastChange:
    """The change of the highest number that a condition holds for; ``before`` where there is none."""
    newest = before
    for table in tables:
        own = table.schema.id
        row = connection.execute(
            f"SELECT {_P} FROM {quoted(change_table(own))} WHERE {condition} ORDER BY {_P} DESC LIMIT 1"
        ).fetchone()
        if row is not None and (newest is before or row[0] > newest.number):
            transaction, digest = _again(connection, own, row[0]) or (0, "")
            newest = LastChange(own.schema, own.name, row[0], transaction, digest, max(before.high, row[0]))
    return newest


def check_same(
    connection: Any,
    tables: Sequence[ReflectedTable],
    known: LastChange,
    snapshot: SnapshotWitness,
    forgotten: int,
    address: str,
) -> None:
    """Checks that the change tables are those that were read. Raises ``GapError``.

    Args:
        connection: in a snapshot of its own.
        tables: the captured ones.
        known: what the place tells.
        snapshot: all that it shows was read, or is being read.
        forgotten: changes of transactions below were deleted, also by another migration of this source.
        address: for messages.
    """
    if known.table and known.transaction >= forgotten:
        found = _again(connection, TableId(known.schema, known.table), known.number)
        same = found == (known.transaction, known.digest)
        if not known.digest:
            same = found is None or found[0] == known.transaction
        if not same:
            raise _another(address, known, "it isn't there" if found is None else "it is another one there")
    for table in tables:
        unread = connection.execute(
            f"SELECT {_P}, {_T}::text FROM {quoted(change_table(table.schema.id))} WHERE {_P} > {known.high:d}"
            f" AND {shown(snapshot)} LIMIT 1"
        ).fetchone()
        if unread is not None:
            raise _another(
                address,
                known,
                f"there is change {unread[0]} of transaction {unread[1]} in {table.schema.id}",
            )


def _again(connection: Any, table: TableId, number: int) -> tuple[int, str] | None:
    """Transaction and digest of a change; None where there is none of that number."""
    name = change_table(table)
    (there,) = connection.execute("SELECT pg_catalog.to_regclass($1::text)::text", [quoted(name)]).fetchone()
    if there is None:
        return None
    row = connection.execute(
        f"SELECT min({_T}::text), pg_catalog.md5(pg_catalog.string_agg(one::text, ';' ORDER BY {_O}))"
        f" FROM {quoted(name)} AS one WHERE {_P} = {number:d} HAVING count(*) > 0"
    ).fetchone()
    return None if row is None else (int(row[0]), str(row[1]))


def _another(address: str, known: LastChange, found: str) -> GapError:
    return GapError(
        "the source's log isn't the log that was read",
        where=f"the change tables at {address}",
        cause=f"up to this place they had {known.text()}, but {found}: the source was put back to an earlier"
        " state and written to since, or this is a copy of it",
        remedy="connect to the server read before, else start the migration anew (docs/how-to/start-anew.md): the"
        " target may have what the restore took back",
    )
