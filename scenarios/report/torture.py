"""The torture suite's result as a table of the report: the same hazards, another tool and this one side by side."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.report.tables import Row, Table
from scenarios.torture.report import Row as Course

_HEAD = (
    "hazard",
    "tool",
    "chunk rows read",
    "stale chunk rows",
    "stale events",
    "keys wrong at the end",
    "verdict",
)
_NOTE = (
    "A stale row is one delivered after a newer version of its key. What a tool delivers is judged, and the end state"
    " that the simplest consumer makes of it. Colours would mislead here: read the verdicts."
)


def torture_table(courses: Sequence[Course]) -> Table:
    """One row a hazard and tool. Another tool's violations are its own: they don't colour this report's verdict."""
    return Table("The same hazards elsewhere", _NOTE, _HEAD, tuple(map(_row, courses)))


def _row(course: Course) -> Row:
    verdict = course.verdict + (f"; ended by itself: {course.ended}" if course.ended else "")
    return Row(
        (
            f"{course.hazard}: {course.title}",
            f"{course.tool} on {course.server}",
            f"{course.rows_read:,}",
            f"{course.stale_reads:,}",
            f"{course.stale_events:,}",
            "not comparable" if course.ended else f"{course.wrong_keys:,}",
            verdict,
        )
    )
