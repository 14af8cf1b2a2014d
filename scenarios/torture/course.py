"""One hazard for one tool: from a fresh server to a recorded history."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import psycopg
import pyarrow as pa

from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from scenarios.database import Database
from scenarios.recording.clock import RunClock
from scenarios.recording.growing import GrowingTable
from scenarios.recording.source_log_postgres import PostgresLogRecorder
from scenarios.recording.states import final_state
from scenarios.torture.debezium import Debezium
from scenarios.torture.deliveries import Deliveries
from scenarios.torture.hazards import Hazard
from scenarios.torture.old_table import TABLE, TRACKED, Writers, create
from scenarios.torture.ours import OurCapture
from scenarios.torture.standby import DistantStandby, require_standby
from scenarios.torture.tool import Tool, ToolEnded, wait_until
from verify.history.history import SCHEMAS, Description, History, table_of

ToolName = Literal["debezium", "ours"]
_DUMP_EVERY_S = 0.15
_WARM_UP_S, _WARM_UP_RATE = 5, 300
_MAIN_NUMBERS = 1_000_000
"""Above every number that the warm-up gives to a write."""
_GHOST = "ghost"
_WAITING_COMMITS, _GHOST_KEYS = 8, 200
_CAPTURE_ROLE = "capture"


@dataclass(frozen=True, slots=True)
class Course:
    """The result of one hazard for one tool.

    Attributes:
        tool: what ran, with its version.
        server: likewise.
        history: the source's log, what the tool delivered, and both final states (see ``recorded``).
        dumps: how often the table was read as a whole.
        chunks, rows_read: chunk reads, and rows that they found.
        ended: why the tool gave up before the end, or "".
    """

    tool: str
    server: str
    history: History
    dumps: int
    chunks: int
    rows_read: int
    ended: str


@dataclass(frozen=True, slots=True)
class _Bed:
    """A fresh server with the table; ``admin`` writes, ``capture`` is the role of the tools."""

    admin: Database
    capture: Database
    server: str


def run(
    hazard: Hazard, tool: ToolName, *, seconds: int, seed: int, folder: Path, most_dumps: int | None = None
) -> Course:
    """Runs it.

    Args:
        hazard: what to do.
        tool: to whom.
        seconds: how long the writers write.
        seed: of the writers.
        folder: existing; gets the logs.
        most_dumps: no more dumps than this, so that tools can be compared; None for as many as the time allows.
    """
    with ExitStack() as stack:
        bed = _bed(stack, hazard)
        clock = RunClock.started_now()
        ended = ""
        with (
            _recorder(bed.admin, clock) as recorder,
            closing(_tool(tool, hazard, bed.capture, folder)) as tested,
        ):
            dumps = _Dumps(tested, most_dumps)
            try:
                if hazard.standby == "ghost":
                    _hanging_commits(bed.admin, dumps, seconds)
                else:
                    _warm_up(tested, hazard, bed.admin, seed, folder)
                    _under_load(bed.admin, hazard, dumps, seconds, seed, folder)
                tested.drain()
            except ToolEnded as error:
                ended = error.cause or error.what
        log = recorder.log.table()
        description = Description(
            scenario=f"torture {hazard.name}",
            engine="postgresql",
            seed=seed,
            tables=(TRACKED.table,),
            drained=not ended,
            halted=ended,
            versions={"tool": tested.version, "server": bed.server},
        )
        final_source = final_state(bed.admin, [TRACKED], "old")
        return Course(
            tool=tested.version,
            server=bed.server,
            history=recorded(description, log, tested.deliveries(), final_source),
            dumps=dumps.done,
            chunks=tested.chunks,
            rows_read=tested.rows_read,
            ended=ended,
        )


def recorded(description: Description, log: pa.Table, found: Deliveries, final_source: pa.Table) -> History:
    """The history of a course.

    The consumer is the simplest there is: per key the last delivery wins. What it holds in the end is
    recorded as one target commit at the end of the log, so that the checkers of target states judge it too.
    """
    commits, changes, final = (GrowingTable(name) for name in ("commits", "changes", "final_target"))
    last_order = max(log["order"].to_pylist(), default=0)
    segment = found.rows[-1].segment if found.rows else 0
    commits.add((1, 1, segment, last_order, json.dumps({TABLE: True}), 0))
    for row in found.state():
        version = row.version
        columns = (row.table, version.key, version.session, version.number, row.kind, version.value)
        changes.add((1, *columns))
        final.add(columns)
    tables = {
        "log": log,
        "deliveries": found.table(),
        "commits": commits.table(),
        "changes": changes.table(),
        "final_source": final_source,
        "final_target": final.table(),
    }
    return History(
        description, **tables, **{name: table_of(name, {}) for name in SCHEMAS if name not in tables}
    )


# -- the server -------------------------------------------------------------------------------------------------


def _bed(stack: ExitStack, hazard: Hazard) -> _Bed:
    folder = stack.enter_context(scratch_directory("migrator-torture-"))
    server = stack.enter_context(EmbeddedPostgres(folder / "old"))
    server.create_database("old")
    admin = Database("postgresql", server.host, server.port, "old", server.superuser)
    create(admin, hazard.writing.keys)
    with admin.postgres(autocommit=True) as connection:
        connection.execute(f'CREATE ROLE "{_CAPTURE_ROLE}" SUPERUSER LOGIN REPLICATION')
        for setting, value in hazard.capture_role.items():
            connection.execute(f'ALTER ROLE "{_CAPTURE_ROLE}" SET "{setting}" = \'{value}\'')
        row = connection.execute("SHOW server_version").fetchone()
    return _Bed(admin, replace(admin, user=_CAPTURE_ROLE), f"PostgreSQL {row[0] if row else '?'}")


@contextmanager
def _recorder(admin: Database, clock: RunClock) -> Iterator[PostgresLogRecorder]:
    """The log from here on, complete at the end."""
    recorder = PostgresLogRecorder(admin, [TRACKED], clock)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()


def _tool(name: ToolName, hazard: Hazard, old: Database, folder: Path) -> Tool:
    if name == "debezium":
        return Debezium(old, folder, read_only=hazard.read_only)
    return OurCapture(old, folder)


# -- the hazards ------------------------------------------------------------------------------------------------


class _Dumps:
    """Asks for dumps and counts them."""

    def __init__(self, tool: Tool, most: int | None):
        self._tool = tool
        self._most = most
        self.done = 0

    def enough(self) -> bool:
        """Returns whether there were as many dumps as there may be."""
        return self._most is not None and self.done >= self._most

    def every_s(self, seconds: float) -> float:
        """The pace that spreads them evenly over so much time."""
        return seconds / self._most if self._most is not None else _DUMP_EVERY_S

    def once_more(self) -> None:
        """Another dump of the table; returns when its rows are delivered."""
        self._tool.dump()
        self.done += 1


def _under_load(
    admin: Database, hazard: Hazard, dumps: _Dumps, seconds: int, seed: int, folder: Path
) -> None:
    """The table is read again and again, evenly spread, while the writers write."""
    with ExitStack() as stack:
        if hazard.standby == "distant":
            stack.enter_context(DistantStandby(admin, hazard.standby_ms / 1000))
        writers = Writers(admin, hazard.writing, seconds, seed, folder, after=_MAIN_NUMBERS)
        stack.callback(writers.kill)
        due_s = time.monotonic()
        while writers.running and not dumps.enough():
            wait_s = due_s - time.monotonic()
            if wait_s > 0:
                time.sleep(wait_s)  # the pace of the dumps; nothing depends on it
            due_s = max(due_s + dumps.every_s(seconds), time.monotonic())
            dumps.once_more()
        writers.wait()


def _warm_up(tool: Tool, hazard: Hazard, admin: Database, seed: int, folder: Path) -> None:
    """A few slow writes, all delivered before the hazard begins: a JVM that has just started lags behind for
    long."""
    slow = replace(hazard.writing, rate_per_s=_WARM_UP_RATE)
    writers = Writers(admin, slow, _WARM_UP_S, seed, folder)
    try:
        writers.wait()
    finally:
        writers.kill()
    tool.drain()


def _hanging_commits(admin: Database, dumps: _Dumps, seconds: int) -> None:
    """Rounds of: some commits hang in the log, unseen by any SELECT; the table is read; the commits return."""
    deadline_s = time.monotonic() + seconds
    with ExitStack() as stack:
        probing, *sessions = (stack.enter_context(admin.postgres()) for _ in range(1 + _WAITING_COMMITS))
        stack.callback(require_standby, admin, "")  # before the sessions are closed: they may still wait
        number = 0
        while time.monotonic() < deadline_s and not dumps.enough():
            number += 1
            require_standby(admin, _GHOST)
            commits = [_first_to_hang(admin, probing)]
            commits += [_hanging_commit(session, place, number) for place, session in enumerate(sessions, 1)]
            # One may slip through: the server's processes take a new setting over one after the other.
            wait_until(partial(_all_hang, admin, commits), "the wait of the commits")
            dumps.once_more()
            require_standby(admin, "")
            for commit in commits:
                commit.join()


def _first_to_hang(admin: Database, session: psycopg.Connection[tuple[Any, ...]]) -> threading.Thread:
    """The COMMIT of a transaction without rows that waits, in its own thread, after some that didn't.

    The server requires the standby from the moment on at which one of its processes has taken the setting over.
    """
    while True:
        # It must be in the log, or nobody waits for it, and no reader of the log may be told of it.
        session.execute("DROP TABLE IF EXISTS probe; CREATE TEMPORARY TABLE probe ()")
        probe = _committing(session, "probe")
        wait_until(partial(_all_hang, admin, [probe]), "the wait of a commit, or its end")
        if probe.is_alive():
            return probe


def _committing(session: psycopg.Connection[tuple[Any, ...]], name: str) -> threading.Thread:
    thread = threading.Thread(target=session.commit, name=f"commit-{name}", daemon=True)
    thread.start()
    return thread


def _hanging_commit(
    session: psycopg.Connection[tuple[Any, ...]], place: int, number: int
) -> threading.Thread:
    """Updates one key, another one in every round, in a transaction whose COMMIT waits in its own thread."""
    session.execute("SET synchronous_commit = on")
    key = ((number - 1) * _WAITING_COMMITS + place - 1) % _GHOST_KEYS + 1
    session.execute(
        f'UPDATE "{TABLE}" SET session = %s, number = %s, value = value + 1 WHERE id = %s',
        [place, number, key],
    )
    return _committing(session, str(place))


def _all_hang(admin: Database, commits: Sequence[threading.Thread]) -> bool:
    """Tells whether every commit waits or has returned, and one at least waits."""
    returned = sum(not commit.is_alive() for commit in commits)
    return returned == len(commits) or _waiting(admin) + returned >= len(commits)


def _waiting(admin: Database) -> int:
    with admin.postgres(autocommit=True) as connection:
        row = connection.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND usename = current_user"
        ).fetchone()
    return int(row[0]) if row else 0
