"""Second reads of keys that were set aside, by grain: the source rows of each key, and a moment later its target row.

For each piece, some grain values of the source:

1. All rows that are linked to them are read in one view, from all their tables.
2. The mapping makes the target rows of just these. Rows whose keys aren't wanted are dropped.
3. Once the ledger has passed the view, the target's rows are read by the keys that are left.

Which piece a key comes from is known only after it was found there. So the first time all pieces are read,
afterwards only those that had one of the keys; until a row of the target turns up whose key no piece makes
any more: it may have moved to another piece, so all of them are asked again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from transforms.frames import arrow_schema
from verify.readers.chunk_keys import Key
from verify.readers.ports import Bracket, Part
from verify.readers.snapshot import SourceTable
from verify.tables.compare.compare import Shape, having, key_names
from verify.tables.compare.mapped_side import canonical_mapped, file_frames, mapping_failure
from verify.tables.sweeps.grain_plan import Grain, GrainPlan
from verify.tables.sweeps.open_keys import OpenKeys, TableSides
from verify.tables.sweeps.pairing import Pairing, Views, Wait
from verify.tables.sweeps.target_keys import CellTexts, TargetKeys

_AHEAD = 2
"""Pieces read ahead. A mapping runs for each before its target rows are read, so rows read far ahead would be old."""


@dataclass(frozen=True, slots=True)
class GrainPiece:
    """Some grain values: the condition of the rows of the grain's own table."""

    grain: Grain
    where: str


@dataclass(frozen=True, slots=True)
class _Half:
    piece: GrainPiece
    bracket: Bracket
    folder: Path


@dataclass(slots=True)
class GrainsRead(Views):
    """The findings of a sweep by grain.

    Attributes:
        pieces: those that had a key that was looked for.
        found: the keys that they had.
        strays: target rows read whose key no piece had.
        target_rows: target rows read.
        skipped: whether there are grains that are too large to be read in one view.
        unread: keys that may be of such a grain, of which nothing was read.
    """

    pieces: list[GrainPiece] = field(default_factory=list)
    found: set[Key] = field(default_factory=set)
    strays: int = 0
    target_rows: int = 0
    skipped: bool = False
    unread: frozenset[CellTexts] = frozenset()


class GrainSweep(Pairing):
    """Looks at some keys of one table.

    Args:
        spark: a running session.
        open_keys: what is looked for.
        plan: how the table's rows are read.
        sides: where it is looked for.
        wait, step: see ``verify.tables.sweeps.pairing.Pairing``.
        directory: made anew; ``mapped.parts`` gets canonical rows that the mapping makes, ``target.parts`` the
            target's as its server prints them, and a folder for each source table the rows behind them.
    """

    def __init__(
        self,
        spark: SparkSession,
        open_keys: OpenKeys,
        plan: GrainPlan,
        sides: TableSides,
        wait: Wait,
        step: Callable[[str], None],
        directory: Path,
    ):
        self._seen = GrainsRead()
        super().__init__(sides.rows.ledger, wait, step, self._seen)
        self._spark, self._mapping, self._plan = spark, open_keys.mapping, plan
        self._tables, self._rows = sides.tables, sides.rows
        self._keys, self._columns = open_keys.keys, open_keys.columns
        self._shape = Shape(tuple(column.name for column in self._columns), self._mapping.key)
        directory.mkdir()
        self._directory = directory
        self.mapped, self.target = directory / "mapped.parts", directory / "target.parts"
        self._old = {name: directory / f"source-{n}.parts" for n, name in enumerate(self._mapping.sources)}
        self._files = 0
        self._by_key = TargetKeys(sides.rows, plan.key, self._view, self.target)

    def everything(self, sizes: Mapping[str, int], most: int) -> Iterator[GrainPiece]:
        """All pieces (``Grain.pieces``)."""
        for grain in self._plan.grains:
            for where in grain.pieces(self._tables, sizes, most):
                if where is None:
                    self._seen.skipped = True
                else:
                    yield GrainPiece(grain, where)

    def look(self, pieces: Iterable[GrainPiece]) -> GrainsRead:
        """Looks for the keys in some pieces, and for their rows in the target."""
        self._begin()
        self._view(self._rows.ledger())  # there may be no row to read
        for half in self._pass(map(self._read, pieces), self._settle, _AHEAD):
            self._seen.pieces.append(half.piece)
        keys = self._keys.select(*key_names(self._shape)).toArrow()
        wanted = list(zip(*(column.to_pylist() for column in keys.columns), strict=True))
        before = self._by_key.found
        lost = [key for key in wanted if key not in self._seen.found]
        if self._seen.skipped:  # a grain that was too large may make them
            self._seen.unread = frozenset(lost)
        else:
            self._by_key.read(lost)
        self._seen.target_rows = self._by_key.found
        self._seen.strays = self._seen.target_rows - before
        return self._seen

    def _begin(self) -> None:
        """Files without rows: no rows at all is an answer, no file is none."""
        self.mapped.mkdir()
        texts = pa.schema([pa.field(column.name, pa.string()) for column in self._columns])
        pq.write_table(texts.empty_table(), self.mapped / "0.parquet")
        for name, folder in self._old.items():
            folder.mkdir()
            pq.write_table(arrow_schema(self._tables.schemas[name]).empty_table(), folder / "0.parquet")

    def _read(self, piece: GrainPiece) -> _Half:
        self._files += 1
        folder = self._directory / f"piece-{self._files}"
        folder.mkdir()
        parts = [
            Part(name, where, folder / f"{number}.parquet")
            for number, (name, where) in enumerate(piece.grain.wheres(piece.where, self._tables.dialect))
        ]
        bracket, _ = self._tables.read(parts)
        return _Half(piece, bracket, folder)

    def _settle(self, half: _Half) -> bool:
        """Reads the target's rows of a piece if it has any of the keys; returns whether it has none."""
        mapped = canonical_mapped(self._mapping, self._frames(half), self._columns)
        with mapping_failure(self._mapping):
            rows = having(mapped, self._keys, self._shape).toArrow()
        if not rows.num_rows:
            rmtree(half.folder)
            return True
        self._keep(half)
        self._files += 1
        pq.write_table(rows, self.mapped / f"{self._files}.parquet")
        keys = set(zip(*(rows[name].to_pylist() for name in self._shape.key), strict=True))
        self._by_key.read([key for key in keys if key not in self._seen.found])
        self._seen.found.update(keys)
        return False

    def _keep(self, half: _Half) -> None:
        """Old rows behind the keys, for whoever reads the report."""
        for number, node in enumerate(half.piece.grain.reach.nodes):
            path = half.folder / f"{number}.parquet"
            path.rename(self._old[node.schema.id.name] / f"{half.folder.name}-{number}.parquet")

    def old_rows(self) -> dict[str, SourceTable]:
        """The source's rows of the pieces that had a key, by table; what hangs on several of them, several
        times."""
        schemas = self._tables.schemas
        return {name: SourceTable(schemas[name], folder, 0) for name, folder in self._old.items()}

    def _frames(self, half: _Half) -> dict[str, DataFrame]:
        """The piece's rows by table, each once: it may play several parts."""
        parts: dict[str, list[Path]] = {}
        for number, node in enumerate(half.piece.grain.reach.nodes):
            parts.setdefault(node.schema.id.name, []).append(half.folder / f"{number}.parquet")
        return file_frames(self._spark, self._mapping, self._tables.schemas, parts)
