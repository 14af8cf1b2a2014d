"""Whole tables chunk by chunk: every source table of some mappings, the wait for the ledger, every target table.

For mappings that make their rows of more than one source row, or under keys that the source doesn't have, so
that no chunk of the source belongs to a chunk of the target. Each chunk is read in a view of its own, by the
order of its own table's key, and the rows of all chunks are mapped and compared together.

Every chunk of the target comes from a transaction whose ledger has passed every view of the source. So a row that was
not written while the tables were read is read in one and the same state on both sides. A row that was written
meanwhile may be read in any of its states, beside rows from before or after: its key may look different although it
is equal. Such a key is set aside, as after any round, and read again: by the grain it depends on where that is
possible (``verify.tables.sweeps.grain_sweep``), else with all rows of its tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from verify.readers.chunk_keys import Dialect, Key, KeyColumn, KeyRange, condition, cut
from verify.readers.key_kinds import source_kind, target_kind
from verify.readers.ports import (
    Bracket,
    ChunkedSource,
    ChunkedTarget,
    Part,
    SourceTables,
    TargetChunks,
)
from verify.readers.snapshot import (
    LogPlace,
    SourceSnapshot,
    SourceTable,
    TargetRowsText,
    TargetSnapshot,
)
from verify.tables.sweeps.pairing import CHUNK_READ, TARGET_READ, Pairing, Views, Wait

NamedKinds = Sequence[tuple[str, str]]
"""Names of a key's columns, with their kinds."""


@dataclass(frozen=True, slots=True)
class TablesRead:
    """The rows that a sweep read, in the form of snapshots.

    Attributes:
        source: the old rows.
        target: the new ones.
        views: what is known of the views they come from.
        chunks: their number, by source table and by target table.
    """

    source: SourceSnapshot
    target: TargetSnapshot
    views: Views
    chunks: tuple[Mapping[str, int], Mapping[str, int]]

    def chunks_of(self, sources: Sequence[str], target: str) -> int:
        """Counts the chunks of one target table and of all source tables that its mapping reads."""
        old, new = self.chunks
        return sum(old[name] for name in sources) + new[target]


def source_key(tables: SourceTables, engine: str, name: str) -> NamedKinds | str:
    """The primary key by which a source table is cut, or why it can't be."""
    schema = tables.schemas[name]
    if not schema.key:
        return f"source table {name} has no primary key"
    columns = {column.name: column for column in schema.columns}
    found = []
    for key in schema.key:
        kind = source_kind(engine, columns[key])
        if kind is None:
            return f"source table {name} can't be cut by key column {key} ({columns[key].source_type})"
        found.append((key, kind))
    return found


def target_key(rows: TargetChunks, engine: str, key: Sequence[str]) -> list[KeyColumn] | str:
    """The key by which a target table is cut, and by which its rows are found; or why it can't be."""
    columns = {column.name: column for column in rows.columns}
    found = []
    for name in key:
        kind = target_kind(engine, columns[name]) if name in columns else None
        if kind is None:
            native = f" ({columns[name].native})" if name in columns else ""
            return f"the target can't be cut by key column {name}{native}"
        found.append(KeyColumn(name, name, kind))
    if not rows.has_key(key):
        return "the target has no unique index of just the key that could find its rows"
    return found


class TableSweep(Pairing):
    """Sweeps over whole tables.

    Args:
        source, target: readers of both.
        kinds: their engines (``verify.readers.engines.JUDGED``).
        wait, step: see ``verify.tables.sweeps.pairing.Pairing``; the wait is for all of the source.
        rows: rows in a chunk.
        directory: made anew; gets a folder for each table.
    """

    def __init__(
        self,
        source: ChunkedSource,
        target: ChunkedTarget,
        kinds: tuple[str, str],
        wait: Wait,
        step: Callable[[str], None],
        rows: int,
        directory: Path,
    ):
        self._seen = Views()
        super().__init__(target.ledger, wait, step, self._seen)
        self._source, self._target, self._kinds = source, target, kinds
        self._rows, self._directory = rows, directory
        self._brackets: list[Bracket] = []
        self._chunks: tuple[Counter[str], Counter[str]] = Counter(), Counter()

    def read(self, names: Sequence[str], targets: Mapping[str, Sequence[str]]) -> TablesRead:
        """Source tables by name, then target tables by name with their keys, all of which can be cut."""
        self._directory.mkdir()
        with self._source.tables(names) as tables:
            old = {name: self._old(tables, name, number) for number, name in enumerate(names)}
        self._note(self._brackets)
        new = {name: self._new(name, key, number) for number, (name, key) in enumerate(targets.items())}
        self._step(TARGET_READ)
        low = self._seen.low or LogPlace(-1, "")
        return TablesRead(
            SourceSnapshot(low, self._seen.high, old),
            TargetSnapshot(self._seen.ledger, new),
            self._seen,
            self._chunks,
        )

    def _old(self, tables: SourceTables, name: str, number: int) -> SourceTable:
        key = source_key(tables, self._kinds[0], name)
        assert not isinstance(key, str)
        folder, rows = self._folder(f"source-{number}"), 0
        for where, path in self._ranges(
            folder, key, tables.dialect, lambda w: tables.end(name, key, w, self._rows)
        ):
            self._step(CHUNK_READ)
            bracket, found = tables.read([Part(name, where, path)])
            self._chunks[0][name] += 1
            self._brackets.append(bracket)
            rows += found
        return SourceTable(tables.schemas[name], folder, rows)

    def _new(self, name: str, key: Sequence[str], number: int) -> TargetRowsText:
        folder, rows = self._folder(f"target-{number}"), 0
        with self._target.chunks(name) as chunks:
            columns = target_key(chunks, self._kinds[1], key)
            assert not isinstance(columns, str)
            named = [(column.target, column.kind) for column in columns]
            for where, path in self._ranges(
                folder, named, chunks.dialect, lambda w: chunks.end(columns, w, self._rows)
            ):
                self._step(CHUNK_READ)
                ledger, found = chunks.read(where, path)
                self._chunks[1][name] += 1
                self._view(ledger)
                rows += found
            return TargetRowsText(name, chunks.columns, folder, rows)

    @staticmethod
    def _ranges(
        folder: Path, key: NamedKinds, dialect: Dialect, end: Callable[[str], Key | None]
    ) -> Iterator[tuple[str, Path]]:
        """The conditions of a table's chunks, one after the other, and where their rows belong."""
        names, kinds = [name for name, _ in key], [kind for _, kind in key]

        def said(piece: KeyRange) -> str:
            return condition(piece, names, kinds, dialect)

        for number, piece in enumerate(cut(lambda after: end(said(KeyRange(after))))):
            yield said(piece), folder / f"{number}.parquet"

    def _folder(self, name: str) -> Path:
        folder = self._directory / f"{name}.parts"
        folder.mkdir()
        return folder
