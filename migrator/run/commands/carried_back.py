"""The verdict on a reverse mapping, old table by old table and column by column. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from migrator.model.target import TargetColumn, TargetTable
from migrator.run.commands.round_trip import Trip
from transforms.reverse.compare import Cells

ROWS = "*"
"""Stands for a column where rows themselves don't come back, in what is accepted by name."""
_MOST_KEYS = 3


class Fate(Enum):
    """The ways in which a column comes back."""

    EXACT = "exact"
    LOSSY = "lossy"
    NOT_CARRIED = "not carried"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ColumnBack:
    """One column's verdict.

    Attributes:
        name: of the column; ``ROWS`` for the rows themselves.
        fate: how it comes back.
        text: what is lost, or what stands there instead; empty of an exact one.
        accepted: whether the project accepts by name that it is lossy.
        fatal: whether no new row could be written back.
    """

    name: str
    fate: Fate
    text: str = ""
    accepted: bool = False
    fatal: bool = False

    def refused(self) -> bool:
        """Tells whether it stands in the way: fatal, or lossy and not accepted."""
        return self.fatal or (self.fate is Fate.LOSSY and not self.accepted)


@dataclass(frozen=True, slots=True)
class TableBack:
    """One old table's verdict; see ``Trip`` for what was tried."""

    trip: Trip
    columns: tuple[ColumnBack, ...]

    def of(self, fate: Fate) -> list[ColumnBack]:
        """The columns of one fate."""
        return [one for one in self.columns if one.fate is fate]


def table_back(
    trip: Trip,
    table: TargetTable,
    filled: Collection[str],
    defaults: Mapping[str, str],
    accepted: Collection[str],
) -> TableBack:
    """Judges an old table.

    Args:
        trip: what became of its rows.
        table: as it is written.
        filled: columns that its reverse function gives.
        defaults: the defaults that the old database declares, by column.
        accepted: ``table.column`` of what may be lost; ``table.*`` for rows.
    """
    found = [*_rows(trip, f"{trip.table}.{ROWS}" in accepted)]
    for column in table.columns:
        if column.generated:
            continue
        if column.name in filled:
            found.append(_filled(trip, column.name, f"{trip.table}.{column.name}" in accepted))
        else:
            found.append(_left(column, defaults))
    return TableBack(trip, tuple(found))


def _rows(trip: Trip, accepted: bool) -> Iterator[ColumnBack]:
    found = trip.compared
    if found is None:
        return
    for keys, what in (
        (found.missing, "{} row(s) don't come back"),
        (found.extra, "{} row(s) come back that are no old ones"),
        (found.twice, "{} row(s) come back more than once"),
    ):
        if keys:
            more = ", ..." if len(keys) > _MOST_KEYS else ""
            text = f"{what.format(len(keys))}: {'; '.join(keys[:_MOST_KEYS])}{more}"
            yield ColumnBack(ROWS, Fate.LOSSY, text, accepted)


def _filled(trip: Trip, name: str, accepted: bool) -> ColumnBack:
    cells = None if trip.compared is None else trip.compared.columns.get(name)
    if trip.compared is None or cells is None or not trip.compared.rows:
        return ColumnBack(name, Fate.UNKNOWN)
    if not cells.changed:
        return ColumnBack(name, Fate.EXACT)
    return ColumnBack(name, Fate.LOSSY, _lost(cells, trip.compared.rows), accepted)


def _lost(cells: Cells, rows: int) -> str:
    examples = "; ".join(f"{one.old} came back as {one.back} ({one.key})" for one in cells.examples)
    return f"{cells.changed} of {rows} values come back otherwise: {examples}"


def _left(column: TargetColumn, defaults: Mapping[str, str]) -> ColumnBack:
    if not column.has_default and not column.nullable:
        text = "no reverse function fills it, and it is NOT NULL without a default: no new row can be written"
        return ColumnBack(column.name, Fate.NOT_CARRIED, text, fatal=True)
    default = defaults.get(column.name) or ("NULL" if column.nullable else "the server's own value")
    text = f"old rows keep their value, new ones get {default}"
    return ColumnBack(column.name, Fate.NOT_CARRIED, text)
