"""Random queries and small edits of them: where the rows differ, so do the outlines. Read and run by real Spark."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.integration.transforms.test_fingerprint import SCHEMAS
from transforms.analysis.fingerprint import _Parts
from transforms.analysis.outline import drawn, outline

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TEXTS = [
    "dest",
    "upper(dest)",
    "substring(dest, 1, 2)",
    "concat(dest, 'x')",
    "coalesce(dest, '-')",
    "reverse(dest)",
]
NUMBERS = [
    "id",
    "delay",
    "id + delay",
    "id - delay",
    "delay - id",
    "length(dest)",
    "CAST(price AS int)",
    "-delay",
]
STRUCTS = [
    "named_struct('a', id, 'b', delay).a",
    "named_struct('a', delay, 'b', id).a",
    "array(id, delay)[0]",
]
STRUCTS += [
    "array(delay, id)[0]",
    "transform(array(id), e -> e + delay)[0]",
    "transform(array(delay), e -> e + id)[0]",
]
FILTERS = [
    "delay > 1",
    "delay > 2",
    "id > delay",
    "delay > id",
    "dest IS NULL",
    "dest IS NOT NULL",
    "dest < 'c'",
    "true",
]
AGGREGATES = [
    "count(*)",
    "count(dest)",
    "sum(delay)",
    "max(id)",
    "min(id)",
    "sum(DISTINCT delay)",
    "max(delay)",
]
WINDOWS = ["row_number()", "rank()", "sum(delay)", "lag(id)", "lead(id)", "lag(delay)"]
ORDERS = ["id", "delay, id", "id DESC", "delay DESC, id", "dest, id", "dest NULLS LAST, id"]
PAIRS = [
    "a.id = b.id",
    "a.id = b.delay",
    "a.delay = b.id",
    "a.dest = b.dest",
    "a.delay = b.delay",
    "a.id < b.delay",
]
SIDES = ["a.id", "b.id", "a.delay", "b.delay"]
NAMED = ["a.dest", "b.dest", "coalesce(a.dest, b.dest)", "coalesce(b.dest, a.dest)"]
SLOTS: dict[str, list[str]] = {
    "text": TEXTS,
    "number": NUMBERS + STRUCTS,
    "filter": FILTERS,
    "aggregate": AGGREGATES,
    "window": WINDOWS,
    "order": ORDERS,
    "group": ["dest", "delay", "id % 3", "upper(dest)", "length(dest)"],
    "pair": PAIRS,
    "side": SIDES,
    "named": NAMED,
    "join": ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"],
    "outer": ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"],
    "sets": ["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"],
    "flag": ["", "DISTINCT"],
    "inner": [
        "id, delay, dest, price",
        "delay AS id, id AS delay, dest, price",
        "id, id AS delay, dest, price",
    ],
    "has": ["EXISTS", "NOT EXISTS"],
    "of": ["w.id = f.id", "w.id = f.delay", "w.dest = f.dest", "w.dest < f.dest"],
    "name": ["p", "q"],
}
TEMPLATES = [
    "SELECT {flag} {number} AS id, {text} AS dest, {number} AS n FROM {{f}} WHERE {filter} AND {filter}",
    "SELECT {number} AS id, {text} AS dest FROM (SELECT {inner} FROM {{f}} WHERE {filter}) WHERE {filter}",
    "SELECT {side} AS id, {named} AS dest, {side} AS n FROM {{f}} a {outer} {{f}} b ON {pair} AND {pair}",
    "SELECT {side} AS id, {named} AS dest FROM {{f}} a {outer} (SELECT id, dest, id AS delay FROM {{w}}) b ON {pair}",
    "SELECT a.id, a.dest, a.delay AS n FROM {{f}} a {join} {{w}} b ON a.id = b.id AND a.dest {op} b.dest",
    "SELECT {group} AS g, {aggregate} AS id, {aggregate} AS n FROM {{f}} WHERE {filter} GROUP BY 1",
    "SELECT {group} AS g, {aggregate} AS id FROM {{f}} GROUP BY 1 HAVING {aggregate} > 1",
    "SELECT id, dest, r AS n FROM (SELECT *, {window} OVER (PARTITION BY {group} ORDER BY {order}) AS r FROM {{f}})"
    " WHERE r {op} 2",
    "SELECT {number} AS id, {text} AS dest FROM {{f}} {sets} SELECT {number}, {text} FROM {{f}} WHERE {filter}",
    "SELECT id, {text} AS dest FROM {{f}} f WHERE {has} (SELECT 1 FROM {{w}} w WHERE {of})",
    "SELECT id, (SELECT max({wide}) FROM {{w}} w WHERE w.id = f.id) AS n FROM {{f}} f WHERE {filter}",
    "WITH p AS (SELECT {inner} FROM {{f}}), q AS (SELECT {inner} FROM {{f}} WHERE {filter})"
    " SELECT a.id, {named} AS dest FROM {name} a JOIN {name} b ON {pair}",
    "SELECT id, e AS n, dest FROM {{f}} LATERAL VIEW {explode}(array({number}, {number})) x AS e WHERE {filter}",
]
SLOTS |= {
    "op": ["=", "<", ">", "<=>", "<="],
    "wide": ["w.id", "w.temp", "length(w.dest)"],
    "explode": ["explode", "explode_outer"],
}
_SLOT = re.compile(r"\{(\w+)\}")
F_ROWS = [
    (1, "a", 3, "1.5"),
    (2, None, 1, "2.5"),
    (3, "b", 3, None),
    (4, "cd", None, "7.1"),
    (5, "a", 2, "0.4"),
]
F_ROWS += [(6, "cd", 6, "6.6"), (7, "dd", 2, "3.3"), (8, "b", 1, "1.1")]
W_ROWS = [(1, 3.5, "a"), (2, 1.5, "b"), (3, None, None), (5, 2.5, "cd"), (9, 9.5, "zz"), (6, 0.5, "a")]


def programs(seed: int) -> Iterator[tuple[str, list[str]]]:
    """A template, and its slots filled at random; then the same with one slot filled otherwise, a few times."""
    chance = random.Random(seed)
    template = chance.choice(TEMPLATES).replace("{{", "<").replace("}}", ">")
    names = _SLOT.findall(template)
    filled = [chance.choice(SLOTS[name]) for name in names]
    yield template, filled
    for _ in range(4):
        place = chance.randrange(len(names))
        yield template, [*filled[:place], chance.choice(SLOTS[names[place]]), *filled[place + 1 :]]


def query(template: str, filled: list[str]) -> str:
    values = iter(filled)
    return _SLOT.sub(lambda _: next(values), template).replace("<f>", "{f}").replace("<w>", "{w}")


def made(text: str, frames: dict[str, DataFrame]) -> DataFrame:
    session = frames["flights"].sparkSession
    return session.sql(text, f=frames["flights"], w=frames["weather"])


def outlined(spark: SparkSession, text: str) -> object:
    """The outline without the types of columns."""
    parts = _Parts(spark, SCHEMAS)
    plan = parts.of(lambda frames: made(text, frames))
    return {**json.loads(outline(drawn(plan, parts.functions), {}, {}, parts.types)), "reads": None}


@pytest.fixture(scope="module")
def data(spark: SparkSession) -> dict[str, DataFrame]:
    flights = spark.createDataFrame(F_ROWS, "id bigint, dest string, delay int, price string")
    weather = spark.createDataFrame(W_ROWS, "id bigint, temp double, dest string")
    price = flights["price"].cast("decimal(12,4)")
    return {"flights": flights.withColumn("price", price), "weather": weather}


@pytest.mark.parametrize("seed", range(40))
def test_where_rows_differ_outlines_do(spark: SparkSession, data: dict[str, DataFrame], seed: int) -> None:
    seen: dict[str, tuple[list[str], object]] = {}
    for template, filled in programs(seed):
        text = query(template, filled)
        rows = sorted(map(repr, made(text, data).collect()))
        drawing = outlined(spark, text)
        for other, (other_rows, other_drawing) in seen.items():
            if rows != other_rows:
                assert drawing != other_drawing, f"{text}\n{other}"
        seen[text] = (rows, drawing)
