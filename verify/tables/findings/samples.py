"""Samples of unequal keys: each with both rows, their differing cells, and the old rows behind them.

Old rows are searched by value and then proved: the mapping of just the rows found must give exactly the
mapped row of the sample. A guess that can't be proved is not shown.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import reduce

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError, VerifyError
from transforms.analysis.plan import columns_used
from transforms.on_spark.pipeline import empty_frame
from transforms.registry import TargetMapping
from verify.readers.snapshot import SourceSnapshot, TargetColumnText
from verify.report.display import shown
from verify.tables.compare.compare import (
    DUPLICATE,
    EXTRA,
    MAPPED_ROWS,
    MISSING,
    STATUS,
    TARGET_ROWS,
    Shape,
    key_names,
    place,
)
from verify.tables.compare.mapped_side import mapped_frame, source_frames
from verify.tables.compare.normalise import kind_of, mapped_text, readable_text, source_kind
from verify.tables.compare.spark_failure import named_failure
from verify.tables.findings.cause import likely_cause
from verify.tables.result import Cell, OldRow, Sample

SAMPLES_MAX = 10
_OLD_ROWS_MAX = 50


def take_samples(rows: DataFrame | None, aside: DataFrame | None, shape: Shape) -> list[tuple[str, Row]]:
    """Returns up to ``SAMPLES_MAX`` rows, a share for each status, ordered by key; settled ones first."""
    found: list[tuple[str, Row]] = []
    if rows is not None:
        statuses = [row[STATUS] for row in rows.select(STATUS).distinct().orderBy(STATUS).collect()]
        share = max(1, SAMPLES_MAX // len(statuses))
        for status in statuses:
            of_status = rows.where(F.col(STATUS) == status).orderBy(*key_names(shape)).limit(share)
            found += [(str(status), row) for row in of_status.collect()]
    if aside is not None and len(found) < SAMPLES_MAX:
        rest = aside.orderBy(*key_names(shape)).limit(SAMPLES_MAX - len(found))
        found += [("set aside", row) for row in rest.collect()]
    return found[:SAMPLES_MAX]


def finished_samples(
    spark: SparkSession,
    target: TargetMapping,
    taken: Sequence[tuple[str, Row]],
    shape: Shape,
    columns: Sequence[TargetColumnText],
    snapshot: SourceSnapshot | None,
) -> tuple[Sample, ...]:
    """Samples ready for the report."""
    old = _old_rows(spark, target, [row for _, row in taken], shape, columns, snapshot) if snapshot else {}
    kinds = {c.name: kind_of(c) for c in columns}
    samples = []
    for index, (status, row) in enumerate(taken):
        key = tuple((name, shown(kinds[name], row[f"__key_{i}"])) for i, name in enumerate(shape.key))
        cells = tuple(
            _cell(c, kinds[c.name], row[f"m_{i}"], row[f"t_{i}"], row[STATUS]) for i, c in enumerate(columns)
        )
        samples.append(
            Sample(
                status, key, cells, tuple(old.get(index, ())), int(row[MAPPED_ROWS]), int(row[TARGET_ROWS])
            )
        )
    return tuple(samples)


def _cell(column: TargetColumnText, kind: str, mapped: str | None, target: str | None, status: str) -> Cell:
    absent = status in (MISSING, EXTRA)
    differs = not absent and mapped != target
    cause = likely_cause(kind, mapped, target) if differs and status != DUPLICATE else ""
    return Cell(column.name, shown(kind, mapped), shown(kind, target), differs, cause)


def _old_rows(
    spark: SparkSession,
    target: TargetMapping,
    rows: Sequence[Row],
    shape: Shape,
    columns: Sequence[TargetColumnText],
    snapshot: SourceSnapshot,
) -> dict[int, list[OldRow]]:
    """Old rows by place of the sample; only those that were proved."""
    wanted = {i: row for i, row in enumerate(rows) if row[MAPPED_ROWS] == 1}
    found: dict[int, list[OldRow]] = {}
    if not wanted or any(name not in snapshot.tables for name in target.sources):
        return found  # a later round read only the tables that were still open
    frames = source_frames(spark, target, snapshot.tables)
    schemas = {name: snapshot.tables[name].schema for name in target.sources}
    try:
        read = columns_used(spark, target, schemas)
    except MappingError:
        return found
    for name in target.sources:
        schema = snapshot.tables[name].schema
        names = _key_columns(target, schema.names(), schema.key)
        if names is None:
            continue
        keys = {i: tuple(row[key] for key in key_names(shape)) for i, row in wanted.items()}
        some = frames[name].where(_any_key(names, list(keys.values())))
        alone = {
            n: some if n == name else empty_frame(spark, snapshot.tables[n].schema) for n in target.sources
        }
        try:
            with named_failure("the mapping can't run on a part of its sources", target.where(), ""):
                mapped = _canonical_rows(*mapped_frame(target, alone, columns))
                old = _plain_rows(name, some, names, {*names, *read.get(name, ())})
        except (MappingError, VerifyError):
            continue  # there is no proof, so nothing is shown
        for i, row in wanted.items():
            if tuple(row[f"m_{place_}"] for place_ in range(len(columns))) in mapped:
                found.setdefault(i, []).extend(old.get(keys[i], []))
    return found


def _key_columns(target: TargetMapping, names: Sequence[str], key: Sequence[str]) -> tuple[str, ...] | None:
    """Source columns that may carry the target's key: of the same names, else the source's key of the same
    length."""
    folded = {name.lower(): name for name in names}
    if all(name.lower() in folded for name in target.key):
        return tuple(folded[name.lower()] for name in target.key)
    return tuple(key) if len(key) == len(target.key) else None


def _any_key(names: Sequence[str], keys: Sequence[tuple[str | None, ...]]) -> Column:
    conditions = [
        reduce(
            lambda a, b: a & b,
            [place(n).cast("string").eqNullSafe(F.lit(text)) for n, text in zip(names, key, strict=True)],
        )
        for key in keys
    ]
    return reduce(lambda a, b: a | b, conditions)


def _canonical_rows(frame: DataFrame, filled: Sequence[TargetColumnText]) -> set[tuple[str | None, ...]]:
    """The canonical rows that a mapping of few rows makes."""
    texts = [text.alias(f"c{i}") for i, text in enumerate(mapped_text(frame, filled))]
    table = frame.select(*texts).limit(_OLD_ROWS_MAX).toArrow()
    return set(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _plain_rows(
    name: str, rows: DataFrame, key: Sequence[str], read: Collection[str]
) -> dict[tuple[str | None, ...], list[OldRow]]:
    """Source rows as people read them, by their key's text. What the mapping doesn't read is nobody's to see."""
    fields = [field for field in rows.schema.fields if field.name in read]
    kinds = [source_kind(field.dataType) for field in fields]
    values = [readable_text(place(f.name), f.dataType).alias(f"v{i}") for i, f in enumerate(fields)]
    keys = [place(column).cast("string").alias(f"k{i}") for i, column in enumerate(key)]
    found: dict[tuple[str | None, ...], list[OldRow]] = {}
    for row in rows.select(*keys, *values).limit(_OLD_ROWS_MAX).toArrow().to_pylist():
        texts = [shown(kind, row[f"v{i}"]) for i, kind in enumerate(kinds)]
        old = OldRow(name, tuple(zip((f.name for f in fields), texts, strict=True)))
        found.setdefault(tuple(row[f"k{i}"] for i in range(len(key))), []).append(old)
    return found
