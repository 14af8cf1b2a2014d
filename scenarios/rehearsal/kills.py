"""A switch whose leader is killed at every step: a leader that is started again goes on, and dies at the next one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from migrator.config.project import Settings
from migrator.errors import MigratorError
from migrator.model.cutover.record import SWITCH, Phase, Record, Wanted
from migrator.wiring.cutover import book
from scenarios.rehearsal.tool import Tool

POINTS = ("begun", *(f"{phase}{end}" for phase in SWITCH for end in ("", "_done")))
"""The points of a switch in their order, behind ``cutover.``."""
_LOOK_S = 0.2
_LONGEST_S = 300.0


def killed(
    tool: Tool,
    settings: Settings,
    word: str,
    warm: Callable[[], bool],
    say: Callable[[str], None],
    points: Sequence[str] = POINTS,
) -> None:
    """Takes a switch with a kill at every point. A leader without a kill leads in the end.

    Args:
        tool: leads already, or not yet.
        settings: of the project.
        word: ``start`` or ``back``.
        warm: tells whether both ways keep up.
        say: gets what was seen of each point, as it was seen.
        points: some of ``POINTS``, in their order.

    Raises ``MigratorError`` where no end comes.
    """
    asked = False
    for point in points:
        tool.leader.stop()
        began = time.monotonic()
        tool.lead(f"cutover.{point}")
        if not asked:
            tool.wait(warm, "both ways keep up")
            tool.command("cutover", word, "--wait", "0.1")
            asked = True
        if _died(tool, settings):
            say(f"killed at {point}: {_record(settings).phase} after {time.monotonic() - began:.1f} s")
        else:
            say(f"not reached: {point}, a leader that goes on had passed it")
            if _settled(settings):
                break
    tool.leader.stop()
    tool.lead()
    tool.wait(lambda: _settled(settings), "the switch's end", _LONGEST_S)


def _died(tool: Tool, settings: Settings) -> bool:
    """Waits until the leader is killed, or has nothing more to do; tells which. Raises ``MigratorError``."""
    until = time.monotonic() + _LONGEST_S
    while time.monotonic() < until:
        ended = tool.leader.exited()
        if ended is not None and ended.killed:
            return True
        if ended is not None:
            raise MigratorError(
                "`migrator run` ended where it had to be killed",
                where=f"exit code {ended.code}",
                cause=ended.error,
                remedy="correct what it names, then rehearse again",
            )
        if _settled(settings):
            return False
        time.sleep(_LOOK_S)
    raise MigratorError(
        f"a switch didn't go on within {_LONGEST_S:g} s",
        where=f"phase {_record(settings).phase}",
        cause=_record(settings).reason or tool.last_lines(),
        remedy="correct what is named, then rehearse again",
    )


def _settled(settings: Settings) -> bool:
    record = _record(settings)
    return record.phase is Phase.IDLE and record.wanted is Wanted.NOTHING


def _record(settings: Settings) -> Record:
    kept = book(settings)
    try:
        record = kept.read()
    finally:
        kept.close()
    if record is None:
        raise MigratorError("the cut-over has no record", remedy="please report it")
    return record
