"""The parts of the running migration that a repair needs: its book of requests, its leader, its filled targets."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

from migrator.config.project import Settings
from migrator.errors import RequestError
from migrator.model.requests.request import DumpRequest
from migrator.run.commands.repair import RepairStep, Way, start_repair
from migrator.wiring import parts as wiring
from migrator.wiring.coordination import look, requests
from migrator.wiring.remap import remap_joined
from migrator.wiring.target import filled

_POLL_S = 0.25


def running_leader(settings: Settings) -> str:
    """Returns the leader. Raises ``RequestError`` when nobody leads: a repair goes through the running pipeline."""
    leader = look(settings).leader
    if not leader:
        raise RequestError(
            "nobody runs the migration",
            where=settings.name,
            cause="rows are repaired by the run, in order with the changes it streams",
            remedy="start `migrator run` in another terminal, then repeat the command",
        )
    return leader


def begin_repair(settings: Settings, steps: Sequence[RepairStep]) -> list[str]:
    """Files the requests; joined targets are marked to be derived anew before."""
    for step in steps:
        if step.way is Way.REMAP:
            remap_joined(settings, step.target)
    return start_repair(wiring.request_book(settings), steps)


def still(done: int, requests: int, waiting: Collection[str]) -> str:
    """The state of a repair in words: requests that are done, and joined tables that aren't filled yet."""
    fills = f", {', '.join(sorted(waiting))} still to be derived anew" if waiting else ""
    return f"waiting for the run: {done} of {requests} dump requests done{fills}"


def await_repair(
    settings: Settings, names: Sequence[str], wait_s: float, say: Callable[[str], None] = lambda _: None
) -> list[DumpRequest]:
    """The requests once all are closed and every joined target is filled again; ``say``: gets a line each time
    that one more is.

    Raises ``RequestError`` when that takes too long; what is still open is cancelled then.
    """
    store, deadline = requests(settings), time.monotonic() + wait_s
    joined = {target.name for target in wiring.mapping(settings) if target.grain is not None}
    said = ""
    while True:
        own = [request for request in store.read().requests if request.name() in names]
        left = [request for request in own if request.is_open()]
        waiting = joined - {name for name, _ in filled(settings)}
        if not left and not waiting:
            return own
        if (words := still(len(own) - len(left), len(own), waiting)) != said:
            say(said := words)
        if time.monotonic() >= deadline:
            for request in left:
                store.update(lambda book, request=request: book.cancel(request.id))  # type: ignore[misc]
            raise RequestError(
                "the repair didn't end in time",
                where=", ".join([*(request.id for request in left), *sorted(waiting)]),
                cause=f"the run didn't get to it in {wait_s:g} s",
                remedy="look at `migrator status`; repeat with a longer --wait. What was open is cancelled",
            )
        time.sleep(_POLL_S)
