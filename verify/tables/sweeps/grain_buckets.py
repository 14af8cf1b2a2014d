"""The rows that a sweep read, in buckets by grain: a bucket has some grains and all rows that are linked to them.

No server can look up a grain that the mapping computes from a row and those above it, or one linked by computed
values. Spark can compute it from rows that were read. The hash of a grain's value decides its bucket; a row linked to
grains of several buckets is in each of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.model.reach import Reach
from transforms.analysis.grain_numbers import NUMBER, numbered
from transforms.frames import file_uri
from transforms.registry import TargetMapping
from verify.readers.chunk_keys import BYTES, DATE, INTEGER, TIMESTAMP, TIMESTAMPTZ, Key
from verify.readers.chunk_keys import NUMBER as DECIMAL
from verify.readers.snapshot import SourceTable
from verify.tables.compare.bad_grains import with_values
from verify.tables.compare.compare import place
from verify.tables.compare.mapped_side import file_frames, source_frames
from verify.tables.sweeps.table_sweep import NamedKinds

_BUCKET = "__bucket"


@dataclass(frozen=True, order=True, slots=True)
class Bucket:
    """Grains of one reach, by its place and by the bucket's number."""

    reach: int
    number: int


class GrainBuckets:
    """The buckets of one sweep of one table.

    Args:
        spark: a running session.
        target: the mapping.
        reaches: the tables on whose rows its rows depend.
        tables: the rows that the sweep read.
        counts: the number of buckets of each reach.
        directory: made anew, for the buckets' files.
        only: buckets that are wanted; None for all of them.

    Raises ``MappingError``, ``VerifyError``.
    """

    def __init__(
        self,
        spark: SparkSession,
        target: TargetMapping,
        reaches: Sequence[Reach],
        tables: Mapping[str, SourceTable],
        counts: Sequence[int],
        directory: Path,
        only: Collection[Bucket] | None = None,
    ):
        directory.mkdir()
        self._spark, self._target, self._reaches = spark, target, reaches
        self._tables, self._directory = tables, directory
        plain = source_frames(spark, target, tables)
        wider = {name: with_values(target, name, rows) for name, rows in plain.items()}
        for number, (reach, count) in enumerate(zip(reaches, counts, strict=True)):
            wanted = None if only is None else [bucket.number for bucket in only if bucket.reach == number]
            if wanted is None or wanted:
                roots = {index: _roots(target, reach, index, plain, wider, count) for index in reach.roots()}
                self._store(number, reach, roots, wider, wanted)

    def all(self) -> Iterator[Bucket]:
        """Yields the buckets that have rows, in ascending order."""
        for number in range(len(self._reaches)):
            folders = [self._part(number, index) for index in self._reaches[number].roots()]
            found = {
                int(path.name.partition("=")[2]) for folder in folders for path in folder.glob(f"{_BUCKET}=*")
            }
            yield from (Bucket(number, bucket) for bucket in sorted(found))

    def frames(self, buckets: Sequence[Bucket]) -> dict[str, DataFrame]:
        """Their rows by table, each once."""
        schemas = {name: table.schema for name, table in self._tables.items()}
        paths: dict[str, list[Path]] = {}
        for bucket in buckets:
            for number, node in enumerate(self._reaches[bucket.reach].nodes):
                paths.setdefault(node.schema.id.name, []).extend(self._files(bucket, number))
        return file_frames(self._spark, self._target, schemas, paths)

    def rows(self, bucket: Bucket) -> int:
        """Counts a bucket's rows, in all parts of the reach together."""
        parts = range(len(self._reaches[bucket.reach].nodes))
        return sum(pq.read_metadata(path).num_rows for part in parts for path in self._files(bucket, part))

    def keys(self, bucket: Bucket, node: int, key: NamedKinds) -> list[Key]:
        """The keys of its rows in one part of the reach, as the source's server prints them."""
        names = [name for name, _ in key]
        found: list[Key] = []
        for path in self._files(bucket, node):
            rows = pq.ParquetFile(path).read(columns=names)
            found += zip(*(key_texts(rows[name], kind) for name, kind in key), strict=True)
        return found

    def last(self, table: str, key: NamedKinds) -> Key | None:
        """The greatest key that was swept, where new rows usually get greater ones; None for other keys."""
        if len(key) > 1 or key[0][1] not in (INTEGER, TIMESTAMP, TIMESTAMPTZ):
            return None
        [(name, kind)] = key
        found: list[pa.ChunkedArray] = []
        for path in sorted(self._tables[table].path.glob("*.parquet")):
            values = pq.ParquetFile(path).read(columns=[name])[name]
            found.append(values.filter(pc.equal(values, pc.max(values))).slice(0, 1))
        texts = [text for values in found for text in key_texts(values, kind)]
        return (max(texts, key=Decimal),) if texts else None

    def _store(
        self,
        number: int,
        reach: Reach,
        roots: Mapping[int, DataFrame],
        frames: Mapping[str, DataFrame],
        wanted: Sequence[int] | None,
    ) -> None:
        stored: list[DataFrame] = []
        for index, node in enumerate(reach.nodes):
            if node.above is None:
                rows = roots[index]
                if wanted is not None:
                    rows = rows.where(F.col(_BUCKET).isin(list(wanted)))
            else:
                rows = _linked(
                    frames[node.schema.id.name], node.columns, stored[node.above], node.above_columns
                )
            folder = self._part(number, index)
            rows.repartition(_BUCKET).write.partitionBy(_BUCKET).parquet(file_uri(folder))
            stored.append(self._spark.read.schema(rows.schema).parquet(file_uri(folder)))

    def _part(self, reach: int, node: int) -> Path:
        return self._directory / f"{reach}-{node}"

    def _files(self, bucket: Bucket, node: int) -> list[Path]:
        return sorted((self._part(bucket.reach, node) / f"{_BUCKET}={bucket.number}").glob("*.parquet"))


