"""Keys of one table that a comparison left open, and the two sides on which they are read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame

from transforms.registry import TargetMapping
from verify.readers.ports import SourceTables, TargetChunks
from verify.readers.snapshot import TargetColumnText


@dataclass(frozen=True, slots=True)
class OpenKeys:
    """Keys to look for, and how their rows are compared.

    Attributes:
        mapping: the mapping that makes the table's rows.
        keys: a row each, as a comparison leaves them: in ``__key_<place>`` columns.
        columns: those that are compared.
    """

    mapping: TargetMapping
    keys: DataFrame
    columns: Sequence[TargetColumnText]


@dataclass(frozen=True, slots=True)
class TableSides:
    """The two sides of one table.

    Attributes:
        tables: the source's tables.
        rows: the target's table.
    """

    tables: SourceTables
    rows: TargetChunks
