"""State of the mirror that a target remembers between batches, as far as it is the same on every engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from migrator.adapters.targets.shared.mirror.batch import BatchMirror
from migrator.adapters.targets.shared.mirror.followed import check_known, followed
from migrator.adapters.targets.shared.mirror.store import MirrorStore
from migrator.model.ledger import Ledger
from migrator.model.progress import Filling
from migrator.model.table import TableId
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch

SessionT = TypeVar("SessionT")
ScratchT = TypeVar("ScratchT")


class MirrorKeeper(ABC, Generic[SessionT, ScratchT]):
    """The mirrored tables of a migration, and the session's temporary tables for them."""

    def __init__(self) -> None:
        self._kept: dict[TableId, tuple[str, ...]] = {}
        self._targets: tuple[JoinedTarget, ...] = ()
        self._scratch: tuple[SessionT, ScratchT] | None = None

    def prepare(self, session: SessionT, targets: Sequence[JoinedTarget], ledger: Ledger) -> None:
        """Makes what is missing. Raises ``TargetError``."""
        if targets:
            self._kept = self._mirror_columns(session, targets, ledger)
        self._targets = tuple(targets)

    def moved(self, session: SessionT, batch: TargetBatch) -> BatchMirror:
        """The mirror inside the batch's transaction, moved to its end."""
        check_known(batch, self._kept)
        if self._scratch is None or self._scratch[0] is not session:
            self._scratch = (session, self._new_scratch(session))
        mirror = BatchMirror(self._store(session, self._scratch[1], batch.segment))
        mirror.move(batch.mirror, followed(self._targets, {*mirror.filled(), *mirror.covering()}))
        self._say_moved(session, batch.segment)
        return mirror

    def filling(self, mirror: BatchMirror) -> tuple[Filling, ...]:
        """The migration's targets that are being filled piece by piece, as the transaction leaves them."""
        covering = mirror.covering()
        known = (covering.get((target.table.id.name, target.digest())) for target in self._targets)
        return tuple(covered.filling for covered in known if covered is not None)

    @abstractmethod
    def _mirror_columns(
        self, session: SessionT, targets: Sequence[JoinedTarget], ledger: Ledger
    ) -> dict[TableId, tuple[str, ...]]:
        """Makes what is missing; returns per source table the columns that its mirror has."""

    @abstractmethod
    def _new_scratch(self, session: SessionT) -> ScratchT:
        """Returns the temporary tables of a session: none yet."""

    @abstractmethod
    def _store(self, session: SessionT, scratch: ScratchT, segment: int) -> MirrorStore:
        """Returns the mirror's statements in the transaction of a batch that ends with this segment."""

    def _say_moved(self, session: SessionT, segment: int) -> None:
        """Notes that every table is at the batch's end now."""
