"""Mapped rows that tasks hand to a function on their executors, instead of bringing them to the driver."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

_RECEIPTS = "receipt string, rows bigint"


def staged_parts(
    rows: DataFrame, stage: Callable[[Iterator[pa.RecordBatch]], str | None]
) -> tuple[tuple[str, ...], int]:
    """Runs ``stage`` over each partition; returns the receipts of the attempts that Spark counted, and their rows.

    Spark counts one attempt of each partition, even if it ran the partition twice. The receipts of the other attempts
    are lost, so nobody knows what these attempts wrote. ``stage`` must be a function where this does no harm.
    """
    columns = list(rows.columns)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        number = 0

        def counted() -> Iterator[pa.RecordBatch]:
            nonlocal number
            for batch in batches:
                number += batch.num_rows
                yield batch.rename_columns(columns)

        receipt = stage(counted())
        if receipt is not None:
            yield pa.RecordBatch.from_pydict({"receipt": [receipt], "rows": pa.array([number], pa.int64())})

    found = rows.mapInArrow(task, _RECEIPTS).toArrow()
    return tuple(found["receipt"].to_pylist()), sum(found["rows"].to_pylist())
