"""Random mappings out of what can be turned round: mapped there and back, every row is what it was."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.integration.reverse.tables import Project, by_name, side
from transforms import Mapping
from transforms.columns import cents, uuid5

pytestmark = pytest.mark.spark

SPACE = "6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a01"
WORDS = {"red": "r", "green": "g", "blue": "b", "": "-", "Red": "R"}
Step = tuple[str, Callable[[Column], Column]]
"""The type that a step gives, and the step."""


def _mapped(column: Column) -> Column:
    found = F.lit(None).cast("string")
    for old, new in WORDS.items():
        found = F.when(column == old, new).otherwise(found)
    return found


def _decimal(text: str) -> Column:
    return F.lit(Decimal(text))


STEPS: dict[str, Sequence[Step]] = {
    "smallint": [("int", lambda c: c.cast("int")), ("bigint", lambda c: c.cast("bigint"))],
    "int": [
        ("bigint", lambda c: c.cast("bigint")),
        ("string", lambda c: c.cast("string")),
        ("double", lambda c: c.cast("double")),
        ("string", lambda c: F.concat(F.lit("<"), c, F.lit(">"))),
        ("bigint", lambda c: c.cast("bigint") + 17),
        ("decimal(20,3)", lambda c: (c.cast("decimal(10,0)") * _decimal("1.609")).cast("decimal(20,3)")),
        ("decimal(20,2)", lambda c: F.round(c.cast("decimal(10,0)") * _decimal("0.3048"), 2).cast("decimal(20,2)")),
        ("decimal(14,2)", lambda c: (c / 100).cast("decimal(14,2)")),
    ],
    "boolean": [
        ("int", lambda c: c.cast("int")),
        ("boolean", lambda c: ~c),
        ("string", lambda c: c.cast("string")),
        ("string", lambda c: F.when(c, "yes").when(~c, "no")),
    ],
    "decimal(7,2)": [
        ("bigint", cents),
        ("decimal(12,4)", lambda c: c.cast("decimal(12,4)")),
        ("string", lambda c: c.cast("string")),
        ("decimal(9,2)", lambda c: (c - _decimal("32")).cast("decimal(9,2)")),
    ],
    "date": [("string", lambda c: c.cast("string")), ("timestamp_ntz", lambda c: c.cast("timestamp_ntz"))],
    "timestamp_ntz": [("string", lambda c: c.cast("string"))],
    "string": [("string", lambda c: F.concat(F.lit("~"), c, F.lit("0")))],
    "words": [("string", _mapped)],
}  # fmt: skip


@dataclass(frozen=True)
class Made:
    """A column of the new side: its old one, its type, and the way there."""

    old: str
    type: str
    way: Callable[[], Column]


def drawn_column(draw: random.Random, name: str, kind: str) -> Made:
    """One to three steps from an old column."""
    way: Callable[[], Column] = partial(F.col, name)
    current = kind
    for _ in range(draw.randint(0 if kind != "words" else 1, 3)):
        if current not in STEPS:
            break
        current, step = draw.choice(STEPS[current])
        way = partial(_stepped, step, way)
    return Made(name, current, way)


def _stepped(step: Callable[[Column], Column], before: Callable[[], Column]) -> Column:
    return step(before())


def value(draw: random.Random, kind: str, nullable: bool) -> object:
    if nullable and draw.random() < 0.3:
        return None
    drawn: dict[str, Callable[[], object]] = {
        "smallint": lambda: draw.randint(-(2**15), 2**15 - 1),
        "int": lambda: draw.choice([0, 1, -1, 2**31 - 1, -(2**31), draw.randint(-99999, 99999)]),
        "boolean": lambda: draw.random() < 0.5,
        "decimal(7,2)": lambda: Decimal(draw.randint(-9999999, 9999999)).scaleb(-2),
        "date": lambda: dt.date(1, 1, 1) + dt.timedelta(days=draw.randint(0, 3_000_000)),
        "timestamp_ntz": lambda: dt.datetime(1900, 1, 1) + dt.timedelta(microseconds=draw.randint(0, 10**16)),
        "string": lambda: draw.choice(["", " ", "a", "~0", "\n", "'", '"', "é", "NULL", "0~"]),
        "words": lambda: draw.choice(list(WORDS)),
    }
    return drawn[kind]()


def declare(mapping: Mapping, table: str, columns: Sequence[Made], hashed: bool, where: str) -> list[str]:
    """A new table of some old columns; returns how ``side`` writes its columns."""

    def function(old: DataFrame) -> DataFrame:
        key = [uuid5(SPACE, "id").alias("k"), *([F.col("id").alias("old_id")] if table == "t0" else [])]
        chosen = key if hashed else [F.col("id").cast("bigint").alias("k")]
        return old.where(where).select(*chosen, *(one.way().alias(f"n_{one.old}") for one in columns))

    mapping.target(table, key="k")(function)
    texts = [
        "k string key" if hashed else "k bigint key",
        *(["old_id int"] if hashed and table == "t0" else []),
    ]
    return [*texts, *(f"n_{one.old} {one.type} null" for one in columns)]


@pytest.mark.parametrize("seed", range(8))
def test_rows_come_back_from_random_mappings(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    kinds = [kind for kind in STEPS for _ in range(2) if kind != "double"]
    draw.shuffle(kinds)
    names = [(f"c{at}", kind, draw.random() < 0.6) for at, kind in enumerate(kinds)]
    columns = [drawn_column(draw, name, kind) for name, kind, _ in names]
    hashed, parts = draw.random() < 0.5, draw.randint(1, 3)
    mapping, new = Mapping(), []
    for part in range(parts):
        mine = [one for at, one in enumerate(columns) if at % parts == part]
        halves = ["id % 2 = 0", "NOT (id % 2 = 0)"] if part and draw.random() < 0.5 else ["true"]
        for half, where in enumerate(halves):
            table = f"t{part}" if len(halves) == 1 else f"t{part}_{half}"
            new.append(side(table, *declare(mapping, table, mine, hashed, where)))
    old = [
        f"{name} {'string' if kind == 'words' else kind}{' null' if null else ''}"
        for name, kind, null in names
    ]
    project = Project(spark, mapping, by_name(side("old", "id int key", *old)), by_name(*new))
    [reverse] = project.reverses
    assert not reverse.open, (seed, reverse.open, [(one.old, one.type) for one in columns])
    rows = [
        (number, *(value(draw, kind, null) for _, kind, null in names))
        for number in sorted(draw.sample(range(-50, 50), 30))
    ]
    assert project.there_and_back(tmp_path, old=rows) == {"old": rows}, project.text
