"""Writes joined rows into PostgreSQL (``mirror.parts``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.prepared import Prepared
from migrator.adapters.targets.postgres.rows.writer import BatchWriter
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.mirror.parts import JoinedParts
from migrator.adapters.targets.shared.rows import one_key
from migrator.model.table import TableId
from migrator.ports.target import TargetRows


class JoinedWriter(JoinedParts[Prepared]):
    """One batch's joined rows.

    Args:
        session: in the batch's transaction.
        writer: merges prepared rows.
        known: the target tables.
        prepared: encodes rows and finds their staging tables.
    """

    def __init__(
        self,
        session: Session,
        writer: BatchWriter,
        known: Mapping[TableId, Structure],
        prepared: Callable[[Sequence[TargetRows]], list[Prepared]],
    ):
        super().__init__()
        self._session = session
        self._writer = writer
        self._known = known
        self._prepared = prepared

    def relax(self) -> None:
        """Turns foreign keys off for all later writes of the transaction."""
        self._writer.relax()

    def prepare(self, rows: Sequence[TargetRows]) -> list[Prepared]:
        """Encodes rows and finds their staging tables."""
        return self._prepared(rows)

    def merge(self, rows: Sequence[Prepared]) -> None:
        """Writes prepared rows."""
        self._writer.write(list(rows))

    def keep_keys(self, rows: Prepared) -> None:
        """Remembers the keys of a part."""
        key = rows.structure.table.key
        name = self.kept.get(rows.id)
        if name is None:
            name = self.kept[rows.id] = f"migrator_kept_{len(self.kept)}"
            types = {storage.column.name: storage.declared for storage in rows.structure.storage}
            body = ", ".join(f"{quoted(column)} {types[column]}" for column in key)
            self._session.run(f"CREATE TEMPORARY TABLE {name} ({body}) ON COMMIT DROP")
        elif not rows.structure.key_is_exact():
            for found in self._session.rows(rows.merge.kept_already(name)):
                raise one_key(rows.id, key, found, rows.structure.key_compares())
        values = ", ".join(rows.merge.value(column) for column in key)
        self._session.run(f"INSERT INTO {name} SELECT {values} FROM {rows.merge.staging} s")

    def empty(self, rows: Prepared) -> None:
        """Leaves the staging tables to whoever takes them again: they are emptied then."""

    def delete_others(self, table: TableId, kept: str) -> None:
        """Deletes the rows whose keys weren't kept."""
        same = self._known[table].one_key(
            lambda column: f"t.{quoted(column)}", lambda column: f"k.{quoted(column)}"
        )
        self._session.run(
            f"DELETE FROM {qualified(table)} t WHERE NOT EXISTS (SELECT 1 FROM {kept} k WHERE {same})"
        )
