"""All differences of a verification, grouped by likely cause, most rows first."""

from __future__ import annotations

from dataclasses import dataclass

from verify.tables.result import TableResult, VerifyResult

_WHOLE_ROWS = {
    "missing": "no target row: lost on the way, or deleted in the target",
    "extra": "no source row: a delete was lost, or the row was written into the target by someone else",
    "duplicate": "several rows of one key: the mapping makes them, or the target lacks its key",
    "bad_rows": "refused by the target, and set aside by the run (`migrator rows set-aside`)",
    "set_aside": "not settled: kept changing, or the target did not follow",
}


@dataclass(frozen=True, slots=True)
class LikelyCause:
    """A group of differences with one likely cause.

    Attributes:
        cause: in words.
        rows: their number; a row with two causes counts for both.
        places: tables, or ``table.column``.
        sampled: whether ``rows`` counts explained rows only, not all.
    """

    cause: str
    rows: int
    places: tuple[str, ...]
    sampled: bool


def likely_causes(result: VerifyResult) -> tuple[LikelyCause, ...]:
    """The groups of all tables together."""
    rows: dict[str, int] = {}
    places: dict[str, list[str]] = {}
    sampled: set[str] = set()
    for table in result.tables:
        for cause, number, place, partly in _of_table(table):
            rows[cause] = rows.get(cause, 0) + number
            places.setdefault(cause, []).append(place)
            sampled |= {cause} if partly else set()
    groups = [
        LikelyCause(cause, number, tuple(dict.fromkeys(places[cause])), cause in sampled)
        for cause, number in rows.items()
    ]
    return tuple(sorted(groups, key=lambda group: -group.rows))


def _of_table(table: TableResult) -> list[tuple[str, int, str, bool]]:
    found = [
        (cause, number, f"{table.target}.{column.column}", column.explained_rows < column.unequal_rows)
        for column in table.columns
        for cause, number in column.causes
    ]
    for status, cause in _WHOLE_ROWS.items():
        number = getattr(table.counts, status)
        if number:
            found.append((cause, number, table.target, False))
    return found
