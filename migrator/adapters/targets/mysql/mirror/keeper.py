"""State of the mirror that the target remembers between batches."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.mysql.mirror.mirror import MysqlMirror
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_table
from migrator.adapters.targets.mysql.mirror.tables import MirrorTables
from migrator.adapters.targets.mysql.rows.scratch import Scratch
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.mirror.batch import BatchMirror
from migrator.adapters.targets.shared.mirror.followed import check_known, followed
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch


class MirrorKeeper:
    """The mirrored tables of a migration, and the session's temporary tables for them."""

    def __init__(self, settings: MysqlTarget):
        self._settings = settings
        self._kept: dict[TableId, tuple[str, ...]] = {}
        self._targets: tuple[JoinedTarget, ...] = ()
        self._scratch: tuple[Session, Scratch] | None = None

    def prepare(self, session: Session, targets: Sequence[JoinedTarget], ledger: Ledger) -> None:
        """Makes what is missing. Raises ``TargetError`` (see ``mirror_tables``)."""
        if targets:
            self._kept = MirrorTables(session, self._settings, ledger).prepare(targets)
        self._targets = tuple(targets)

    def moved(self, session: Session, batch: TargetBatch) -> BatchMirror:
        """The mirror inside the batch's transaction, moved to its end."""
        check_known(batch, self._kept)
        store = MysqlMirror(session, self._of(session), self._settings, self._kept, batch.segment)
        mirror = BatchMirror(store)
        mirror.move(batch.mirror, followed(self._targets, mirror.filled()))
        self._say_moved(session, batch.segment)
        return mirror

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

    def _of(self, session: Session) -> Scratch:
        if self._scratch is None or self._scratch[0] is not session:
            self._scratch = (session, Scratch(session))
        return self._scratch[1]
