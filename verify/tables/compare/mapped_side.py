"""The two sides of one target table as canonical text: the user's function over whole source tables, and the
target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from migrator.errors import VerifyError
from migrator.model.progress import BadRow
from migrator.model.table import TableSchema
from transforms.analysis.plan import call
from transforms.frames import file_uri
from transforms.on_spark.pipeline import parquet_frame
from transforms.registry import TargetMapping
from verify.readers.snapshot import SourceSnapshot, SourceTable, TargetColumnText, TargetRowsText
from verify.tables.compare.bad_grains import Linked, without_grains
from verify.tables.compare.bad_keys import without_unmapped
from verify.tables.compare.compare import Shape, Sides, place
from verify.tables.compare.normalise import mapped_text, target_text
from verify.tables.compare.spark_failure import named_failure


def source_frames(
    spark: SparkSession, target: TargetMapping, tables: Mapping[str, SourceTable]
) -> dict[str, DataFrame]:
    """The source tables of a mapping as DataFrames, in the types they have in the stream."""
    return {name: parquet_frame(spark, [tables[name].path], tables[name].schema) for name in target.sources}


def file_frames(
    spark: SparkSession,
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    paths: Mapping[str, Sequence[Path]],
) -> dict[str, DataFrame]:
    """The source tables of a mapping from files: each row once, though several files of a table may hold it."""
    frames = {}
    for name in target.sources:
        files = paths.get(name, ())
        frame = parquet_frame(spark, files, schemas[name])
        frames[name] = frame if len(files) < 2 else frame.dropDuplicates(list(schemas[name].key))
    return frames


def mapped_frame(
    target: TargetMapping, frames: Mapping[str, DataFrame], columns: Sequence[TargetColumnText]
) -> tuple[DataFrame, list[TargetColumnText]]:
    """f(frames) with its columns named as the target's, and the target columns it fills, in the target's order.

    The function itself is called, not the pipeline's way of running it: its casts are part of what is judged.
    Raises ``VerifyError`` for a column that the target doesn't have, ``MappingError`` when the function fails.
    """
    result = call(target, dict(frames))
    exact = {c.name: c for c in columns}
    folded = {c.name.lower(): c for c in columns}
    found: dict[str, str] = {}
    for name in result.columns:
        column = exact.get(name) or folded.get(name.lower())
        if column is None or column.generated or column.name in found:
            raise VerifyError(
                f"the mapping of {target.name} returns a column that can't be compared",
                where=f"column {name}, {target.where()}",
                cause="the target has no such column, computes it by itself, or got it twice",
                remedy="return each column of the target table once, by its name",
            )
        found[column.name] = name
    filled = [c for c in columns if c.name in found]
    return result.select(*[place(found[c.name]).alias(c.name) for c in filled]), filled


def canonical_sides(
    spark: SparkSession,
    target: TargetMapping,
    snapshot: SourceSnapshot,
    rows: TargetRowsText,
    bad_rows: Sequence[BadRow] = (),
    source: Linked | None = None,
) -> tuple[Sides, list[TargetColumnText]]:
    """Returns both sides, to be compared, and the target columns compared. So far only the user's function has run.

    Of ``bad_rows``, which the ledger names as set aside, those that the mapping fails on aren't mapped;
    ``source`` gives the foreign keys by which rows of grains may be linked.

    Raises ``VerifyError`` naming the mapping when the function can't be called on these tables.
    """
    with mapping_failure(target):
        schemas = {name: snapshot.tables[name].schema for name in target.sources}
        frames = without_grains(
            spark, target, source_frames(spark, target, snapshot.tables), schemas, bad_rows, source
        )
        frame, filled = mapped_frame(target, frames, rows.columns)
        shape = Shape(tuple(c.name for c in filled), target.key)
        mapped = without_unmapped(spark, _texts(frame, filled), bad_rows, target.key, filled)
        return Sides(mapped, _canonical_target(spark, rows, filled), shape), filled


def canonical_mapped(
    target: TargetMapping, frames: Mapping[str, DataFrame], filled: Sequence[TargetColumnText]
) -> DataFrame:
    """f(frames) as a canonical table of the target columns it fills. Raises ``VerifyError``, ``MappingError``."""
    with mapping_failure(target):
        frame, found = mapped_frame(target, frames, filled)
        return _texts(frame, found)


def stored_sides(
    spark: SparkSession, mapped: Path, rows: TargetRowsText, filled: Sequence[TargetColumnText], shape: Shape
) -> Sides:
    """Returns both sides, from a mapped side that was stored as canonical text."""
    texts = T.StructType([T.StructField(column.name, T.StringType()) for column in filled])
    mapped_rows = spark.read.schema(texts).parquet(file_uri(mapped))
    return Sides(mapped_rows, _canonical_target(spark, rows, filled), shape)


def _texts(frame: DataFrame, filled: Sequence[TargetColumnText]) -> DataFrame:
    return frame.select(
        *[text.alias(c.name) for text, c in zip(mapped_text(frame, filled), filled, strict=True)]
    )


def mapping_failure(target: TargetMapping) -> AbstractContextManager[None]:
    """Failures of Spark while a mapping runs, as errors that name the mapping."""
    return named_failure(
        f"the mapping of {target.name} fails on the source's rows",
        target.where(),
        "correct the mapping, or the source row named; where the run sets such rows aside and one was"
        " corrected meanwhile: verify again",
    )


def _canonical_target(
    spark: SparkSession, rows: TargetRowsText, filled: Sequence[TargetColumnText]
) -> DataFrame:
    """The target's rows as a canonical table of the same columns."""
    texts = T.StructType([T.StructField(c.name, T.StringType()) for c in rows.columns if not c.generated])
    return (
        spark.read.schema(texts)
        .parquet(file_uri(rows.path))
        .select(*[text.alias(c.name) for text, c in zip(target_text(filled), filled, strict=True)])
    )
