"""A failed run under hazards made as small as it goes, in words, with the line that plays it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from scenarios.chaos.incident.history import Cell, Row, identity
from scenarios.chaos.incident.incident_file import Incident, unpacked
from scenarios.chaos.incident.of_run import NAME, write
from scenarios.chaos.incident.shrink import shrunk
from scenarios.play.run_result import RunResult
from verify.history.result import Outcome

SMALL = "small.zip"
"""File of a bundle: the smallest incident that shows the failure."""
_LINES = 40
_LONGEST = 60
Shrink = Callable[[Incident, float, Callable[[str], None]], Incident | None]


def smaller(
    result: RunResult, minutes: float, say: Callable[[str], None], shrink: Shrink = shrunk
) -> list[str]:
    """Shrinks the incident of a failed run, and tells what is left of it; without an incident, why there is none.

    ``minutes``: no further attempt begins after so many; with 0 none is made.
    """
    if result.outcome is not Outcome.VIOLATED:
        return []
    file = result.bundle / NAME
    if not file.exists():
        return [
            "no smaller run is known: it isn't the end of the run that is wrong, or it can't become an incident"
        ]
    if not minutes:
        return [f"make it smaller: migrator incident shrink {file} -o {result.bundle / SMALL}"]
    found = shrink(unpacked(file), minutes * 60, say)
    if found is None:
        return [
            "no smaller run is known: without the hazards, and at another pace, the failure doesn't come back"
        ]
    write(result.bundle, found, SMALL)
    lines = list(in_words(found))
    more = [f"... {len(lines) - _LINES} lines more"] if len(lines) > _LINES else []
    return [
        f"the smallest run that fails, of {len(found.structure.tables)} tables:",
        *(f"  {line}" for line in [*lines[:_LINES], *more]),
        f"again: migrator incident replay {result.bundle / SMALL}",
        f"keep it as a test: migrator incident add {result.bundle / SMALL} --to tests/",
    ]


def in_words(incident: Incident) -> Iterator[str]:
    """The rows of the start, then each transaction, a line for each row change."""
    for table, rows in incident.history.start.items():
        for row in rows:
            yield f"start: {table} {_row(row)}"
    for number, transaction in enumerate(incident.history.transactions, 1):
        for change in transaction.changes:
            yield f"transaction {number}: {_change(incident, change.table, change.before, change.after)}"


def _change(incident: Incident, table: str, before: Row | None, after: Row | None) -> str:
    if before is None and after is None:
        return f"truncate {table}"
    if before is None:
        return f"insert {table} {_row(after or {})}"
    names = incident.structure.tables[table].key
    key = _row(dict(zip(names, identity(incident.structure, table, before)[1], strict=True)))
    if after is None:
        return f"delete {table} {key}"
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return f"update {table} {key} to {_row(changed)}"


def _row(row: Row) -> str:
    return ", ".join(f"{name} {_cell(value)}" for name, value in row.items())


def _cell(value: Cell) -> str:
    text = "NULL" if value is None else f"0x{value.hex()}" if isinstance(value, bytes) else repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