def key_texts(values: pa.ChunkedArray, kind: str) -> list[str]:
    """Values of a key column that isn't NULL, as its server prints them for that kind
    (``verify.readers.chunk_keys``)."""
    if kind in (DATE, TIMESTAMP, TIMESTAMPTZ):
        values = values.cast(pa.int32() if kind == DATE else pa.int64())
    if kind == BYTES:
        return [value.hex() for value in values.to_pylist()]
    if kind in (INTEGER, DECIMAL):
        return [format(Decimal(value), "f") for value in values.to_pylist()]
    return list(map(str, values.to_pylist()))


def _roots(
    target: TargetMapping,
    reach: Reach,
    index: int,
    plain: Mapping[str, DataFrame],
    wider: Mapping[str, DataFrame],
    count: int,
) -> DataFrame:
    """The rows of a table that has the grain, with their bucket: that of the grain's value."""
    rows = wider[reach.nodes[index].schema.id.name]
    if reach.grain or not reach.name:
        grain = reach.grain_of(index) or reach.root.schema.key
        return rows.withColumn(_BUCKET, F.pmod(F.xxhash64(*map(place, grain)), F.lit(count)))
    key = reach.root.schema.key
    own = [f"__root_{place_}" for place_ in range(len(key))]
    numbers = numbered(target, reach, plain).toDF(*own, NUMBER)
    same = [place(name).eqNullSafe(F.col(other)) for name, other in zip(key, own, strict=True)]
    joined = rows.join(numbers, reduce(lambda a, b: a & b, same))
    return joined.select(*map(place, rows.columns), F.pmod(NUMBER, F.lit(count)).alias(_BUCKET))


def _linked(
    rows: DataFrame, columns: Sequence[str], above: DataFrame, above_columns: Sequence[str]
) -> DataFrame:
    """The rows that are linked to those above, once for each bucket."""
    ends = [f"__above_{place_}" for place_ in range(len(columns))]
    links = above.select(
        *[place(name).alias(end) for name, end in zip(above_columns, ends, strict=True)], _BUCKET
    )
    same = [place(name) == F.col(end) for name, end in zip(columns, ends, strict=True)]
    joined = rows.join(links.distinct(), reduce(lambda a, b: a & b, same))
    return joined.select(*map(place, rows.columns), _BUCKET)
