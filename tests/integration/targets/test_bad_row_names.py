"""A refused row is known by its key, whatever the key is of and whatever the server prints of the row's values."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import RowRefused, TargetError
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.run.apply.set_aside import AsideTarget
from tests.integration import target_bench, target_bench_mysql

pytestmark = pytest.mark.integration

KEYS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "bytes": (pa.binary(), [b"k%d" % n if n % 2 else b"\xff%d" % n for n in range(8)]),
    "moment": (pa.timestamp("us", "UTC"), [datetime(2021, 3, 1, 10, n, tzinfo=UTC) for n in range(8)]),
    "text": (pa.string(), [f"k, {n})=(1" for n in range(8)]),
}
TYPES = {
    "postgresql": {"bytes": "bytea", "moment": "timestamptz", "text": "text"},
    "mysql": {"bytes": "varbinary(20)", "moment": "timestamp NOT NULL", "text": "varchar(40)"},
}
LONG = "https://example.org/" + "a" * 80
"""Longer than what MySQL and MariaDB print of a value."""


@pytest.fixture(params=["postgresql", "mysql", "mariadb"])
def bench(request: pytest.FixtureRequest) -> Iterator[Any]:
    """An empty target database and a writer on it."""
    if request.param == "postgresql":
        with target_bench.bench(request.getfixturevalue("new_pg")) as made:
            yield made
    else:
        new = request.getfixturevalue("new_mysql" if request.param == "mysql" else "new_maria")
        with target_bench_mysql.bench(new) as made:
            yield made


def types(bench: Any) -> dict[str, str]:
    return TYPES["postgresql" if bench.database.kind == "postgresql" else "mysql"]


def rows(kind: str, numbers: list[int], texts: list[str], *places: int) -> pa.Table:
    type_, keys = KEYS[kind]
    chosen = list(places) or list(range(len(numbers)))
    return pa.table({"k": pa.array([keys[n] for n in chosen], type_), "n": numbers, "u": texts})


def aside(bench: Any) -> None:
    bench.target = AsideTarget(bench.target, ApplyLimits(bad_rows=SET_ASIDE))


def left(bench: Any) -> set[str]:
    return {text for (text,) in bench.database.query("SELECT u FROM t")}


@pytest.mark.parametrize("kind", list(KEYS))
def test_rows_of_any_key_go_aside_for_any_reason_and_come_back(bench: Any, kind: str) -> None:
    """Two CHECKs, two unique values: in any order, one hides the other from whoever tries halves."""
    bench.database.execute(
        f"CREATE TABLE t (k {types(bench)[kind]} PRIMARY KEY, n int CHECK (n < 100), u varchar(200) UNIQUE)"
    )
    aside(bench)
    bench.apply(bench.part("t", chunk=rows(kind, [1, 2], [LONG, "b"]), strict=False), done=False)
    numbers, texts = [500, 3, 4, 500, 6, 7], ["c", LONG, LONG + "d", "e", "b", "f"]
    bench.apply(bench.part("t", after=rows(kind, numbers, texts, *range(2, 8))))
    assert left(bench) == {LONG, "b", LONG + "d", "f"}
    assert len(bench.target._held) == 4
    fit = rows(kind, [3, 4, 5, 6], ["c", "x", "e", "y"], 2, 3, 5, 6)
    bench.apply(bench.part("t", before=fit.select(["k"]), after=fit))
    assert left(bench) == {LONG, "b", "c", "x", LONG + "d", "e", "y", "f"}
    assert bench.target._held == ()


@pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
def test_unique_values_are_found_as_the_server_prints_them(bench: Any) -> None:
    bench.database.execute(
        'CREATE TABLE t (k int PRIMARY KEY, "A, b" boolean, u character(6), n numeric(6,2), UNIQUE ("A, b", u, n))'
    )
    aside(bench)

    def of(*keys: int, same: int) -> pa.Table:
        count = len(keys)
        flags, texts = [True] * count, ["x" if n >= same else f"y{n}" for n in range(count)]
        return pa.table({"k": keys, "A, b": flags, "u": texts, "n": [Decimal("1.50")] * count})

    bench.apply(bench.part("t", after=of(1, 2, 3, 4, same=2)))
    held = bench.target._held
    assert [row.key for row in held] in ([("3",)], [("4",)]), held


@pytest.mark.parametrize("bench", ["postgresql"], indirect=True)
def test_values_that_look_alike_between_their_commas_blame_no_row(bench: Any) -> None:
    """The server prints ``a, b, c`` of both pairs: which one it means can't be told."""
    bench.database.execute("CREATE TABLE t (k int PRIMARY KEY, a text, b text, UNIQUE (a, b))")
    one, other = {"a": ["a, b"], "b": ["c"]}, {"a": ["a"], "b": ["b, c"]}
    bench.apply(bench.part("t", after=pa.table({"k": [1], **one})))
    both = {name: [*other[name], *one[name]] for name in one}
    with pytest.raises(TargetError) as refused:
        bench.apply(bench.part("t", after=pa.table({"k": [2, 3], **both})))
    assert not isinstance(refused.value, RowRefused)
    with pytest.raises(RowRefused) as named:
        bench.apply(bench.part("t", after=pa.table({"k": [3], **one})))
    assert named.value.key == ("3",)
