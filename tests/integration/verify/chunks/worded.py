"""A table with rows of edges as its server sees it and as Spark does: columns of a mapping are made of it by
both."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from transforms.analysis.expressions import Expression
from transforms.analysis.key_origin import handed_columns
from transforms.cause import spark_cause
from transforms.frames import parquet_frame
from transforms.registry import Mapping as Mappings
from verify.readers.ports import SourceChunks
from verify.tables.hashed_by_servers.sql_value import SqlValue

Said = Callable[[DataFrame], Column]
"""A column of a mapping, given the source table."""
TEXTS = [
    None, "", " ", "a", " A b ", "ABC", "ß", "İ", "ΑΣ", "é", "\u00a0", "\tx", "it's", "😀 x", "1", "x" * 40,
]  # fmt: skip
NUMBERS = [None, 0, 1, -1, 2, 7, 100]
SMALL = [*NUMBERS, 32767, -32768]
WHOLE = [*NUMBERS, 2**31 - 1, -(2**31)]
LONG = [*NUMBERS, 2**63 - 1, -(2**63), 2**53 + 1]
CENTS = [None, "0", "-0.01", "1.50", "0.99", "9999999999.99", "-9999999999.99"]
DIGITS_38 = [None, "0", "9" * 38, "-1", str(2**63), str(-(2**63) - 1)]
OF_TEXTS: dict[str, Said] = {
    "beginning": lambda _: F.substring("t", 1, 2),
    "middle": lambda _: F.col("v").substr(2, 2**31 - 1),
    "with something between": lambda _: F.concat_ws("ß|", F.col("t"), F.lower("v"), F.lit("x"), F.trim("t")),
    "left": lambda _: F.left("t", F.lit(2)),
    "or else": lambda _: F.nvl("t", F.col("v")),
    "one or the other": lambda _: F.nvl2("t", F.col("v"), F.lit("none")),
    "trimmed at both ends": lambda _: F.btrim("t"),
    "replaced": lambda _: F.replace("t", F.lit("a"), F.lit("ß'")),
    "taken out": lambda _: F.replace(F.col("v"), F.lit("a"), F.lit("")),
    "digits of bytes": lambda _: F.lower(F.hex("raw")),
}
"""Columns of texts ``t`` and ``v`` and of bytes ``raw`` that all servers have words for."""
NOT_OF_TEXTS: dict[str, Said] = {
    "replaced by another text": lambda _: F.expr("replace(t, v, t)"),
    "digits of a text": lambda _: F.hex("t"),
    "end": lambda _: F.substring("t", -2, 2),
    "as long as it says": lambda _: F.expr("substring(t, 1, length(v))"),
    "nothing of it": lambda _: F.substring("t", 1, 0),
    "with another text between": lambda _: F.expr("concat_ws(v, t, t)"),
}
"""Those that none has."""
_SEEDS = (1, 1001, 2001)
_ROWS = 150


def rows_of_edges(*columns: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Numbered rows that have any values of the columns in any company."""
    made: list[tuple[Any, ...]] = []
    for seed in _SEEDS:
        chance = random.Random(seed)
        made += [(k, *map(chance.choice, columns)) for k in range(seed, seed + _ROWS)]
    return made


class Worded(ABC):
    """The rows of table ``r`` by key ``k``, as the judge's frame; a subclass asks the server.

    Args:
        chunks: reads the table.
        spark: a running session.
        folder: gets the rows.
        where: the condition of rows that the judge can read.
    """

    def __init__(self, chunks: SourceChunks, spark: SparkSession, folder: Path, where: str = "1 = 1"):
        self.schema = chunks.schema
        chunks.read(where, folder / "rows.parquet")
        self._spark = spark
        self._frame = parquet_frame(spark, [folder / "rows.parquet"], self.schema)
        self._in_plan = spark.createDataFrame(self._frame.toArrow(), self._frame.schema)

    @abstractmethod
    def by_server(self, made: SqlValue) -> tuple[dict[int, Any], set[int]]:
        """Values by key, and the keys of which it doesn't know."""

    @abstractmethod
    def plain_time(self, time: Column) -> Column:
        """A time as the server's values have it."""

    @abstractmethod
    def plain(self, value: Any, kind: str) -> Any:
        """A value of Spark's type, equal for equal ones of the server's."""

    def expression(self, said: Said) -> Expression | None:
        """What the plan of a mapping says of the column."""
        mapping = Mappings()

        @mapping.target("made", key="k", sources=["r"])
        def mapped(r: DataFrame) -> DataFrame:
            return _again(r).select("k", said(r).alias("made"))

        return handed_columns(self._spark, mapping["made"], self.schema).expressions.get("made")

    def by_spark(self, said: Said, keys: set[int]) -> dict[int, Any]:
        """Values of rows, by key."""
        return self._values({"made": said}, {"made": keys})["made"]

    def together_by_spark(
        self, said: Mapping[str, Said], keys: Mapping[str, set[int]]
    ) -> dict[str, dict[int, Any]]:
        """Values of several columns by name and key, each of rows of its own, by one query.

        If that fails, an error names the column at fault.
        """
        try:
            return self._values(said, keys)
        except PySparkException:
            for name in said:
                try:
                    self.by_spark(said[name], keys[name])
                except PySparkException as error:
                    raise AssertionError(f"{name}: {spark_cause(error)}") from error
            raise

    def fails_in_spark(self, said: Said, key: int) -> bool:
        """Whether a value can't be computed. The row is part of the plan: that needs no job."""
        frame = _again(self._in_plan).where(f"k = {key}")
        made = frame.select(said(frame).alias("made"))
        try:
            rows = made.toArrow().num_rows
        except PySparkException:
            return True
        assert rows == 1, "no such row"
        return False

    def _values(self, said: Mapping[str, Said], keys: Mapping[str, set[int]]) -> dict[str, dict[int, Any]]:
        wanted = sorted(set().union(*keys.values()))
        frame = _again(self._frame).where(f"k IN ({', '.join(map(str, wanted))})")
        made = frame.select(
            "k",
            *(
                F.when(F.expr(f"k IN ({', '.join(map(str, keys[name]))})"), said[name](frame)).alias(f"c{n}")
                for n, name in enumerate(said)
            ),
        )
        kinds = [kind for _, kind in made.dtypes[1:]]
        for n, kind in enumerate(kinds):
            if kind.startswith("timestamp"):
                made = made.withColumn(f"c{n}", self.plain_time(F.col(f"c{n}")))
        rows = {row[0]: row[1:] for row in made.collect()}
        return {
            name: {key: self.plain(rows[key][n], kinds[n]) for key in keys[name] if key in rows}
            for n, name in enumerate(said)
        }


def in_groups(said: Mapping[str, Said], size: int = 20) -> list[list[str]]:
    """The columns' names, so many at a time as one query computes."""
    names = list(said)
    return [names[place : place + size] for place in range(0, len(names), size)]


def _again(frame: DataFrame) -> DataFrame:
    """With a column of another projection."""
    return frame.withColumn("again", F.col("t"))
