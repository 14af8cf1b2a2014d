"""State of the mirror that the target remembers between batches."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.postgres.mirror.mirror import PostgresMirror
from migrator.adapters.targets.postgres.mirror.tables import prepare
from migrator.adapters.targets.postgres.rows.scratch import Scratch
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.mirror.keeper import MirrorKeeper
from migrator.adapters.targets.shared.mirror.store import MirrorStore
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget


class PostgresMirrorKeeper(MirrorKeeper[Session, Scratch]):
    """The keeper of a migration's mirror."""

    def __init__(self, migration: str):
        super().__init__()
        self._migration = migration

    def rolled_back(self) -> None:
        """The batch's transaction was undone."""
        if self._scratch is not None:
            self._scratch[1].rolled_back()

    def _mirror_columns(
        self, session: Session, targets: Sequence[JoinedTarget], ledger: Ledger
    ) -> dict[TableId, tuple[str, ...]]:
        return prepare(session, self._migration, targets, ledger)

    def _new_scratch(self, session: Session) -> Scratch:
        return Scratch(session)

    def _store(self, session: Session, scratch: Scratch, segment: int) -> MirrorStore:
        scratch.begin()
        return PostgresMirror(session, scratch, self._migration, self._kept, segment)
