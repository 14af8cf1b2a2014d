"""Row writes as their clients know them: provenance, value, and how the transaction ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from verify.history.history import FAILED, OPERATIONS, table_of


@dataclass(frozen=True, slots=True)
class RowWrite:
    """One row write that a client tried; or a run of them, made by one statement over consecutive integer keys.

    Attributes:
        session: client that wrote the row; of a DELETE the one that wrote the removed row.
        number: that client's write number; of a DELETE the removed row's.
        transaction: number of the transaction, rising per client, and no two clients' are the same: rows written
            together share it.
        table: source table.
        key: text of its key; of a run, of the first row.
        kind: ``PUT`` or ``DELETE``.
        value: the row's value after a PUT, the removed row's of a DELETE; None in tables without.
        invoked_us, ended_us: begin and end of the transaction on the run's clock.
        outcome: ``ok``, ``failed`` (also: rolled back by the client) or ``unknown``.
        cause: the server's words when it failed.
        rows: length of the run: its keys and numbers rise by one from row to row, the value is the same in all.
        client: who tried it; differs from ``session`` only for a DELETE.
    """

    session: int
    number: int
    transaction: int
    table: str
    key: str
    kind: int
    value: int | None
    invoked_us: int
    ended_us: int
    outcome: str
    cause: str = ""
    rows: int = 1
    client: int = 0


def operations(writes: Sequence[RowWrite]) -> pa.Table:
    """The history's table OPERATIONS: one row per row write, runs written out."""
    single = [write for write in writes if write.rows == 1]
    names = [name for name in OPERATIONS.names if name != "key"]
    columns: dict[str, Any] = {name: [getattr(write, name) for write in single] for name in names}
    columns["key"] = [write.key for write in single]
    runs = [_written_out(write) for write in writes if write.rows > 1]
    return pa.concat_tables([table_of("operations", columns), *runs])


def _written_out(run: RowWrite) -> pa.Table:
    keys = np.arange(int(run.key), int(run.key) + run.rows)
    columns: dict[str, Any] = {
        field.name: pa.repeat(pa.scalar(getattr(run, field.name), field.type), run.rows)
        for field in OPERATIONS
    }
    columns["key"] = pa.array(keys).cast(pa.string())
    columns["number"] = pa.array(np.arange(run.number, run.number + run.rows), pa.int32())
    return table_of("operations", columns)


class Notes:
    """The row writes of one transaction in progress.

    Attributes:
        writes: so far, their outcome still open unless a savepoint undid them.
    """

    def __init__(self, client: int, transaction: int, invoked_us: int):
        self.writes: list[RowWrite] = []
        self._client = client
        self._transaction = transaction
        self._invoked_us = invoked_us

    def add(
        self, session: int, number: int, table: str, key: str, kind: int, value: int | None, rows: int
    ) -> None:
        """Note one write, or one run of writes."""
        write = RowWrite(
            session, number, self._transaction, table, key, kind, value, self._invoked_us, 0, "", "", rows
        )
        self.writes.append(replace(write, client=self._client))

    def undo(self, mark: int) -> None:
        """The writes from this index on were undone within the transaction."""
        for index in range(mark, len(self.writes)):
            if not self.writes[index].outcome:
                self.writes[index] = replace(
                    self.writes[index], outcome=FAILED, cause="rolled back to a savepoint"
                )

    def end(self, ended_us: int, outcome: str, cause: str) -> list[RowWrite]:
        """All writes with the transaction's end; undone ones stay failed."""
        return [
            replace(write, ended_us=ended_us, outcome=write.outcome or outcome, cause=write.cause or cause)
            for write in self.writes
        ]
