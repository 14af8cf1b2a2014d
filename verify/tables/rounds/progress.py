"""One table's way through the rounds: which keys are settled, and how.

A difference seen once proves nothing while users write: the target row may already be newer than the source
row that was read, or (after a wait that failed) still older. So a differing key is *set aside* and looked at
again.

- **Equal** as soon as the target row equals the row that this round's source read maps to, the target
  standing at or after every transaction that this read contains. A match with a row of an *earlier* round is not
  enough: the target has passed the later state, so if it shows the earlier one again, an update is lost.
- **Different** when mapped row and target row were the same in ten consecutive rounds and differ, each target read
  standing at or after its source read. A key that changes in between starts again. A row that is flipped to and fro
  at random is met in one state at the source and in the other at the target with a chance of one in four a round;
  three rounds would call one in thirty such rows different, ten one in half a million. Rounds begin at random
  moments, so that no writer keeps step with them.
- **At once**, without further rounds, when the ledger did not move during the whole round and the log
  holds no change of these tables that isn't applied, up to the end of the source read: then both reads show one
  position. Duplicate keys count at once
  too, if both rows were seen in one view.

Keys that are open after the last round stay set aside.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from migrator.model.progress import BadRow
from transforms.registry import TargetMapping
from verify.readers.chunk_keys import Piece
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.bad_keys import canonical_keys, named_by
from verify.tables.compare.compare import (
    DIFFERENT,
    DUPLICATE,
    EQUAL,
    EXTRA,
    MAPPED_HASH,
    MISSING,
    STATUS,
    TARGET_HASH,
    Comparison,
    Counts,
    Shape,
    Sides,
    key_names,
    stored,
    with_cells,
)
from verify.tables.sweeps.bucket_look import BucketPlan
from verify.tables.sweeps.chunk_choice import ChunkPlan
from verify.tables.sweeps.grain_buckets import Bucket
from verify.tables.sweeps.grain_plan import GrainPlan
from verify.tables.sweeps.grain_sweep import GrainPiece
from verify.tables.sweeps.target_keys import CellTexts

STREAK = "__streak"
_CERTAIN = "__certain"
STEADY_ROUNDS = 10


class Ruling(NamedTuple):
    """The conclusions that one round's reads allow about keys that differ in it.

    Attributes:
        all: whether each of them is settled at once.
        duplicates: whether keys that one side has twice are settled at once.
        counts: whether the round counts in a streak of rounds in which a key didn't change.
    """

    all: bool
    duplicates: bool
    counts: bool


def ruling(reached: bool, still: bool, one_view: bool) -> Ruling:
    """Tells which conclusions a round allows.

    Args:
        reached: whether the target stood at or after everything that the source read contains.
        still: whether both sides stood at one position.
        one_view: whether all rows of one key come from one view on either side. Of two views one may show a row
            where it was, and the other where it went.
    """
    return Ruling(all=still, duplicates=one_view, counts=reached)


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a table in rows, counted up to one more than a chunk has.

    Attributes:
        source: by source table.
        target: of the target table.
    """

    source: Mapping[str, int]
    target: int


