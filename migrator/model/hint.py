"""A leader's hint about itself, for onlookers on other machines. Nothing depends on it."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.observed.observation import Applied, Ended
from migrator.model.progress import Checkpoint


@dataclass(frozen=True, slots=True)
class Hint:
    """A leader's view of its own run, a moment old.

    Attributes:
        epoch: of the leader.
        at_us: by the leader's clock, microseconds since 1970.
        segment: newest segment of its event log; 0 while there is none.
        event_log_bytes: what its event log holds.
        checkpoint: of that segment.
        note: what it waits for or retries; empty when nothing is wrong.
        warnings: what an operator should do something about while it still goes on.
        phase: of the run (one of ``model.observed.observation.PHASES``); empty: unknown.
        applied: up to when everything of the source is known to be in the target; None where that was never known.
        ended: how the run ended; None while it goes on, or was killed.
    """

    epoch: int
    at_us: int
    segment: int = 0
    event_log_bytes: int = 0
    checkpoint: Checkpoint | None = None
    note: str = ""
    warnings: tuple[str, ...] = ()
    phase: str = ""
    applied: Applied | None = None
    ended: Ended | None = None

    def of_epoch(self, epoch: int) -> bool:
        """Tells whether it is of the run of a leader that goes on; ``epoch``: the newest that the target knows.

        A leader tells nothing of itself while it starts: what is read then is what the one before it said.
        """
        return self.ended is None and self.epoch >= epoch
