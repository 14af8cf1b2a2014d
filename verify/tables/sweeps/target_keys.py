"""Rows of a target table found by their keys, in lists, each row once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from verify.readers.chunk_keys import KeyColumn, condition, is_written, lists_of
from verify.readers.ports import TargetChunks
from verify.readers.snapshot import LedgerState

KEYS_IN_A_LIST = 500
CellTexts = tuple[str | None, ...]
"""The key of a target row in canonical form."""


class TargetKeys:
    """Reads rows by key.

    Args:
        rows: the table.
        key: its key columns.
        view: gets the ledger of each view.
        folder: made anew, with a file without rows: Spark reads that as no rows, and fails on a folder without files.
    """

    def __init__(
        self,
        rows: TargetChunks,
        key: Sequence[KeyColumn],
        view: Callable[[LedgerState | None], None],
        folder: Path,
    ):
        self._rows, self._view, self._folder = rows, view, folder
        self._names = [column.target for column in key]
        self._kinds = [column.kind for column in key]
        self._files = 0
        self._seen: set[CellTexts] = set()
        folder.mkdir()
        texts = [pa.field(column.name, pa.string()) for column in rows.columns if not column.generated]
        pq.write_table(pa.schema(texts).empty_table(), folder / "0.parquet")

    @property
    def found(self) -> int:
        """Rows read so far."""
        return len(self._seen)

    def read(self, keys: Sequence[CellTexts]) -> None:
        """Reads the rows of some keys; a key that can't be written in the server's SQL has none."""
        whole = [tuple(map(str, key)) for key in keys if None not in key]
        said = [key for key in whole if is_written(key, self._kinds, self._rows.dialect)]
        for piece in lists_of(said, KEYS_IN_A_LIST):
            self._files += 1
            path = self._folder / f"{self._files}.parquet"
            where = condition(piece, self._names, self._kinds, self._rows.dialect)
            ledger, _ = self._rows.read(where, path)
            self._view(ledger)
            self._once(path)

    def _once(self, path: Path) -> None:
        """Drops rows that another list brought: to some collations two of the keys are one."""
        rows = pq.read_table(path)
        keys = list(zip(*(rows[name].to_pylist() for name in self._names), strict=True))
        new = [key not in self._seen for key in keys]
        self._seen.update(keys)
        if not all(new):
            pq.write_table(rows.filter(pa.array(new, pa.bool_())), path)
