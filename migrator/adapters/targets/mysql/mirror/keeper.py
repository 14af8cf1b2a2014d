"""State of the mirror that the target remembers between batches."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.mysql.mirror.mirror import MysqlMirror
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_table
from migrator.adapters.targets.mysql.mirror.tables import MirrorTables
from migrator.adapters.targets.mysql.rows.scratch import Scratch
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.mirror.keeper import MirrorKeeper
from migrator.adapters.targets.shared.mirror.store import MirrorStore
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget


class MysqlMirrorKeeper(MirrorKeeper[Session, Scratch]):
    """The keeper of a migration's mirror."""

    def __init__(self, settings: MysqlTarget):
        super().__init__()
        self._settings = settings

    def _mirror_columns(
        self, session: Session, targets: Sequence[JoinedTarget], ledger: Ledger
    ) -> dict[TableId, tuple[str, ...]]:
        return MirrorTables(session, self._settings, ledger).prepare(targets)

    def _new_scratch(self, session: Session) -> Scratch:
        return Scratch(session)

    def _store(self, session: Session, scratch: Scratch, segment: int) -> MirrorStore:
        return MysqlMirror(session, scratch, self._settings, self._kept, segment)

    def _say_moved(self, session: Session, segment: int) -> None:
        """Every table is at the batch's end now, also those that it doesn't change."""
        database, migration = self._settings.server.database, self._settings.migration
        names = [mirror_table(database, migration, table).name for table in self._kept]
        marks = ", ".join(["%s"] * len(names))
        statement = (
            f"UPDATE {control_table(database, 'moved')} SET segment = %s"
            f" WHERE migration = %s AND mirrored IN ({marks})"
        )
        session.run(statement, [segment, migration, *names])
