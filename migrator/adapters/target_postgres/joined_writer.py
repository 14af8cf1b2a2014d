"""Writes what joined targets give, part by part, together with the rows that were mapped before the transaction.

Parts are merged together as long as they are small, so that foreign keys between tables see one change. Once they are
many rows, each is written on its own, with foreign keys off, and the keys of whole tables are checked at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from migrator.adapters.target_postgres.merge import qualified, quoted
from migrator.adapters.target_postgres.prepared import Prepared
from migrator.adapters.target_postgres.session import Session
from migrator.adapters.target_postgres.structure import Structure
from migrator.adapters.target_postgres.writer import BatchWriter
from migrator.model.table import TableId
from migrator.ports.target import TargetRows

TOGETHER_ROWS = 50_000


class JoinedWriter:
    """One batch's joined rows.

    Args:
        session: in the batch's transaction.
        writer: merges prepared rows.
        known: the target tables.
        prepare: encodes rows and finds their staging tables.
    """

    def __init__(
        self,
        session: Session,
        writer: BatchWriter,
        known: Mapping[TableId, Structure],
        prepare: Callable[[Sequence[TargetRows]], list[Prepared]],
    ):
        self._session = session
        self._writer = writer
        self._known = known
        self._prepare = prepare
        self._kept: dict[TableId, str] = {}

    def write(self, mapped: Sequence[Prepared], joined: Iterable[TargetRows]) -> bool:
        """Writes both; whether the keys of whole tables have to be checked afterwards."""
        waiting: list[TargetRows] = []
        apart = False
        for rows in joined:
            full = sum(map(_number, (*waiting, rows))) > TOGETHER_ROWS
            if waiting and (full or any(one.table.id == rows.table.id for one in waiting)):
                if not apart:
                    self._writer.relax()
                apart = True
                self._write_part([], waiting)
                waiting = []
            waiting.append(rows)
        self._write_part(mapped, waiting)
        for table, keys in self._kept.items():
            self._delete_others(table, keys)
        return apart

    def _write_part(self, mapped: Sequence[Prepared], rows: Sequence[TargetRows]) -> None:
        prepared = [*mapped, *self._prepare(rows)] if rows else list(mapped)
        self._writer.write(prepared)
        replaced = {one.table.id for one in rows if one.replaces}
        for one in prepared:
            if one.id in replaced:
                self._keep_keys(one)
        if rows:
            for one in prepared:  # the next part's rows of the same table take the same staging tables
                for name in (one.merge.staging, one.merge.before):
                    if name:
                        self._session.run(f"TRUNCATE pg_temp.{name}")

    def _keep_keys(self, one: Prepared) -> None:
        """Remembers the keys of a part of a table that is to hold these rows and no others."""
        key = one.structure.table.key
        name = self._kept.get(one.id)
        if name is None:
            name = self._kept[one.id] = f"migrator_kept_{len(self._kept)}"
            types = {storage.column.name: storage.declared for storage in one.structure.storage}
            body = ", ".join(f"{quoted(column)} {types[column]}" for column in key)
            self._session.run(f"CREATE TEMPORARY TABLE {name} ({body}) ON COMMIT DROP")
        values = ", ".join(one.merge.value(column) for column in key)
        self._session.run(f"INSERT INTO {name} SELECT {values} FROM {one.merge.staging} s")

    def _delete_others(self, table: TableId, kept: str) -> None:
        key = self._known[table].table.key
        same = " AND ".join(f"k.{quoted(column)} = t.{quoted(column)}" for column in key)
        self._session.run(
            f"DELETE FROM {qualified(table)} t WHERE NOT EXISTS (SELECT 1 FROM {kept} k WHERE {same})"
        )


def _number(rows: TargetRows) -> int:
    return sum(part.num_rows for part in (rows.chunk, rows.before, rows.after) if part is not None)
