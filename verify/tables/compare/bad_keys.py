"""Keys of rows that the run set aside, as the judge writes keys; and the mapped rows that aren't among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.progress import BadRow
from verify.readers.snapshot import TargetColumnText
from verify.tables.compare.normalise import mapped_text

_FILTER_ABOVE = "spark.sql.optimizer.avoidDoubleFilterEval"


def canonical_keys(
    spark: SparkSession, rows: Sequence[BadRow], key: Sequence[str], columns: Sequence[TargetColumnText]
) -> DataFrame:
    """Keys of rows set aside as canonical text, in columns named ``__bad_0`` and so on.

    The ledger has dates and numbers as servers print them, bytes as hexadecimal digits.

    Args:
        spark: a running session.
        rows: of one target.
        key: its key's columns.
        columns: the target's columns, with those of the key.
    """
    texts = spark.createDataFrame(
        pa.table(
            {name: pa.array([one.key[one.columns.index(name)] for one in rows], pa.string()) for name in key}
        )
    )
    by_name = {
        column.name: replace(column, printed=None) if column.base in ("bytea", "bool") else column
        for column in columns
    }
    canonical = mapped_text(texts, [by_name[name] for name in key])
    return texts.select(*(text.alias(f"__bad_{place}") for place, text in enumerate(canonical)))


def named_by(rows: DataFrame, names: Sequence[str], keys: DataFrame) -> DataFrame:
    """Canonical rows whose key, in the columns ``names``, is among ``keys`` (of ``canonical_keys``)."""
    same = [F.col(name).eqNullSafe(F.col(f"__bad_{place}")) for place, name in enumerate(names)]
    return rows.join(keys, reduce(lambda a, b: a & b, same), "left_semi")


def without_unmapped(
    spark: SparkSession,
    mapped: DataFrame,
    bad_rows: Sequence[BadRow],
    key: Sequence[str],
    columns: Sequence[TargetColumnText],
) -> DataFrame:
    """Mapped rows but those whose mapping fails, which the run has set aside by their keys.

    The keys are looked at first, and the other columns are only computed of rows that are left: Spark moves a filter
    (no join) below the projection of a function that returns the same whenever it gets the same. Where the key takes
    long to compute (patterns, functions) it does so only if told to, for it computes the key twice then.

    Args:
        spark: a running session.
        mapped: canonical rows that the mapping is to give.
        bad_rows: those set aside in the same target; the ones that the target refused can be mapped, and stay.
        key: the target's key.
        columns: columns of ``mapped``.
    """
    failing = [one for one in bad_rows if one.unmapped and not one.grain]
    if not failing:
        return mapped
    spark.conf.set(_FILTER_ABOVE, "false")
    keys = canonical_keys(spark, failing, key, columns)
    known = [row[0] for row in keys.select(_one_text(keys.columns)).distinct().collect()]
    named = _one_text([f"`{name.replace('`', '``')}`" for name in key]).isin(known)
    return mapped.where(
        ~F.coalesce(named, F.lit(False))
    )  # a key with NULL is none of theirs, and a row all the same


def _one_text(names: Sequence[str]) -> Column:
    """Several texts as one, which no other texts have: each is behind its length."""
    parts = [part for name in names for part in (F.length(name).cast("string"), F.lit(":"), F.col(name))]
    return F.concat(*parts)
