"""The observations, hazard by hazard and tool by tool: numbers, verdicts, a table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from scenarios.torture.course import Course
from scenarios.torture.hazards import Hazard
from verify.history.history import CHUNK, History
from verify.history.judge import judge
from verify.history.result import CheckResult, Outcome, overall

CODES = ("D1", "D3", "D4", "D7")
"""The checks that a tool can be judged by that only delivers: of its deliveries, and of the end state that they
make."""
_ENDED_CODES = ("D1",)


@dataclass(frozen=True, slots=True)
class Row:
    """One hazard for one tool.

    Attributes:
        hazard, title: which.
        tool, server: what ran.
        changes: row changes in the source's log.
        dumps, chunks, rows_read: how often the table was read, in how many chunk reads, finding how many rows.
        deliveries: rows delivered in all.
        reads: of them from chunks; ``rows_read - reads`` were held back.
        stale_reads: chunk rows delivered after a newer change event of their key.
        stale_events: change events delivered after a chunk row that already held something newer.
        wrong_keys: keys whose row in the simplest consumer isn't the source's, after everything was delivered.
        verdict: over ``checks``.
        checks: verdict and number of violations per checker.
        witness: the first violation in words, or "".
        ended: why the tool gave up before the end, or "".
    """

    hazard: str
    title: str
    tool: str
    server: str
    changes: int
    dumps: int
    chunks: int
    rows_read: int
    deliveries: int
    reads: int
    stale_reads: int
    stale_events: int
    wrong_keys: int
    verdict: str
    checks: Mapping[str, str]
    witness: str
    ended: str


def judged(hazard: Hazard, course: Course) -> Row:
    """Judges a course. Nothing read or nothing written is unknown, never a pass."""
    history = course.history
    results = judge(history, _ENDED_CODES if course.ended else CODES)
    stale_reads, stale_events = stale(history)
    changes = history.log.num_rows - history.log["position"].to_pylist().count(0)
    reads = history.deliveries["origin"].to_pylist().count(CHUNK)
    return Row(
        hazard=hazard.name,
        title=hazard.title,
        tool=course.tool,
        server=course.server,
        changes=changes,
        dumps=course.dumps,
        chunks=course.chunks,
        rows_read=course.rows_read,
        deliveries=history.deliveries.num_rows,
        reads=reads,
        stale_reads=stale_reads,
        stale_events=stale_events,
        wrong_keys=_wrong_keys(history),
        verdict=_verdict(results, course, changes, reads),
        checks={
            check.code: f"{check.outcome.value} ({check.violations} of {check.checked:,})"
            for check in results
        },
        witness=next((check.witnesses[0].headline for check in results if check.witnesses), ""),
        ended=course.ended,
    )


def stale(history: History) -> tuple[int, int]:
    """(chunk rows, change events) delivered after a newer version of their key: the two ways in which D1 fails."""
    position = {
        (row["table"], row["key"], row["session"], row["number"], row["kind"]): row["position"]
        for row in history.log.to_pylist()
    }
    newest: dict[tuple[str, str], int] = {}
    late = {True: 0, False: 0}
    for row in history.deliveries.to_pylist():
        key = (row["table"], row["key"])
        place = position.get((*key, row["session"], row["number"], row["kind"]))
        if place is None:
            continue  # a version that the log doesn't know: for the checkers to name
        if place < newest.get(key, -1):
            late[row["origin"] == CHUNK] += 1
        newest[key] = max(place, newest.get(key, -1))
    return late[True], late[False]


def _wrong_keys(history: History) -> int:
    sides = [
        {
            (row["table"], row["key"]): (row["session"], row["number"], row["value"])
            for row in side.to_pylist()
        }
        for side in (history.final_source, history.final_target)
    ]
    return sum(sides[0].get(key) != sides[1].get(key) for key in sides[0].keys() | sides[1].keys())


def _verdict(results: Sequence[CheckResult], course: Course, changes: int, reads: int) -> str:
    outcome = overall(results)
    if outcome is Outcome.HOLDS and (course.ended or not course.dumps or not changes or not reads):
        outcome = Outcome.UNKNOWN
    return outcome.value


@dataclass(frozen=True, slots=True)
class Report:
    """All rows of a run, and where it ran."""

    rows: tuple[Row, ...]
    machine: str
    date: str
    command: str
    versions: Mapping[str, str]

    def json(self) -> str:
        """The whole report."""
        return json.dumps(asdict(self), indent=2) + "\n"

    def markdown(self) -> str:
        """The table, tools of one hazard side by side, and what the numbers need as explanation."""
        heads = (
            "hazard | tool | row changes | chunk reads | rows read | delivered from chunks | stale chunk rows"
            " | stale events | keys wrong at the end | verdict"
        )
        lines = [
            f"{self.date}; {self.machine}; " + "; ".join(f"{k} {v}" for k, v in self.versions.items()) + ".",
            "",
            f"`{self.command}`",
            "",
            f"| {heads} |",
            "|---|---|" + "---:|" * 7 + "---|",
            *map(_line, self.rows),
            "",
            *dict.fromkeys(f"- `{row.hazard}`: {row.title}." for row in self.rows),
        ]
        notes = [f"- {row.hazard}, {row.tool}: {row.witness}." for row in self.rows if row.witness]
        return "\n".join([*lines, *(["", "First violation of each:", "", *notes] if notes else []), ""])


def _line(row: Row) -> str:
    numbers = (
        row.changes,
        row.chunks,
        row.rows_read,
        row.reads,
        row.stale_reads,
        row.stale_events,
    )
    wrong = "not comparable" if row.ended else f"{row.wrong_keys:,}"
    verdict = f"**{row.verdict}**" + (f"; ended by itself: {row.ended}" if row.ended else "")
    listed = " | ".join([f"{number:,}" for number in numbers] + [wrong])
    return f"| {row.hazard} | {row.tool} | {listed} | {verdict} |"
