"""A target column that becomes narrower while we run: nothing is rounded or cut, in no engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration

CHANGES: list[tuple[str, str, Any]] = [
    ("numeric(10,4)", "numeric(10,2)", pa.array([Decimal("1.0051")], pa.decimal128(10, 4))),
    ("timestamp(6)", "timestamp(0)", pa.array([1_500_000], pa.int64()).cast(pa.timestamp("us"))),
    ("time(6)", "time(0)", pa.array(["12:00:00.500000"])),
    ("varchar(5)", "varchar(3)", pa.array(["ab   "])),
    ("double precision", "real", pa.array([0.123456789012])),
]


@contextmanager
def benched(database: Database, *statements: str) -> Iterator[Any]:
    made = target_bench.bench if database.kind == "postgresql" else target_bench_mysql.bench
    with made(database, *statements) as it:
        yield it


@pytest.fixture(params=["pg", "maria", "mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"new_{request.param}")
    return found


def in_words_of(database: Database, kind: str) -> str:
    if database.kind == "postgresql":
        return kind
    return kind.replace("numeric", "decimal").replace("timestamp", "datetime").replace("real", "float")


def altered(database: Database, kind: str) -> str:
    if database.kind == "postgresql":
        return f"ALTER TABLE t ALTER v TYPE {kind}"
    return f"ALTER TABLE t MODIFY v {in_words_of(database, kind)}"


@pytest.mark.each_value
@pytest.mark.parametrize(("wide", "narrow", "values"), CHANGES, ids=[one[0] for one in CHANGES])
@pytest.mark.parametrize("path", ["chunk", "after"])
def test_a_column_narrowed_while_we_run_cuts_nothing(
    new: Database, wide: str, narrow: str, values: pa.Array, path: str
) -> None:
    create = f"CREATE TABLE t (id int PRIMARY KEY, v {in_words_of(new, wide)})"
    with benched(new, create) as it:
        first, second = (pa.table({"id": pa.array([n], pa.int32()), "v": values}) for n in (1, 2))
        it.apply(it.part("t", chunk=first.slice(0, 0), after=first))
        part = _part(it, path, second)
        new.execute("DELETE FROM t", altered(new, narrow))
        with pytest.raises(TargetError) as raised:
            it.apply(part)
        assert re.search("column '?v", str(raised.value))
        assert new.query("SELECT count(*) FROM t") == [(0,)], "nothing of it was written"
    with benched(new) as again:  # as the remedy says
        with pytest.raises(TargetError) as by_row:
            again.apply(_part(again, path, second))
        assert re.search("id='?2", by_row.value.where)
        assert "v" in by_row.value.where
        new.execute(altered(new, wide))
    with benched(new) as at_last:
        at_last.apply(_part(at_last, path, second))
        assert new.query("SELECT count(*) FROM t") == [(1,)]


def _part(it: Any, path: str, rows: pa.Table) -> Any:
    return it.part("t", **{path: rows}) if path == "after" else it.part("t", chunk=rows, strict=False)


def test_what_is_changed_inside_the_transaction_is_seen_at_its_end(new: Database) -> None:
    with benched(new, f"CREATE TABLE t (id int PRIMARY KEY, v {in_words_of(new, 'time(6)')})") as it:
        part = it.part("t", after=pa.table({"id": pa.array([1], pa.int32()), "v": ["12:00:00.500000"]}))

        def narrowed(point: str) -> None:
            if point == "target.begun":
                new.execute(altered(new, "time(0)"))

        it.target._step = narrowed
        with pytest.raises(TargetError, match="was changed while we run") as raised:
            it.apply(part)
        assert "column v" in raised.value.where
        assert "time" in raised.value.cause
        assert new.query("SELECT count(*) FROM t") == [(0,)]


def test_without_the_look_at_the_end_the_value_is_rounded(
    new: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    with benched(new, f"CREATE TABLE t (id int PRIMARY KEY, v {in_words_of(new, 'time(6)')})") as it:
        part = it.part("t", after=pa.table({"id": pa.array([1], pa.int32()), "v": ["12:00:00.500000"]}))
        new.execute(altered(new, "time(0)"))
        monkeypatch.setattr(type(it.target), "_check_unchanged", lambda self, session: None)
        it.apply(part)
        assert "00.5" not in str(new.query("SELECT CAST(v AS char(20)) FROM t"))
        assert len(new.query("SELECT * FROM t")) == 1
