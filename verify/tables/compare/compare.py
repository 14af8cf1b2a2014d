"""Exact null-safe comparison of two canonical tables on Spark.

1. One query over both sides groups by key: presence, duplicates and equality of a 128-bit row hash per key.
   It counts the keys and stores those that aren't equal; nothing else is stored.
2. Only keys that are settled as not equal are fetched again, with their cells, and compared cell by cell.

The hash covers every cell with a null mask, because ``xxhash64`` skips NULLs; both sides hold text only, because it
also depends on types. Two different rows pass as equal only if both 64-bit hashes collide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from migrator.errors import VerifyError
from transforms.frames import file_uri

EQUAL, DIFFERENT, MISSING, EXTRA, DUPLICATE = "equal", "different", "missing", "extra", "duplicate"
STATUS, MAPPED_ROWS, TARGET_ROWS = "__status", "__mapped_rows", "__target_rows"
MAPPED_HASH, TARGET_HASH = "__mapped_hash", "__target_hash"


@dataclass(frozen=True, slots=True)
class Shape:
    """The columns compared.

    Attributes:
        columns: names, in the target's order; they are the column names of both canonical tables.
        key: the key columns among them.
    """

    columns: tuple[str, ...]
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        unknown = [name for name in self.key if name not in self.columns]
        if unknown or not self.key:
            raise VerifyError(
                "the key names columns that are not compared",
                where=", ".join(unknown),
                remedy="correct key= of the mapping, and return the key columns from its function",
            )


@dataclass(frozen=True, slots=True)
class Sides:
    """Two canonical tables (strings only, columns of ``shape``). Nothing runs until they are compared.

    Attributes:
        mapped: mapping(source).
        target: the target's rows.
        shape: columns and key.
    """

    mapped: DataFrame
    target: DataFrame
    shape: Shape


@dataclass(frozen=True, slots=True)
class Counts:
    """Keys by outcome; ``compared`` is their sum without ``set_aside`` (not settled).

    ``bad_rows``: keys without a row in the target, which the ledger names because the target refused their rows;
    they are none of the ``missing``. Grains that the ledger names are counted with them, each as one.
    """

    compared: int = 0
    equal: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0
    duplicate: int = 0
    set_aside: int = 0
    bad_rows: int = 0


@dataclass(frozen=True, slots=True)
class Comparison:
    """One comparison.

    Attributes:
        statuses: number of keys per status; a status without keys is absent.
        mapped_rows: rows of mapping(source) that were compared.
        target_rows: rows of the target that were compared.
        differing: one row per key that isn't equal: ``__key_<place>``, ``__status``, row counts and hashes of both
            sides. None when all are equal.
    """

    statuses: dict[str, int]
    mapped_rows: int
    target_rows: int
    differing: DataFrame | None


def compare(
    mapped: DataFrame, target: DataFrame, shape: Shape, directory: Path, only: DataFrame | None = None
) -> Comparison:
    """Compares two canonical tables.

    Args:
        mapped: mapping(source).
        target: the target's rows.
        shape: columns and key.
        directory: gets the Parquet files of the keys that aren't equal.
        only: keys (``__key_<place>``) to restrict the comparison to. Spark moves the restriction below the
            mapping's projections where it can, so that of other rows only the key is computed.
    """
    if only is not None:
        mapped, target = having(mapped, only, shape), having(target, only, shape)
    statuses = {
        status: F.count_if(F.col(STATUS) == status)
        for status in (EQUAL, DIFFERENT, MISSING, EXTRA, DUPLICATE)
    }
    differing, counted = stored(
        _by_key(mapped, target, shape),
        directory / "differing",
        {**statuses, MAPPED_ROWS: F.sum(MAPPED_ROWS), TARGET_ROWS: F.sum(TARGET_ROWS)},
        keep=F.col(STATUS) != EQUAL,
    )
    found = {status: counted[status] for status in statuses if counted[status]}
    return Comparison(
        found, counted[MAPPED_ROWS], counted[TARGET_ROWS], differing if set(found) - {EQUAL} else None
    )


def stored(
    rows: DataFrame, path: Path, numbers: dict[str, Column], keep: Column | None = None
) -> tuple[DataFrame, dict[str, int]]:
    """Stores rows as Parquet and computes numbers over all of them, in the one query that makes them.

    Args:
        rows: what to store.
        path: a folder, replaced if it exists.
        numbers: aggregates by name; no value counts as 0.
        keep: stores only these rows; the numbers are over all.
    """
    seen = Observation()
    observed = rows.observe(seen, *[column.alias(name) for name, column in numbers.items()])
    kept = observed if keep is None else observed.where(keep)
    kept.write.mode("overwrite").parquet(file_uri(path))
    found = seen.get
    return rows.sparkSession.read.schema(rows.schema).parquet(file_uri(path)), {
        name: int(found.get(name) or 0) for name in numbers
    }


def place(name: str) -> Column:
    """A column by its literal name, dots and backticks included."""
    return F.col("`" + name.replace("`", "``") + "`")


def row_hashes(columns: Sequence[str], salt: str) -> Column:
    """64 bits over all cells and their null mask; two salts give two independent hashes."""
    cells = [part for name in columns for part in (place(name).isNull(), F.coalesce(place(name), F.lit("")))]
    return F.xxhash64(F.lit(salt), *cells)


def key_names(shape: Shape, prefix: str = "__key") -> list[str]:
    """Names of the key columns in the frames made here."""
    return [f"{prefix}_{i}" for i in range(len(shape.key))]


def _all(conditions: Sequence[Column]) -> Column:
    return reduce(lambda a, b: a & b, conditions)


def having(rows: DataFrame, only: DataFrame, shape: Shape) -> DataFrame:
    """The rows whose key is in ``only``."""
    names = key_names(shape)
    condition = _all([place(c).eqNullSafe(F.col(n)) for c, n in zip(shape.key, names, strict=True)])
    return rows.join(only.select(*names), condition, "left_semi")


def _by_key(mapped: DataFrame, target: DataFrame, shape: Shape) -> DataFrame:
    """One row per key of either side, with its status. NULL keys are keys like any other."""

    def side(rows: DataFrame, is_mapped: bool) -> DataFrame:
        keys = [place(c).alias(n) for c, n in zip(shape.key, key_names(shape), strict=True)]
        return rows.select(*keys, F.lit(is_mapped).alias("__is_mapped"), *_digest(shape))

    def hashes(of_side: Column) -> Column:
        # Two numbers, not one structure: Spark would sort instead of hash. Of a duplicate key they may be of two
        # rows, but no hash of such a key is ever compared.
        return F.struct(*[F.max(F.when(of_side, F.col(f"__{salt}"))).alias(salt) for salt in "ab"])

    # The rows are brought together before they are counted: keys are nearly unique on a side, so counting each side
    # first would only cost.
    both = side(mapped, True).unionAll(side(target, False)).repartition(*key_names(shape))
    mine = F.col("__is_mapped")
    grouped = both.groupBy(*key_names(shape)).agg(
        F.count_if(mine).alias(MAPPED_ROWS),
        F.count_if(~mine).alias(TARGET_ROWS),
        hashes(mine).alias(MAPPED_HASH),
        hashes(~mine).alias(TARGET_HASH),
    )
    status = (
        F.when((F.col(MAPPED_ROWS) > 1) | (F.col(TARGET_ROWS) > 1), DUPLICATE)
        .when(F.col(TARGET_ROWS) == 0, MISSING)
        .when(F.col(MAPPED_ROWS) == 0, EXTRA)
        .when(F.col(MAPPED_HASH) == F.col(TARGET_HASH), EQUAL)
        .otherwise(DIFFERENT)
    )
    return grouped.withColumn(STATUS, status)


def _digest(shape: Shape) -> list[Column]:
    return [row_hashes(shape.columns, salt).alias(f"__{salt}") for salt in "ab"]


def unique_hashes(rows: DataFrame, shape: Shape) -> dict[tuple[str | None, ...], tuple[int, int]]:
    """Returns the hashes of a canonical table's rows by key, in the form of ``MAPPED_HASH``. Keys of several rows are
    left out."""
    found: dict[tuple[str | None, ...], tuple[int, int]] = {}
    doubled = set()
    columns = rows.select(*map(place, shape.key), *_digest(shape)).toArrow().columns
    for *key, first, second in zip(*(column.to_pylist() for column in columns), strict=True):
        if tuple(key) in found:
            doubled.add(tuple(key))
        found[tuple(key)] = (first, second)
    return {key: hashes for key, hashes in found.items() if key not in doubled}


def with_cells(differing: DataFrame, sides: Sides, path: Path) -> DataFrame:
    """Keys that aren't equal with both sides' cells as canonical text: ``m_<place>`` mapped, ``t_<place>`` target.

    The mapping runs again over the same data. Of a duplicate key, one row of each side stands for all.
    Raises ``VerifyError`` when a row isn't the one that was compared: then the mapping isn't a function.
    """
    shape = sides.shape

    def cells(rows: DataFrame, prefix: str) -> DataFrame:
        own = key_names(shape, f"__{prefix}_key")
        keys = [place(c).alias(n) for c, n in zip(shape.key, own, strict=True)]
        values = [place(name).alias(f"{prefix}_{i}") for i, name in enumerate(shape.columns)]
        digest = F.struct(*[hash_.alias(salt) for hash_, salt in zip(_digest(shape), "ab", strict=True)])
        found = having(rows, differing, shape).select(*keys, *values, digest.alias(f"__{prefix}_hash"))
        return found.dropDuplicates(own)

    joined = differing
    for prefix, rows in (("m", sides.mapped), ("t", sides.target)):
        pairs = zip(key_names(shape), key_names(shape, f"__{prefix}_key"), strict=True)
        condition = _all([F.col(a).eqNullSafe(F.col(b)) for a, b in pairs])
        joined = joined.join(cells(rows, prefix), condition, "left")
    changed = [
        (F.col(count) > 0) & ~F.coalesce(F.col(f"__{prefix}_hash") == F.col(hash_), F.lit(False))
        for prefix, count, hash_ in (("m", MAPPED_ROWS, MAPPED_HASH), ("t", TARGET_ROWS, TARGET_HASH))
    ]
    other = F.count_if((F.col(STATUS) != DUPLICATE) & (changed[0] | changed[1]))
    fetched, counted = stored(joined, path, {"other": other})
    if counted["other"]:
        raise VerifyError(
            f"the mapping makes {counted['other']} rows otherwise when it runs again",
            cause="it depends on more than its source rows: time, chance, the order of rows",
            remedy="make the mapping a function of its source rows",
        )
    indexes = range(len(shape.columns))
    return fetched.select(
        *key_names(shape),
        STATUS,
        MAPPED_ROWS,
        TARGET_ROWS,
        MAPPED_HASH,
        TARGET_HASH,
        *[f"m_{i}" for i in indexes],
        *[f"t_{i}" for i in indexes],
    )


def unequal_cells(differing: DataFrame, shape: Shape) -> dict[str, int]:
    """Counts the unequal cells per column, compared null-safe, over all rows that differ.

    Raises ``VerifyError`` if a row counted as different has no unequal cell: then the comparison itself is wrong.
    """
    unequal = [~F.col(f"m_{i}").eqNullSafe(F.col(f"t_{i}")) for i in range(len(shape.columns))]
    counts = [F.count_if(cell).alias(f"c_{i}") for i, cell in enumerate(unequal)]
    none = F.count_if(~reduce(lambda a, b: a | b, unequal)).alias("none")
    row = differing.where(F.col(STATUS) == DIFFERENT).agg(none, *counts).collect()[0]
    if row["none"]:
        raise VerifyError(
            f"{row['none']} rows differ by hash but not by any cell",
            remedy="this is a fault of the tool: report it",
        )
    return {name: int(row[f"c_{i}"]) for i, name in enumerate(shape.columns) if row[f"c_{i}"]}
