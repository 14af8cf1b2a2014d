"""One table's way through the rounds: which keys are settled, and how.

A difference seen once proves nothing while users write: the target row may already be newer than the source row that
was read, or (after a wait that failed) still older. So a differing key is *set aside* and looked at again.

- **Equal** as soon as the target row equals the row that this round's source read maps to, the target standing at or
  after every transaction that this read contains. A match with a row witnessed in an *earlier* round is not enough:
  the target is known to have passed the later state, so showing the earlier one again would be exactly a lost update.
- **Different** when mapped row and target row were the same in three consecutive rounds and differ, each target read
  standing at or after its source read. A key that changes in between starts again.
- **At once**, without further rounds, when the ledger did not move during the whole round and nothing of these tables
  waits in the log up to the end of the source read: then both reads show one position. Duplicate keys count at once
  too: both rows were seen in one snapshot.

What is left after the last round stays set aside.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.registry import TargetMapping
from verify.compare import (
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
    key_names,
)
from verify.snapshot import TargetColumnText

STREAK = "__streak"
_CERTAIN = "__certain"
STEADY_ROUNDS = 3


@dataclass(slots=True)
class TableProgress:
    """What is known about one target table so far.

    Attributes:
        target: its mapping.
        columns: the target columns compared, in order.
        shape: their names and the key.
        uncompared: target columns that the mapping does not fill.
        settled: rows settled as not equal, laid out as ``Comparison.differing``.
        aside: rows set aside after the last round, with their streak; None when there are none.
        statuses: settled keys per status.
        aside_keys: number of keys set aside.
        unknown: why the table can't be judged, or empty.
        mapped_rows: rows of mapping(source) in the first round.
        target_rows: rows of the target in the first round.
        rounds: rounds made.
    """

    target: TargetMapping
    columns: list[TargetColumnText] = field(default_factory=list)
    shape: Shape | None = None
    uncompared: tuple[str, ...] = ()
    settled: list[DataFrame] = field(default_factory=list)
    aside: DataFrame | None = None
    statuses: dict[str, int] = field(default_factory=dict)
    aside_keys: int = 0
    unknown: str = ""
    mapped_rows: int = 0
    target_rows: int = 0
    rounds: int = 0

    def take(self, comparison: Comparison, shape: Shape, directory: Path, reached: bool, still: bool) -> None:
        """Settles what this round settles and sets the rest aside.

        Args:
            comparison: of all keys in the first round, of the keys set aside in later ones.
            shape: its columns and key.
            directory: gets the Parquet file of the keys set aside.
            reached: whether the target stood at or after everything that the source read contains.
            still: whether both sides stood at one position (see the module's text).
        """
        self.shape = shape
        settled: dict[str, int] = {}
        aside: DataFrame | None = None
        aside_keys = 0
        if comparison.differing is not None:
            judged = self._judged(comparison.differing, shape, directory, reached, still)
            counts = judged.groupBy(_CERTAIN, STATUS).count().collect()
            settled = {row[STATUS]: int(row["count"]) for row in counts if row[_CERTAIN]}
            aside_keys = sum(int(row["count"]) for row in counts if not row[_CERTAIN])
            if settled:
                self.settled.append(judged.where(_CERTAIN))
            if aside_keys:
                aside = judged.where(f"NOT {_CERTAIN}")
        if self.rounds == 0:
            self.mapped_rows, self.target_rows = comparison.mapped_rows, comparison.target_rows
            equal = comparison.statuses.get(EQUAL, 0)
        else:
            # A key that vanished from both sides is agreed upon too, so equal is what no longer differs.
            equal = self.aside_keys - aside_keys - sum(settled.values())
        for status, number in {**settled, EQUAL: equal}.items():
            self.statuses[status] = self.statuses.get(status, 0) + number
        self.aside, self.aside_keys = aside, aside_keys
        self.rounds += 1

    def _judged(
        self, differing: DataFrame, shape: Shape, directory: Path, reached: bool, still: bool
    ) -> DataFrame:
        """The rows that differ, with their streak and whether that settles them; stored, so that it is made once."""
        certain = F.col(STATUS) == DUPLICATE
        if still:
            certain = F.lit(True)
        elif reached:
            certain = certain | (F.col(STREAK) >= STEADY_ROUNDS)
        stored = str(directory / "judged")
        rows = self._with_streak(differing, shape, reached).withColumn(_CERTAIN, certain)
        rows.write.mode("overwrite").parquet(stored)
        return differing.sparkSession.read.parquet(stored)

    def counts(self) -> Counts:
        """The numbers for the report."""
        found = {
            status: self.statuses.get(status, 0) for status in (EQUAL, DIFFERENT, MISSING, EXTRA, DUPLICATE)
        }
        return Counts(compared=sum(found.values()), set_aside=self.aside_keys, **found)

    def differing(self) -> DataFrame | None:
        """All rows settled as not equal, or None."""
        return reduce(DataFrame.unionByName, self.settled) if self.settled else None

    def _with_streak(self, differing: DataFrame, shape: Shape, reached: bool) -> DataFrame:
        """Adds in how many consecutive rounds the very same two rows were seen, counting only rounds that count."""
        if not reached:
            return differing.withColumn(STREAK, F.lit(0))
        if self.aside is None:
            return differing.withColumn(STREAK, F.lit(1))
        before = self.aside.select(
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
