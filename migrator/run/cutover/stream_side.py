"""One side of a cut-over and the stream that carries its changes across, by what both databases say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from migrator.model.cutover.record import Effort
from migrator.model.position import Position


@dataclass(frozen=True, slots=True)
class StreamSide:
    """``ports.cutover.CutoverSide``, put together of functions.

    Attributes:
        position: a place in the side's log at or behind everything that is committed now.
        reached: whether everything up to there is applied across.
        passed: describes changes that passed the side's fence; empty: none is known.
        number: moves the side's sequences beyond what is in use.
        structure: digests of the side's tables by name.
        compare: compares what was carried across since the last verdicts (see ``ports.cutover.CutoverSide``).
    """

    position: Callable[[], Position]
    reached: Callable[[Position], bool]
    passed: Callable[[], str]
    number: Callable[[], None]
    structure: Callable[[], Mapping[str, str]]
    compare: Callable[[int, Effort], int]
