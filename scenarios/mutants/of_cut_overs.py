"""Broken variants of a cut-over on servers: steps left out, a fence by asking, a way back that begins late."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from migrator.adapters.fences.shared.kept_fence import KeptFence
from migrator.core import cutover as rules
from migrator.model.cutover.fence import FencePlan, FenceState, Standing
from migrator.model.cutover.record import Phase, Record, Side
from migrator.own_modules import python_m
from migrator.ports.target import TargetBatch
from migrator.run.cutover import conductor, reverse_process
from migrator.run.cutover.conductor import Conductor
from migrator.run.cutover.gate import GatedTarget
from scenarios.simulation.setup import Patch

_apply = GatedTarget.apply
_LIMIT_S = 5.0
_Taken = Callable[[Conductor, Record], bool]


def _steps(broken: Mapping[Phase, _Taken]) -> Patch:
    return Patch(conductor, "_STEPS", {**conductor._STEPS, **broken})


def _asked(self: KeptFence[Any], plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
    """Everybody is asked to stop."""
    self._step("fence.raised")
    return FenceState(Standing.UP)


def _believed(self: KeptFence[Any], plan: FencePlan) -> FenceState:
    """Everybody is believed to have stopped: nobody is ever asked, and a play that waits for a fence hears of one."""
    self._step("fence.raised")
    return FenceState(Standing.UP)


def _nothing_to_open(self: KeptFence[Any], plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
    return FenceState(Standing.DOWN)


def _forgets(self: Conductor, record: Record) -> bool:
    """A switch that fails leaves nothing of the way back, which begins anew."""
    undone = Conductor._undo(self, record)
    self.give_up()
    return undone


def _opens_both(self: Conductor, record: Record) -> bool:
    """Whoever finishes takes every fence down."""
    self.both.fences[Side.OLD].open_fence(record.plan.old, _LIMIT_S, self.epoch)
    return Conductor._finish(self, record)


def _pointed_in_words(self: Conductor, record: Record, side: Side) -> Record:
    """Reads are pointed in the record, and nowhere else."""
    return self._written(rules.reads_pointed(record, ""))


def _at_the_end(self: Conductor, record: Record, side: Side) -> bool:
    """The stream is taken to be at its log's end."""
    return True


def _begins_late(self: GatedTarget, batch: TargetBatch) -> None:
    """Writes on the new side, made before the record says that it is open, are before the start of the way back."""
    gate = self._gate
    record = gate._read() if gate._side is Side.NEW else None
    if record is not None and record.phase is Phase.OPENING:
        batch = replace(batch, rows=(), mirror=(), joined=None, foreign=0)
    _apply(self, batch)


def _beside(name: str) -> Patch:
    """The way back runs as the same variant."""
    return Patch(reverse_process, "python_m", lambda _: [*python_m("scenarios.mutants"), name])


BACK_BEGINS_LATE = "back-begins-late"
PATCHES: Mapping[str, tuple[Patch, ...]] = {
    "fence-by-asking": (
        Patch(KeptFence, "raise_fence", _asked),
        Patch(KeptFence, "state", _believed),
        Patch(KeptFence, "open_fence", _nothing_to_open),
    ),
    "not-drained": (Patch(Conductor, "_has_reached", _at_the_end),),
    "undo-skipped": (_steps({Phase.UNDOING: lambda self, record: True}),),
    "return-forgets": (_steps({Phase.UNDOING: _forgets}),),
    "finish-opens-both": (_steps({Phase.FINISHING: _opens_both}),),
    "reads-not-pointed": (Patch(Conductor, "_reads_pointed", _pointed_in_words),),
    "not-numbered": (_steps({Phase.NUMBERING: lambda self, record: True}),),
    BACK_BEGINS_LATE: (_beside(BACK_BEGINS_LATE), Patch(GatedTarget, "apply", _begins_late)),
}
"""The patches of each variant by its name."""
