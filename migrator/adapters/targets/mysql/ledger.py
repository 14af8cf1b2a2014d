"""The ledger's row, read and moved inside the transaction that moves the rows."""

from __future__ import annotations

import json
from dataclasses import replace

from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.shared.lost_row import lost_row
from migrator.errors import FencedError, TargetError
from migrator.model.codecs.codec import FORMAT, FormatError, check_number
from migrator.model.codecs.ledger_codec import ledger_from_json, ledger_to_json
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint
from migrator.schema import MYSQL_LEDGER

_READ = f"SELECT epoch, segment, format, checkpoint FROM {MYSQL_LEDGER} WHERE migration = %s"
_CREATE = f"INSERT IGNORE INTO {MYSQL_LEDGER} (migration, epoch, segment, format) VALUES (%s, 0, 0, %s)"
_TAKE = f"UPDATE {MYSQL_LEDGER} SET epoch = %s, updated_at = CURRENT_TIMESTAMP WHERE migration = %s"
_MOVE = (
    f"UPDATE {MYSQL_LEDGER} SET segment = %s, position_order = %s, position_token = %s, checkpoint = %s, format = %s,"
    " updated_at = CURRENT_TIMESTAMP WHERE migration = %s"
)


def lock(session: Session, migration: str) -> Ledger:
    """The ledger under its row lock, held until the transaction ends. Raises ``TargetError`` when it has no row."""
    return known(session, migration, " FOR UPDATE")


def known(session: Session, migration: str, lock: str = "") -> Ledger:
    """The ledger as committed now. Raises ``TargetError`` when it has no row."""
    found = session.rows(f"{_READ}{lock}", [migration])
    if not found:
        raise lost_row(migration, MYSQL_LEDGER)
    return ledger_of(migration, *found[0])


def create(session: Session, migration: str) -> None:
    """Makes the row of a new migration, if there is none."""
    session.run(_CREATE, [migration, FORMAT])


def stored_epoch(session: Session, migration: str) -> int:
    """The ledger's epoch as committed now, without the lock; 0 when it has no row."""
    found = session.rows(f"SELECT epoch FROM {MYSQL_LEDGER} WHERE migration = %s", [migration])
    return int(found[0][0]) if found else 0


def check_not_newer(session: Session, migration: str, epoch: int) -> None:
    """Raises ``FencedError`` when the ledger saw a higher epoch. Without the lock: a zombie must not wait for
    it."""
    stored = stored_epoch(session, migration)
    if stored > epoch:
        raise fenced(Ledger(migration, stored, 0, None), epoch)


def take(session: Session, ledger: Ledger, epoch: int) -> Ledger:
    """Stores the new leader's epoch. Raises ``FencedError`` when a higher one is there."""
    if ledger.epoch > epoch:
        raise fenced(ledger, epoch)
    session.run(_TAKE, [epoch, ledger.migration])
    return replace(ledger, epoch=epoch)


def move(
    session: Session, migration: str, segment: int, checkpoint: Checkpoint, segment_id: str = ""
) -> None:
    """Says that everything up to ``segment`` is applied."""
    document = json.dumps(ledger_to_json(checkpoint, segment_id), ensure_ascii=False)
    position = checkpoint.position
    session.run(_MOVE, [segment, str(position.order), position.token, document, FORMAT, migration])


def check_epoch(ledger: Ledger, epoch: int) -> None:
    """Refuses to write when the ledger isn't ours. Raises ``FencedError``, ``TargetError``."""
    if ledger.epoch > epoch:
        raise fenced(ledger, epoch)
    if ledger.epoch < epoch:
        raise TargetError(
            f"the ledger's epoch fell to {ledger.epoch}, we hold {epoch}",
            where=f"{MYSQL_LEDGER}, migration {ledger.migration}",
            cause="the target was restored from a backup, or its ledger was written by hand",
            remedy="start again: applying goes on from what the ledger says now",
        )


def fenced(ledger: Ledger, epoch: int) -> FencedError:
    """Another leader has taken the ledger over."""
    return FencedError(
        f"a newer leader writes migration {ledger.migration}: epoch {ledger.epoch}, ours is {epoch}",
        where=MYSQL_LEDGER,
        remedy="stop this process; it must not write any more",
    )


def ledger_of(migration: str, epoch: int, segment: int, number: int, document: str | None) -> Ledger:
    """The ledger from its columns. Raises ``TargetError`` for a format of a later version."""
    try:
        check_number("ledger", number, FORMAT)
        known, segment_id = (None, "") if document is None else ledger_from_json(json.loads(document))
    except FormatError as error:
        raise TargetError(
            "the target's ledger can't be read",
            where=f"{MYSQL_LEDGER}, migration {migration}",
            cause=str(error),
            remedy="run the version of the tool that wrote it, or a newer one",
        ) from None
    return Ledger(migration, int(epoch), int(segment), known, segment_id)
