"""State of the mirror that the target remembers between batches."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.postgres.mirror.mirror import PostgresMirror
from migrator.adapters.targets.postgres.mirror.tables import prepare
from migrator.adapters.targets.postgres.rows.scratch import Scratch
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.mirror.batch import BatchMirror
from migrator.adapters.targets.shared.mirror.followed import check_known, followed
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch


class MirrorKeeper:
    """The mirrored tables of a migration, and the session's temporary tables for them."""

    def __init__(self, migration: str):
        self._migration = migration
        self._kept: dict[TableId, tuple[str, ...]] = {}
        self._targets: tuple[JoinedTarget, ...] = ()
        self._scratch: tuple[Session, Scratch] | None = None

    def prepare(self, session: Session, targets: Sequence[JoinedTarget], ledger: Ledger) -> None:
        """Makes what is missing. Raises ``TargetError`` (see ``mirror_tables.prepare``)."""
        if targets:
            self._kept = prepare(session, self._migration, targets, ledger)
        self._targets = tuple(targets)

    def moved(self, session: Session, batch: TargetBatch) -> BatchMirror:
        """The mirror inside the batch's transaction, moved to its end."""
        check_known(batch, self._kept)
        scratch = self._of(session)
        scratch.begin()
        store = PostgresMirror(session, scratch, self._migration, self._kept, batch.segment)
        mirror = BatchMirror(store)
        mirror.move(batch.mirror, followed(self._targets, mirror.filled()))
        return mirror

    def rolled_back(self) -> None:
        """The batch's transaction was undone."""
        if self._scratch is not None:
            self._scratch[1].rolled_back()

    def _of(self, session: Session) -> Scratch:
        if self._scratch is None or self._scratch[0] is not session:
            self._scratch = (session, Scratch(session))
        return self._scratch[1]