@dataclass(slots=True)
class TableProgress:
    """The state of knowledge about one target table so far.

    Attributes:
        target: its mapping.
        columns: the target columns compared, in order.
        shape: their names and the key.
        uncompared: target columns that the mapping does not fill.
        settled: keys settled as not equal, with the cells of both sides (``compare.with_cells``).
        aside: keys set aside after the last round, with their streak; None when there are none.
        shown: keys set aside whose rows ``sides`` has.
        sides: both sides as the last round read them.
        statuses: settled keys per status.
        aside_keys: number of keys set aside.
        unknown: why the table can't be judged, or empty.
        mapped_rows: rows of mapping(source) in the first round.
        target_rows: rows of the target in the first round.
        rounds: the number of rounds so far.
        plan: the plan by which it is verified piece by piece; None where its target's key is not its source's.
        pieces: pieces read in full in the last round.
        apart: why it isn't verified piece by piece; empty if it is, or until that is known.
        sizes: rows of its tables; None until they are counted.
        swept: rows of its source tables, as they were when last swept.
        grains: the plan by which its open keys are read by grain; a text if there is none, with the reason; None
            until it is made.
        grain_pieces: the pieces that had those keys; None if they have to be found.
        buckets: the plan by which its open keys are read where no server knows their grain; a text if there is
            none, with the reason.
        owners: the buckets that had those keys; None if they have to be found.
        method: the way it was verified, for the report.
        bad_rows: the rows that the ledger named as set aside when the target was read last.
        bad_rows_before: those that it named the time before.
        cut: whether the time was up before its rows were read once.
        late: how the two sides stood when the time was up before everything was settled; else empty.
        named: whether only keys are compared that a caller named (``verify.tables.rounds.named_keys``).
    """

    target: TargetMapping
    columns: list[TargetColumnText] = field(default_factory=list)
    shape: Shape | None = None
    uncompared: tuple[str, ...] = ()
    settled: list[DataFrame] = field(default_factory=list)
    aside: DataFrame | None = None
    shown: DataFrame | None = None
    sides: Sides | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    aside_keys: int = 0
    unknown: str = ""
    mapped_rows: int = 0
    target_rows: int = 0
    rounds: int = 0
    plan: ChunkPlan | None = None
    pieces: tuple[Piece, ...] = ()
    apart: str = ""
    sizes: Sizes | None = None
    swept: Mapping[str, int] = field(default_factory=dict)
    grains: GrainPlan | str | None = None
    grain_pieces: tuple[GrainPiece, ...] | None = None
    buckets: BucketPlan | str | None = None
    owners: frozenset[Bucket] | None = None
    method: str = ""
    bad_rows: tuple[BadRow, ...] = ()
    bad_rows_before: tuple[BadRow, ...] = ()
    cut: bool = False
    late: str = ""
    named: bool = False

    @property
    def open(self) -> bool:
        """Returns whether something is left to be found out."""
        return not self.unknown and (self.rounds == 0 or self.cut or self.aside_keys > 0)

    def names_aside(self, rows: Sequence[BadRow]) -> None:
        """Takes the rows that the ledger names as set aside, of whichever target."""
        self.bad_rows_before = self.bad_rows
        self.bad_rows = tuple(one for one in rows if one.target == self.target.name)

    def set_aside(self, still: bool) -> tuple[BadRow, ...] | None:
        """Rows set aside, whose source rows aren't mapped; None where this round proves nothing.

        One that was corrected between the two reads may fail in the view of the source, while the ledger that the
        target was read with doesn't name it any more. Left out, it would hide a row that the target lacks: that
        would be on neither side. So the table is read once more. Where both sides stood still, just those that the
        ledger names fail.
        """
        if not still and not {*map(_name, self.bad_rows_before)} <= {*map(_name, self.bad_rows)}:
            self.shown = None  # its rows are of a round that is forgotten
            return None
        return self.bad_rows

    def agree(self, rows: int) -> None:
        """Takes a first round in which no row had to be read: ``rows`` of both sides have one digest."""
        self._counted(Comparison({}, 0, 0, None), {}, rows)

    def take(
        self,
        comparison: Comparison,
        sides: Sides,
        directory: Path,
        reached: bool,
        still: bool,
        agreed: int = 0,
        one_view: bool = True,
    ) -> None:
        """Settles the keys that this round proves and sets the others aside.

        Args:
            comparison: of all keys in the first round, of the keys set aside in later ones.
            sides: both sides as they were compared.
            directory: gets the Parquet files of the keys that aren't equal.
            reached: whether the target stood at or after everything that the source read contains.
            still: whether both sides stood at one position (see the module's text).
            agreed: rows of both sides beside those, known to be equal by their digests (first round only).
            one_view: whether all rows of one key come from one view on either side.
        """
        self.shape, self.sides = sides.shape, sides
        settled: dict[str, int] = {}
        aside: DataFrame | None = None
        aside_keys = 0
        if comparison.differing is not None:
            judged, settled = self._judged(
                comparison, comparison.differing, directory, reached, still, one_view
            )
            if settled:
                self.settled.append(with_cells(judged.where(_CERTAIN), sides, directory / "settled"))
            aside_keys = sum(n for s, n in comparison.statuses.items() if s != EQUAL) - sum(settled.values())
            if aside_keys:
                aside = judged.where(f"NOT {_CERTAIN}")
        self.aside = self.shown = aside
        self._counted(comparison, settled, agreed, aside_keys)

    def settle_equal(self, keys: Collection[CellTexts], directory: Path) -> None:
        """Settles keys that were set aside and are equal after all; ``directory`` gets a file of the keys left."""
        before = self.aside_keys
        self.part(keys, directory)
        self.statuses[EQUAL] = self.statuses.get(EQUAL, 0) + before - self.aside_keys

    def part(self, keys: Collection[CellTexts], directory: Path) -> DataFrame | None:
        """Takes keys out of those set aside, and returns them. ``directory`` gets files of both parts."""
        if self.aside is None or self.shape is None or not keys:
            return None
        names = key_names(self.shape)
        texts = pa.schema([pa.field(name, pa.string()) for name in names])
        columns = dict(zip(names, map(list, zip(*keys, strict=True)), strict=True))
        wanted = self.aside.sparkSession.createDataFrame(pa.table(columns, schema=texts)).toDF(
            *(f"__wanted_{i}" for i in range(len(names)))
        )
        same = [F.col(name).eqNullSafe(F.col(f"__wanted_{i}")) for i, name in enumerate(names)]
        condition = reduce(lambda a, b: a & b, same)
        number = {"rows": F.count(F.lit(1))}
        apart, _ = stored(self.aside.join(wanted, condition, "left_semi"), directory / "apart", number)
        left, counted = stored(self.aside.join(wanted, condition, "left_anti"), directory / "left", number)
        self.aside_keys = counted["rows"]
        self.aside = self.shown = left if self.aside_keys else None
        return apart

    def put_back(self, apart: DataFrame, number: int) -> None:
        """Sets keys aside again that ``part`` took out; ``number`` is their number."""
        self.aside = apart if self.aside is None else self.aside.unionByName(apart)
        self.aside_keys += number

    def _counted(
        self, comparison: Comparison, settled: dict[str, int], agreed: int, aside_keys: int = 0
    ) -> None:
        if self.rounds == 0:
            self.mapped_rows = comparison.mapped_rows + agreed
            self.target_rows = comparison.target_rows + agreed
            equal = comparison.statuses.get(EQUAL, 0) + agreed
        else:
            # A key that vanished from both sides is agreed upon too, so equal is what no longer differs.
            equal = self.aside_keys - aside_keys - sum(settled.values())
        for status, number in {**settled, EQUAL: equal}.items():
            self.statuses[status] = self.statuses.get(status, 0) + number
        self.aside_keys = aside_keys
        self.rounds += 1

    def _judged(
        self,
        comparison: Comparison,
        differing: DataFrame,
        directory: Path,
        reached: bool,
        still: bool,
        one_view: bool,
    ) -> tuple[DataFrame, dict[str, int]]:
        """The keys that differ, with their streak and whether that settles them, and how many it settles."""
        found = {status: n for status, n in comparison.statuses.items() if status != EQUAL}
        says = ruling(reached, still, one_view)
        if says.all:
            return _marked(differing, F.lit(0), F.lit(True)), found
        duplicate = (F.col(STATUS) == DUPLICATE) & F.lit(says.duplicates)
        if not says.counts or self.aside is None or self.shape is None:
            at_once = {s: n for s, n in found.items() if s == DUPLICATE and says.duplicates}
            return _marked(differing, F.lit(int(says.counts)), duplicate), at_once
        rows = self._with_streak(differing, self.aside, self.shape)
        certain = duplicate | (F.col(STREAK) >= STEADY_ROUNDS)
        judged, counted = stored(
            _marked(rows, F.col(STREAK), certain),
            directory / "judged",
            {s: F.count_if(F.col(_CERTAIN) & (F.col(STATUS) == s)) for s in found},
        )
        return judged, {status: n for status, n in counted.items() if n}

    def aside_sample(self, limit: int, directory: Path) -> DataFrame | None:
        """Returns up to ``limit`` keys set aside, lowest first, with their cells; None when there are none to
        show."""
        if self.shown is None or self.sides is None or self.unknown:
            return None  # unknown: not read in the last round, whose data alone is still there
        some = self.shown.orderBy(*key_names(self.sides.shape)).limit(limit)
        return with_cells(some, self.sides, directory)

    def counts(self) -> Counts:
        """The numbers for the report."""
        found = {
            status: self.statuses.get(status, 0) for status in (EQUAL, DIFFERENT, MISSING, EXTRA, DUPLICATE)
        }
        return Counts(
            compared=sum(found.values()),
            set_aside=self.aside_keys,
            bad_rows=0 if self.unknown else len(self.bad_rows),
            **found,
        )

    def missing_bad_rows(self) -> int:
        """Counts the keys settled as missing whose rows are set aside."""
        differing = self.differing()
        rows = [one for one in self.bad_rows if not one.grain]  # of grains nothing was mapped
        if differing is None or self.shape is None or not rows:
            return 0
        wanted = canonical_keys(differing.sparkSession, rows, self.shape.key, self.columns)
        missing = differing.where(F.col(STATUS) == MISSING)
        return named_by(missing, key_names(self.shape), wanted).count()

    def differing(self) -> DataFrame | None:
        """All rows settled as not equal, or None."""
        return reduce(DataFrame.unionByName, self.settled) if self.settled else None

    @staticmethod
    def _with_streak(differing: DataFrame, aside: DataFrame, shape: Shape) -> DataFrame:
        """Adds in how many consecutive rounds the very same two rows were seen, counting only rounds that count."""
        before = aside.select(
            *[F.col(name).alias(f"__before_{i}") for i, name in enumerate(key_names(shape))],
            F.col(MAPPED_HASH).alias("__before_mapped"),
            F.col(TARGET_HASH).alias("__before_target"),
            F.col(STREAK).alias("__before_streak"),
        )
        same = [
            *[F.col(name).eqNullSafe(F.col(f"__before_{i}")) for i, name in enumerate(key_names(shape))],
            F.col(MAPPED_HASH).eqNullSafe(F.col("__before_mapped")),
            F.col(TARGET_HASH).eqNullSafe(F.col("__before_target")),
        ]
        joined = differing.join(before, reduce(lambda a, b: a & b, same), "left")
        streak = F.coalesce(F.col("__before_streak"), F.lit(0)) + 1
        return joined.select(*differing.columns, streak.alias(STREAK))


def _name(one: BadRow) -> tuple[bool, tuple[str, ...], tuple[str, ...]]:
    return one.grain, one.columns, one.key


def _marked(differing: DataFrame, streak: Column, certain: Column) -> DataFrame:
    return differing.withColumns({STREAK: streak, _CERTAIN: certain})
