"""The refusal of what would change a migration while a cut-over is planned or under way."""

from __future__ import annotations

from migrator.config.project import Settings
from migrator.errors import CutoverError
from migrator.model.cutover.record import Phase, Record, Side
from migrator.schema.cutovers import Copy
from migrator.wiring.target import target_database


def refuse_under_cutover(settings: Settings, what: str) -> None:
    """Raises ``CutoverError`` from a plan's acceptance until it is finished; ``what`` can't be done meanwhile.

    Nor can it ever where that was while the new side was open: rows written there since are nowhere else.
    """
    record = _record(settings)
    if record is None or (record.phase is Phase.FINISHED and record.open_side is Side.OLD):
        return
    if record.phase is Phase.FINISHED:
        raise CutoverError(
            f"{what} can't be done once the old side was given up for good",
            cause="a cut-over was finished while the new side was open: rows that applications write there since"
            " would be removed, or overwritten by those of the old side",
            remedy="leave the tool behind, as `Removing everything` in docs/how-to/cut-over.md says; a migration of"
            " that name may begin anew then, too",
        )
    raise CutoverError(
        f"{what} can't be done while a cut-over is planned or under way",
        cause=f"the {record.open_side} side is open, phase {record.phase}; both ways go by what they have now",
        remedy="`migrator cutover finish` first",
    )


def was_handed_over(settings: Settings) -> bool:
    """Tells whether a switch of writes has begun, ever: others may have written into the targets since."""
    record = _record(settings)
    return record is not None and record.turn > 0


def _record(settings: Settings) -> Record | None:
    """Returns the copy of a cut-over's record on the side that is written to; None before a plan was accepted.

    Both ways have one record, by the name of the way there.
    """
    name = settings.counterpart if settings.reversed else settings.name
    copy = Copy(target_database(settings), name, settings.target.url())
    try:
        return copy.read()
    finally:
        copy.close()
