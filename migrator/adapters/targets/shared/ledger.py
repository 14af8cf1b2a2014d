"""The ledger's row, read and moved inside the transaction that moves the rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from migrator.errors import FencedError, TargetError
from migrator.model.codecs.codec import FORMAT, FormatError, check_number
from migrator.model.codecs.ledger_codec import ledger_from_json, ledger_to_json, refuse_reset
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint
from migrator.schema.acts import ActSql


class LedgerSession(Protocol):
    """A session of the target, as far as the ledger needs one."""

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> object:
        """Runs one statement."""
        ...

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""
        ...


class WriterSession(LedgerSession, Protocol):
    """A session of the target that one thread uses. Raises ``StatementRefused`` and ``ConnectionLost``."""

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server. Safe to call twice."""
        ...


@dataclass(frozen=True, slots=True)
class LedgerTable:
    """The ledger of an engine: its rules, and the engine's statements with their parameters in order.

    Attributes:
        name: of the table, for messages.
        read: epoch, segment, format and checkpoint of a migration.
        epoch: only the epoch of a migration.
        create: migration, format; does nothing where the row is there.
        take: epoch, migration.
        move_on: segment, position's order and token, checkpoint, format, migration.
        mark: migration; leaves a word in the server's log by which its reader knows the transaction for the
            migration's own. Before any row is written: a reader may pass large transactions on while they run.
        history: the statements of the history beside it.
    """

    name: str
    read: str
    epoch: str
    create: str
    take: str
    move_on: str
    mark: str
    history: ActSql

    def lock(self, session: LedgerSession, migration: str) -> Ledger:
        """The ledger under its row lock, held until the transaction ends. Raises ``TargetError`` without a row."""
        return self.known(session, migration, " FOR UPDATE")

    def known(self, session: LedgerSession, migration: str, lock: str = "") -> Ledger:
        """The ledger as committed now. Raises ``TargetError`` when it has no row."""
        found = session.rows(f"{self.read}{lock}", [migration])
        if not found:
            raise _lost_row(migration, self.name)
        return self.of_row(migration, found[0])

    def make(self, session: LedgerSession, migration: str) -> None:
        """Makes the row of a new migration, if there is none."""
        session.run(self.create, [migration, FORMAT])

    def stored_epoch(self, session: LedgerSession, migration: str) -> int:
        """The ledger's epoch as committed now, without the lock; 0 when it has no row."""
        found = session.rows(self.epoch, [migration])
        return int(found[0][0]) if found else 0

    def check_not_newer(self, session: LedgerSession, migration: str, epoch: int) -> None:
        """Raises ``FencedError`` when the ledger saw a higher epoch. Without the lock: a zombie must not wait for
        it."""
        stored = self.stored_epoch(session, migration)
        if stored > epoch:
            raise self._fenced(Ledger(migration, stored, 0, None), epoch)

    def taken(self, session: LedgerSession, ledger: Ledger, epoch: int) -> Ledger:
        """Stores the new leader's epoch. Raises ``FencedError`` when a higher one is there."""
        if ledger.epoch > epoch:
            raise self._fenced(ledger, epoch)
        session.run(self.take, [epoch, ledger.migration])
        return replace(ledger, epoch=epoch)

    def move(
        self,
        session: LedgerSession,
        migration: str,
        segment: int,
        checkpoint: Checkpoint,
        segment_id: str = "",
    ) -> None:
        """Says that everything up to ``segment`` is applied."""
        document = json.dumps(ledger_to_json(checkpoint, segment_id), ensure_ascii=False)
        position = checkpoint.position
        place = [str(position.order), position.token]
        session.run(self.move_on, [segment, *place, document, FORMAT, migration])

    def check_epoch(self, ledger: Ledger, epoch: int) -> None:
        """Refuses to write when the ledger isn't ours. Raises ``FencedError``, ``TargetError``."""
        if ledger.epoch > epoch:
            raise self._fenced(ledger, epoch)
        if ledger.epoch < epoch:
            raise TargetError(
                f"the ledger's epoch fell to {ledger.epoch}, we hold {epoch}",
                where=f"{self.name}, migration {ledger.migration}",
                cause="the target was restored from a backup, or its ledger was written by hand",
                remedy="start again: applying goes on from what the ledger says now",
            )

    def of_row(self, migration: str, row: Sequence[Any]) -> Ledger:
        """The ledger from its columns. Raises ``TargetError`` for a format of a later version."""
        epoch, segment, number, document = row
        try:
            check_number("ledger", int(number), FORMAT)
            parsed = None if document is None else json.loads(document)
            refuse_reset(parsed, f"{self.name}, migration {migration}")
            known, segment_id = (None, "") if parsed is None else ledger_from_json(parsed)
        except FormatError as error:
            raise TargetError(
                "the target's ledger can't be read",
                where=f"{self.name}, migration {migration}",
                cause=str(error),
                remedy="run the version of the tool that wrote it, or a newer one",
            ) from None
        return Ledger(migration, int(epoch), int(segment), known, segment_id)

    def _fenced(self, ledger: Ledger, epoch: int) -> FencedError:
        """Another leader has taken the ledger over."""
        return FencedError(
            f"a newer leader writes migration {ledger.migration}: epoch {ledger.epoch}, ours is {epoch}",
            where=self.name,
            remedy="stop this process; it must not write any more",
        )


REMEDY_OF_OTHERS = (
    ": its rows would stay beside the migrated ones. If this migration has run before, its ledger's row is lost:"
    " leave the rows, and put the row back as a backup of the target has it; else start the migration anew"
    " (docs/how-to/start-anew.md)"
)
"""The end of a remedy for a table with rows that no ledger accounts for."""


def _lost_row(migration: str, ledger: str) -> TargetError:
    """Nobody knows then what is in the target: a dump over it would leave rows that are gone from the source."""
    return TargetError(
        f"the target's ledger has no row for migration {migration}",
        where=ledger,
        cause="it was deleted, or another database is configured now",
        remedy="configure the target that the migration writes into, or put the row back as a backup of the target"
        " has it; else start the migration anew (docs/how-to/start-anew.md)",
    )
