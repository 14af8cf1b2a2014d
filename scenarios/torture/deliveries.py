"""Rows that a tool delivered, collected one by one in delivery order."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from scenarios.recording.growing import GrowingTable
from scenarios.recording.row_version import RowVersion
from verify.history.history import CHUNK, DELETE, LOG, PUT


@dataclass(frozen=True, slots=True)
class Delivery:
    """One row handed to a consumer; fields as in the history's table ``deliveries``."""

    segment: int
    origin: str
    order: int | None
    index: int | None
    table: str
    version: RowVersion
    kind: int


@dataclass(slots=True)
class Deliveries:
    """Rows in the order in which the tool handed them over."""

    rows: list[Delivery] = field(default_factory=list)

    def read(self, segment: int, table: str, version: RowVersion) -> None:
        """A row that came from reading the table."""
        self.rows.append(Delivery(segment, CHUNK, None, None, table, version, PUT))

    def put(self, segment: int, order: int | None, index: int | None, table: str, after: RowVersion) -> None:
        """A change event that leaves this row."""
        self.rows.append(Delivery(segment, LOG, order, index, table, after, PUT))

    def delete(
        self, segment: int, order: int | None, index: int | None, table: str, before: RowVersion
    ) -> None:
        """A change event that removes this row."""
        self.rows.append(Delivery(segment, LOG, order, index, table, before, DELETE))

    @property
    def reads(self) -> int:
        """The number of rows that came from reading the table."""
        return sum(row.origin == CHUNK for row in self.rows)

    def table(self) -> pa.Table:
        """Returns the rows as the history's table ``deliveries``."""
        table = GrowingTable("deliveries")
        for row in self.rows:
            version = row.version
            place = (row.segment, row.origin, row.order, row.index)
            table.add(
                (*place, row.table, version.key, version.session, version.number, row.kind, version.value)
            )
            table.settle()
        return table.table()

    def state(self) -> list[Delivery]:
        """Returns the rows that the simplest consumer holds in the end: per key, the row of its last delivery."""
        last = {(row.table, row.version.key): row for row in self.rows}
        return [row for row in last.values() if row.kind == PUT]
