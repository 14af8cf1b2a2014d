"""Tables of which only some keys are compared: the keys that a caller names, as if a round had left them open.

Everything else of such a table counts as settled before, by a verdict that the caller has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from migrator.errors import VerifyError
from transforms.registry import TargetMapping
from verify.readers.ports import ChunkedTarget
from verify.readers.source import SourceReader
from verify.tables.compare.compare import DIFFERENT, MAPPED_HASH, STATUS, TARGET_HASH, Shape, key_names
from verify.tables.compare.mapped_side import file_frames, mapped_frame, mapping_failure
from verify.tables.compare.normalise import mapped_text
from verify.tables.rounds.progress import STREAK, TableProgress

KEYS_MAX = 100_000
"""The most keys of a table that can be named."""
_HASH = "struct<a:bigint,b:bigint>"


@dataclass(frozen=True, slots=True)
class NamedKeys:
    """Keys to compare.

    Attributes:
        tables: distinct keys by target table, in columns named as the key's; values as mapped rows have them.
        at_rest: whether nobody can write on either side, and everything is applied: then nothing is waited for.
    """

    tables: Mapping[str, pa.Table]
    at_rest: bool = False


def of_named_keys(
    spark: SparkSession,
    target: TargetMapping,
    keys: pa.Table,
    source: SourceReader,
    rows: ChunkedTarget,
) -> TableProgress:
    """Returns the progress of a table whose named keys are open, and whose others are settled.

    Args:
        spark: a running session.
        target: the table's mapping.
        keys: distinct keys, in columns named as the key's; values as mapped rows have them.
        source, rows: readers of both sides.

    Raises ``VerifyError`` for more than ``KEYS_MAX`` keys, ``MappingError``.
    """
    if keys.num_rows > KEYS_MAX:
        raise VerifyError(
            f"{keys.num_rows:,} keys of {target.name} can't be compared by name",
            cause=f"{KEYS_MAX:,} are the most",
            remedy="verify the whole table: `migrator verify --table` with its name",
        )
    with source.tables(target.sources) as old, rows.chunks(target.name) as new:
        schemas, columns = old.schemas, new.columns
    with mapping_failure(target):
        _, filled = mapped_frame(target, file_frames(spark, target, schemas, {}), columns)
        by_name = {column.name: column for column in filled}
        shape = Shape(tuple(by_name), target.key)
        frame = spark.createDataFrame(keys.select(list(target.key)))
        texts = mapped_text(frame, [by_name[name] for name in target.key])
    names = key_names(shape)
    nothing = F.lit(None).cast(_HASH)
    aside = frame.select(
        *(text.alias(name) for text, name in zip(texts, names, strict=True)),
        F.lit(DIFFERENT).alias(STATUS),
        nothing.alias(MAPPED_HASH),
        nothing.alias(TARGET_HASH),
        F.lit(0).alias(STREAK),
    )
    return TableProgress(
        target,
        columns=filled,
        shape=shape,
        uncompared=tuple(column.name for column in columns if column.name not in by_name),
        aside=aside,
        aside_keys=keys.num_rows,
        rounds=1,
        named=True,
        method=f"{keys.num_rows:,} keys that were named",
    )
