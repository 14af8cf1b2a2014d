"""The ledger's row, read and moved inside the transaction that moves the rows."""

from __future__ import annotations

import json
from dataclasses import replace

from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.lost_row import lost_row
from migrator.errors import FencedError, TargetError
from migrator.model.codecs.codec import FORMAT, FormatError, check_number
from migrator.model.codecs.ledger_codec import ledger_from_json, ledger_to_json
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint

_COLUMNS = "epoch, segment, format, checkpoint::text"
_READ = f"SELECT {_COLUMNS} FROM migrator.ledger WHERE migration = $1::text FOR UPDATE"
_CREATE = (
    "INSERT INTO migrator.ledger (migration, epoch, segment, format) VALUES ($1::text, 0, 0, $2::int)"
    " ON CONFLICT (migration) DO NOTHING"
)
_TAKE = "UPDATE migrator.ledger SET epoch = $2::bigint, updated_at = now() WHERE migration = $1::text"
# Text, not bind types: the driver binds Python numbers as bigint, and positions may be larger.
_MOVE = (
    "UPDATE migrator.ledger SET segment = $2::bigint, position_order = $3::text::numeric, position_token = $4::text,"
    " checkpoint = $5::text::jsonb, format = $6::bigint, updated_at = now() WHERE migration = $1::text"
)


def lock(session: Session, migration: str) -> Ledger:
    """The ledger under its row lock, held until the transaction ends. Raises ``TargetError`` when it has no row."""
    found = session.rows(_READ, [migration])
    if not found:
        raise lost_row(migration, "migrator.ledger")
    epoch, segment, number, checkpoint = found[0]
    return ledger_of(migration, int(epoch), int(segment), int(number), checkpoint)


def create(session: Session, migration: str) -> None:
    """Makes the row of a new migration, if there is none."""
    session.run(_CREATE, [migration, FORMAT])


def check_not_newer(session: Session, migration: str, epoch: int) -> None:
    """Raises ``FencedError`` when the ledger saw a higher epoch. Without the lock: a zombie must not wait for
    it."""
    for (stored,) in session.rows(
        "SELECT epoch FROM migrator.ledger WHERE migration = $1::text", [migration]
    ):
        if int(stored) > epoch:
            raise fenced(Ledger(migration, int(stored), 0, None), epoch)


def take(session: Session, ledger: Ledger, epoch: int) -> Ledger:
    """Stores the new leader's epoch. Raises ``FencedError`` when a higher one is there."""
    if ledger.epoch > epoch:
        raise fenced(ledger, epoch)
    session.run(_TAKE, [ledger.migration, epoch])
    return replace(ledger, epoch=epoch)


def move(
    session: Session, migration: str, segment: int, checkpoint: Checkpoint, segment_id: str = ""
) -> None:
    """Says that everything up to ``segment`` is applied."""
    document = json.dumps(ledger_to_json(checkpoint, segment_id), ensure_ascii=False)
    position = checkpoint.position
    session.run(_MOVE, [migration, segment, str(position.order), position.token, document, FORMAT])


def check_epoch(ledger: Ledger, epoch: int) -> None:
    """Refuses to write when the ledger isn't ours. Raises ``FencedError``, ``TargetError``."""
    if ledger.epoch > epoch:
        raise fenced(ledger, epoch)
    if ledger.epoch < epoch:
        raise TargetError(
            f"the ledger's epoch fell to {ledger.epoch}, we hold {epoch}",
            where=f"migrator.ledger, migration {ledger.migration}",
            cause="the target was restored from a backup, or its ledger was written by hand",
            remedy="start again: applying goes on from what the ledger says now",
        )


def fenced(ledger: Ledger, epoch: int) -> FencedError:
    """Another leader has taken the ledger over."""
    return FencedError(
        f"a newer leader writes migration {ledger.migration}: epoch {ledger.epoch}, ours is {epoch}",
        where="migrator.ledger",
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
            where=f"migrator.ledger, migration {migration}",
            cause=str(error),
            remedy="run the version of the tool that wrote it, or a newer one",
        ) from None
    return Ledger(migration, epoch, segment, known, segment_id)
