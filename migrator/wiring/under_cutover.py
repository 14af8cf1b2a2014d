"""The refusal of what would change a migration while a cut-over is planned or under way."""

from __future__ import annotations

from migrator.config.project import Settings
from migrator.errors import CutoverError
from migrator.model.cutover.record import Phase
from migrator.schema.cutovers import Copy
from migrator.wiring.target import target_database


def refuse_under_cutover(settings: Settings, what: str) -> None:
    """Raises ``CutoverError`` from a plan's acceptance until it is finished; ``what`` can't be done meanwhile."""
    copy = Copy(target_database(settings), settings.name, settings.target.url())
    try:
        record = copy.read()
    finally:
        copy.close()
    if record is not None and record.phase is not Phase.FINISHED:
        raise CutoverError(
            f"{what} can't be done while a cut-over is planned or under way",
            cause=f"the {record.open_side} side is open, phase {record.phase}; both ways go by what they have now",
            remedy="`migrator cutover finish` first",
        )
