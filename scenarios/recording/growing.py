"""A history table that grows row by row and is held as Arrow batches, not as Python objects."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from verify.history.history import SCHEMAS

_ROWS_A_BATCH = 50_000


class GrowingTable:
    """Rows of one of the history's tables. One thread adds; rows after a mark can be taken back.

    Args:
        name: as in ``verify.history.history.SCHEMAS``.
    """

    def __init__(self, name: str):
        self._schema = SCHEMAS[name]
        self._rows: list[tuple[Any, ...]] = []
        self._batches: list[pa.RecordBatch] = []

    def __len__(self) -> int:
        return len(self._rows) + sum(int(batch.num_rows) for batch in self._batches)

    def add(self, row: tuple[Any, ...]) -> None:
        """Adds one row: a value for each column, in the schema's order."""
        self._rows.append(row)

    def settle(self) -> None:
        """Keeps what was added so far; call it between transactions."""
        if len(self._rows) >= _ROWS_A_BATCH:
            self._pack()

    def mark(self) -> int:
        """A place to go back to, as long as ``settle`` isn't called."""
        return len(self._rows)

    def take_back(self, mark: int) -> list[tuple[Any, ...]]:
        """Removes and returns the rows added since the mark."""
        taken = self._rows[mark:]
        del self._rows[mark:]
        return taken

    def table(self) -> pa.Table:
        """Everything so far."""
        self._pack()
        return pa.Table.from_batches(self._batches, self._schema)

    def _pack(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)
            ]
            self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
            self._rows = []
