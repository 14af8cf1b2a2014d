"""Runs that must be refused, with a named error, and before they write anything on either side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
import pymysql
from psycopg import sql

from migrator.run.failure import Stopping
from scenarios.database import Database
from scenarios.pipeline import PipelineProcess
from scenarios.play.run_result import REFUSED, RESUMES, STALLS
from scenarios.play.stage import Stage
from verify.history.result import CheckResult, Outcome, WitnessCase

_REFUSE_S = 120.0
_OF_A_RUN = {
    "replication slot": "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()",
    "publication": "SELECT pubname FROM pg_publication",
}


@dataclass(frozen=True, slots=True)
class Traces:
    """The traces that a run would leave behind: the name and the content of each place that was looked at."""

    found: tuple[tuple[str, str], ...]

    def compared(self, after: Traces) -> CheckResult:
        """Compares with later traces: the verdict is that nothing changed, or what did."""
        before, now = dict(self.found), dict(after.found)
        changed = [name for name in now if now[name] != before.get(name)]
        cases = tuple(
            WitnessCase(f"{name}: {before.get(name)} before, {now[name]} after", (), ()) for name in changed
        )
        outcome = Outcome.VIOLATED if changed else Outcome.HOLDS
        title = "nothing was written before the refusal"
        return CheckResult("REFUSED", title, outcome, len(now), "things of both sides", len(changed), cases)


def refused(pipeline: PipelineProcess, accepted: Callable[[], bool]) -> tuple[str, str]:
    """Waits until a started run ends or is ``accepted``; returns its ending and its error."""
    deadline = time.monotonic() + _REFUSE_S
    waiting = Stopping()
    while (exited := pipeline.exited()) is None:
        if accepted() or time.monotonic() > deadline:
            return RESUMES, "it was not refused"
        waiting.wait(0.05)
    if exited.code == 2 and exited.error:
        return REFUSED, exited.error
    return STALLS, f"the process ended with exit code {exited.code}; {exited.error or 'it named no error'}"


def untouched(stage: Stage) -> Traces:
    """Looks at everything a run would touch first: target tables, ledger, slot, publication, old tables."""
    found = []
    for sides in stage.workload.tracked:
        found.append(
            (f"rows of the new table {sides.new.table}", _count(stage.target.direct, sides.new.table))
        )
        found.append(
            (f"rows of the old table {sides.old.table}", _count(stage.source.direct, sides.old.table))
        )
    ledger = "SELECT count(*) FROM migrator.ledger WHERE segment > 0"
    found.append(("segments applied by the ledger", _ask(stage.target.direct, ledger, "none")))
    if stage.source.direct.kind == "postgresql":
        found += [(name, _ask(stage.source.direct, query, "none")) for name, query in _OF_A_RUN.items()]
    segments = stage.settings.event_log() / "segments"
    found.append(("segments in the event log", str(len(list(segments.glob("*.json"))))))
    return Traces(tuple(found))


def _count(database: Database, table: str) -> str:
    name = sql.Identifier(table).as_string(None)
    return _ask(database, f"SELECT count(*) FROM {name}", "no table")


def _ask(database: Database, query: str, otherwise: str) -> str:
    """The first row as text; ``otherwise`` for no row, and where what is asked for doesn't exist."""
    connection = database.connect()
    try:
        cursor: Any = connection.cursor()
        cursor.execute(query)
        rows = cursor.fetchall()
    except (psycopg.errors.UndefinedTable, pymysql.err.ProgrammingError):
        return otherwise
    finally:
        connection.close()
    return ", ".join(str(value) for row in rows for value in row) if rows and rows[0][0] != 0 else otherwise
