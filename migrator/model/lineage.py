"""The check that a ledger and an event log belong together.

Numbers can't tell: whoever goes on from the ledger with an empty state folder numbers its segments from there, and
another machine that comes back has segments of the same numbers. So each segment is told by its content, names the
segment before it, and the ledger keeps which segment it has applied (``Manifest.id``). Formats before 4 have
none of
it: there the checkpoint decides as far as it is known, and the next segment begins a lineage.
"""

from __future__ import annotations

from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from migrator.model.segment import Link, Manifest


def continues(
    ledger: Ledger, newest: Manifest | None, applied: Manifest | None, following: Manifest | None
) -> str:
    """Returns why this event log doesn't go on from where the ledger stands; empty if it does, or is empty.

    Args:
        ledger: the target's.
        newest: of the event log.
        applied: its segment of the ledger's number; None where it was released, or never was.
        following: its segment of the next number.
    """
    if newest is None:
        return ""
    number = ledger.segment
    if newest.number < number:
        return f"event log ends at segment {newest.number}, the ledger has applied segment {number}"
    if applied is not None and not _is(ledger, applied):
        return f"segment {number} here isn't the one that the ledger has applied"
    if following is not None and _differ(following.previous, ledger.segment_id):
        return (
            f"segment {following.number} here doesn't follow the segment {number} that the ledger has applied"
        )
    return ""


def follows(before: Manifest, manifest: Manifest) -> bool:
    """Tells whether a segment was written behind the one of the number before."""
    return not _differ(manifest.previous, before.id)


def due(held: Ledger, segment: int, link: Link | None) -> bool:
    """Tells whether a batch that ends with ``segment`` is the ledger's next; False when it was applied already.

    Asked under the ledger's lock. Raises ``TargetError`` when the ledger stands elsewhere than the batch
    begins: the target was put back to an earlier state, or is another one.
    """
    if link is None:
        return held.segment < segment
    if held.segment == segment and not _differ(held.segment_id, link.id):
        return False
    if held.segment == link.first - 1 and not _differ(held.segment_id, link.previous):
        return True
    raise TargetError(
        "the target's ledger doesn't stand where this run left it",
        where=f"the ledger stands at segment {held.segment}, the batch begins with segment {link.first}",
        cause="the target was restored, replaced by a copy that lacks the last transactions, or another run moved it",
        remedy="start again: the run then goes on from what the ledger says now, or names what is missing",
    )


def identity(link: Link | None) -> str:
    """Returns the id of a batch's last segment, for the ledger; empty for a batch without a link."""
    return "" if link is None else link.id


def _is(ledger: Ledger, applied: Manifest) -> bool:
    if ledger.segment_id:
        return ledger.segment_id == applied.id
    return ledger.checkpoint == applied.checkpoint


def _differ(one: str, other: str) -> bool:
    """Tells whether both are known and not the same."""
    return bool(one and other) and one != other
