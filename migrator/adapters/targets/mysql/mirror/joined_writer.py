"""Writes joined rows into MySQL and MariaDB (``mirror.parts``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from migrator.adapters.targets.mysql.rows.merge import qualified, quoted, saved_body
from migrator.adapters.targets.mysql.rows.prepared import Prepared
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.rows.writer import BatchWriter
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.shared.mirror.parts import JoinedParts
from migrator.adapters.targets.shared.rows import one_key
from migrator.model.table import TableId
from migrator.ports.target import TargetRows


class JoinedWriter(JoinedParts[Prepared]):
    """One batch's joined rows.

    Args:
        session: in the batch's transaction.
        staging: its temporary tables. Inside the transaction they are emptied by DELETE: TRUNCATE would commit.
        writer: merges prepared rows.
        known: the target tables.
        prepared: encodes rows and finds their staging tables.
        checked: whether foreign keys must hold after every part.
    """

    def __init__(
        self,
        session: Session,
        staging: StagingTables,
        writer: BatchWriter,
        known: Mapping[TableId, Structure],
        prepared: Callable[[Sequence[TargetRows]], list[Prepared]],
        checked: bool,
    ):
        super().__init__()
        self._session = session
        self._staging = staging
        self._writer = writer
        self._known = known
        self._prepared = prepared
        self._checked = checked

    def relax(self) -> None:
        """Turns the check of foreign keys off for all later writes."""
        self._checked = False

    def prepare(self, rows: Sequence[TargetRows]) -> list[Prepared]:
        """Encodes rows and finds their staging tables."""
        return self._prepared(rows)

    def merge(self, rows: Sequence[Prepared]) -> None:
        """Writes prepared rows."""
        self._writer.write(rows, self._checked)

    def keep_keys(self, rows: Prepared) -> None:
        """Remembers the keys of a part."""
        key = rows.structure.table.key
        name = self.kept.get(rows.id)
        if name is None:
            types = {storage.column.name: storage for storage in rows.structure.storage}
            body = saved_body([types[column] for column in key], [])
            name = self.kept[rows.id] = self._staging.table(f"{rows.id} kept", body)
        places = ", ".join(f"c{rows.merge.written.index(column)}" for column in key)
        for staged, _, _ in rows.staged():
            for found in self._session.rows(rows.merge.kept_already(staged, name)):
                raise one_key(rows.id, key, found, rows.structure.key_compares())
            self._session.run(f"INSERT INTO {name} SELECT {places} FROM {staged}")

    def empty(self, rows: Prepared) -> None:
        """Empties the staging tables."""
        for name in (rows.merge.chunk, rows.merge.after, rows.merge.before, rows.merge.saved):
            if name:
                self._session.run(f"DELETE FROM {name}")

    def delete_others(self, table: TableId, kept: str) -> None:
        """Deletes the rows whose keys weren't kept."""
        key = self._known[table].table.key
        same = " AND ".join(f"k.k{place} = t.{quoted(column)}" for place, column in enumerate(key))
        self._session.run(
            f"DELETE t FROM {qualified(table)} t LEFT JOIN {kept} k ON {same} WHERE k.k0 IS NULL"
        )
