"""Rows as one side gave them, in a Parquet file that Spark reads once."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def row_file(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    """A file to be written, replaced if it exists. Without dictionaries: they cost half of the writing.

    What they save when it is read is less, and zstd makes plain values as small.
    """
    return pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False)
