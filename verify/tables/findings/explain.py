"""Explains differences with datacompy. The only module that imports it.

datacompy is no oracle (it compares numbers as doubles, refuses dates and binary, pairs duplicate keys by place and
calls two empty tables different), so it never decides anything here: it gets canonical text only, rows already
known to differ, keys already known to be unique, and an exact comparator in front of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import datacompy
import pandas as pd
from datacompy.comparator.base import BaseComparator
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from migrator.errors import VerifyError
from verify.readers.snapshot import TargetColumnText
from verify.report.display import shown
from verify.tables.compare.compare import DIFFERENT, STATUS, Shape, key_names, unequal_cells
from verify.tables.compare.normalise import kind_of
from verify.tables.findings.cause import likely_cause
from verify.tables.result import ColumnDifference

EXPLAINED_ROWS_MAX = 10_000
_EXAMPLES = 5
_KEY = "key"


class ExactText(BaseComparator):
    """Equal means: both NULL, or the same text. Never returns None, so datacompy's own comparators get no say."""

    def compare(self, col1: pd.Series, col2: pd.Series, **kwargs: object) -> pd.Series:
        """A boolean series with ``col1``'s index."""
        both_null = col1.isna() & col2.isna()
        same = [
            a == b if isinstance(a, str) and isinstance(b, str) else False
            for a, b in zip(col1, col2, strict=True)
        ]
        return both_null | pd.Series(same, index=col1.index, dtype=bool)


def explain(
    differing: DataFrame, shape: Shape, columns: Sequence[TargetColumnText]
) -> tuple[ColumnDifference, ...]:
    """Explains how the rows with status *different* differ, column by column, worst column first.

    Totals are exact over all rows; causes and examples come from at most ``EXPLAINED_ROWS_MAX`` rows.
    Raises ``VerifyError`` when datacompy and the exact comparison disagree about those rows.
    """
    totals = unequal_cells(differing, shape)
    if not totals:
        return ()
    wanted = [*key_names(shape), *[f"{p}_{i}" for p in "mt" for i in range(len(shape.columns))]]
    sample = differing.where(F.col(STATUS) == DIFFERENT).select(*wanted).limit(EXPLAINED_ROWS_MAX)
    rows: dict[str, list[str | None]] = sample.toArrow().to_pydict()
    mapped, target = _side(rows, shape, "m"), _side(rows, shape, "t")
    report = datacompy.PandasCompare(
        mapped,
        target,
        join_columns=_KEY,
        df1_name="mapped",
        df2_name="target",
        cast_column_names_lower=False,
        custom_comparators=[ExactText()],
    )
    unequal = {stat["column"]: int(stat["unequal_cnt"]) for stat in report.column_stats}
    found = []
    for index, column in enumerate(columns):
        if column.name not in totals:
            continue
        pairs = _pairs(rows, index)
        if unequal.get(f"c{index}") != len(pairs):
            raise VerifyError(
                "datacompy and the exact comparison disagree",
                where=f"column {column.name}: {unequal.get(f'c{index}')} against {len(pairs)} unequal rows",
                remedy="this is a fault of the tool: report it",
            )
        kind = kind_of(column)
        causes = Counter(likely_cause(kind, *pair) for pair in pairs)
        examples = tuple((shown(kind, a), shown(kind, b)) for a, b in pairs[:_EXAMPLES])
        found.append(
            ColumnDifference(
                column.name, totals[column.name], len(pairs), tuple(causes.most_common()), examples
            )
        )
    return tuple(sorted(found, key=lambda column: -column.unequal_rows))


def _side(rows: dict[str, list[str | None]], shape: Shape, prefix: str) -> pd.DataFrame:
    """One side under neutral names: a target column called ``key`` or ``a_mapped`` must not confuse datacompy."""
    keys = [repr(key) for key in zip(*(rows[name] for name in key_names(shape)), strict=True)]
    cells = {f"c{i}": pd.Series(rows[f"{prefix}_{i}"], dtype=object) for i in range(len(shape.columns))}
    return pd.DataFrame({_KEY: keys, **cells})


def _pairs(rows: dict[str, list[str | None]], index: int) -> list[tuple[str | None, str | None]]:
    return [(a, b) for a, b in zip(rows[f"m_{index}"], rows[f"t_{index}"], strict=True) if a != b]
