"""Clients of both sides that fail over by themselves, and observers of either side."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psycopg
import pymysql

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.faults.session import query
from scenarios.row_writes import RowWrite
from scenarios.scenario import WorkloadSpec
from scenarios.two_sides import FENCED, FailsOver
from scenarios.workload import Place, Provenance, Workload
from scenarios.workloads.counters import states
from scenarios.workloads.counters.writers import CLICK, TALLY, Counters
from verify.two_sides.history import FAILED, NEW, OK, OLD, Read, State, Write

_LOOK_S = 0.4
_SIDES = {CLICK.old.table: OLD, CLICK.new.table: NEW}


_JOBS_RATE_PER_S = 8.0
"""Row changes per second of each client that never fails over."""
_TAKEN = "uplicate "
"""Word of every server for a key that is taken."""
_READ_S = 0.1
_FIRST_JOB = 50
"""Number of the first of them as a client."""


class Application(FailsOver):
    """Counts on whichever side takes it; whoever is refused by a fence goes to the other one.

    Args:
        places: the old side and the new one, each with what is done there.
        spec: how many clients, how fast.
        seed: decides what each client draws.
        now_us: the history's clock.
    """

    def __init__(self, places: tuple[Place, Place], spec: WorkloadSpec, seed: int, now_us: Callable[[], int]):
        self._sides = places
        self._open = places[0]
        super().__init__(
            places[0].database,
            places[0].actions,
            seed=seed,
            rate_per_s=spec.rate_per_s or None,
            threads=spec.sessions,
            provenance=Provenance(now_us),
        )


class Clients:
    """An application that fails over, and on either side a forgotten job that goes on asking the same database.

    Args:
        sides: both databases as the application logs in, by side.
        spec, seed, now_us: see ``Application``.
    """

    def __init__(
        self, sides: Mapping[str, Database], spec: WorkloadSpec, seed: int, now_us: Callable[[], int]
    ):
        counters = Counters()
        places = (
            Place(sides[OLD], tuple(counters.actions(spec))),
            Place(sides[NEW], tuple(counters.new_actions(spec))),
        )
        jobs = [
            Workload(
                place.database,
                place.actions,
                seed=seed + number,
                rate_per_s=_JOBS_RATE_PER_S,
                threads=1,
                provenance=Provenance(now_us, first_client=_FIRST_JOB + number),
            )
            for number, place in enumerate(places, 1)
        ]
        self._all: tuple[Workload, ...] = (Application(places, spec, seed, now_us), *jobs)
        self._started: list[Workload] = []

    def start(self) -> None:
        """Starts the application and the old side's job."""
        self._start(*self._all[:2])

    def start_on_new_side(self) -> None:
        """Starts the new side's job: once a plan is accepted, and that side fenced, nobody is to get through."""
        if self._all[2] not in self._started:
            self._start(self._all[2])

    def _start(self, *clients: Workload) -> None:
        for one in clients:
            self._started.append(one)
            one.start()

    def stop(self) -> None:
        """Ends all of them. Raises what ended one early."""
        for one in self._started:
            one.stop()

    def written(self) -> list[Write]:
        """Returns the clicks so far."""
        return [_write(one) for client in self._all for one in client.report().writes if one.table in _SIDES]

    def wait_for(self, writes: int, limit_s: float) -> None:
        """Waits until so many clicks are acknowledged, or the limit is over."""
        until = time.monotonic() + limit_s
        while sum(map(self.acknowledged, (OLD, NEW))) < writes and time.monotonic() < until:
            self._all[0].wait(0.01)

    def acknowledged(self, side: str) -> int:
        """Returns how many clicks one side has acknowledged so far."""
        found = (one for client in self._all for one in client.report().writes)
        return sum(one.outcome == OK and _SIDES.get(one.table) == side for one in found)

    def refused(self) -> int:
        """Returns how many transactions were refused by a fence."""
        causes = (one.cause for client in self._all for one in client.report().operations)
        return sum(FENCED in cause for cause in causes)


def _write(one: RowWrite) -> Write:
    collided = one.outcome == FAILED and _TAKEN in one.cause
    return Write(
        one.client,
        one.number,
        _SIDES[one.table],
        one.key,
        one.invoked_us,
        one.ended_us,
        one.outcome,
        collided,
    )


class Reader:
    """A client that reads wherever reads are pointed.

    Args:
        sides: both databases as the application logs in, by side.
        pointed: file that the hook for reads leaves the side in; without it reads are on the old one.
        now_us: the history's clock.
    """

    def __init__(self, sides: Mapping[str, Database], pointed: Path, now_us: Callable[[], int]):
        self._sides, self._pointed, self._now_us = sides, pointed, now_us
        self._halt = threading.Event()
        self._reads: list[Read] = []
        self._thread = threading.Thread(target=self._look, name="reader", daemon=True)

    def start(self) -> None:
        """Starts it."""
        self._thread.start()

    def stop(self) -> tuple[Read, ...]:
        """Ends it; returns its reads."""
        self._halt.set()
        if self._thread.is_alive():
            self._thread.join()
        return tuple(self._reads)

    def _look(self) -> None:
        tables = {OLD: TALLY.old.table, NEW: TALLY.new.table}
        while not self._halt.wait(_READ_S):
            asked = self._now_us()
            side = self._pointed.read_text() if self._pointed.exists() else OLD
            if side not in self._sides:
                continue  # the hook is writing the file
            try:
                query(self._sides[side], f'SELECT count(*) FROM "{tables[side]}"')
            except (MigratorError, psycopg.Error, pymysql.err.Error):
                continue  # a fault keeps the server from answering
            self._reads.append(Read(asked, self._now_us(), side))


class Observers:
    """Reads both sides again and again, each in snapshots. ``seen``: so far, in order."""

    def __init__(self, sides: Mapping[str, Database], now_us: Callable[[], int]):
        self._sides, self._now_us = sides, now_us
        self._halt = threading.Event()
        self._lock = threading.Lock()
        self._seen: list[State] = []
        self._threads = [
            threading.Thread(target=self._look, args=(side,), name=f"observer-{side}", daemon=True)
            for side in sides
        ]

    def start(self) -> None:
        """Starts them."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> list[State]:
        """Ends them; returns the states in their order: of equal ones in a row the first and the last."""
        self._halt.set()
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        with self._lock:
            return sorted(self._seen, key=lambda one: one.at)

    def _look(self, side: str) -> None:
        before, same = None, None
        while not self._halt.wait(_LOOK_S):
            try:
                found = states.state(self._sides[side], side, self._now_us())
            except (MigratorError, psycopg.Error, pymysql.err.Error):
                continue  # a fault keeps the server from answering
            if before is not None and (found.keys, found.wrong) == (before.keys, before.wrong):
                same = found
                continue
            with self._lock:
                self._seen += [*filter(None, [same]), found]
            before, same = found, None
        with self._lock:
            self._seen += filter(None, [same])
