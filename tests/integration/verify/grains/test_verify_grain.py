"""The judge of rows made of several others: in chunks, under live writes, and each open key by what it is
made of."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.integration.verify.grains.grain_project import (
    CITIES,
    CUSTOMERS,
    MADE,
    STAFF,
    BinlogProject,
    GrainProject,
    Shoppers,
)
from tests.servers import Database
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.ports import Bracket, Part
from verify.readers.postgres.session import PostgresSnapshot, PostgresViews
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.tables import PostgresSourceTables
from verify.tables.rounds import live, table_reads
from verify.tables.rounds import progress as rounds
from verify.tables.sweeps.grain_plan import Grain
from verify.tables.sweeps.grain_sweep import GrainSweep
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 20
"""In a chunk."""
PLANTED = {
    ("person", "different", "c-17"): "UPDATE person SET name = name || '.' WHERE ref = 'c-17'",
    ("person", "missing", "s-code 3"): "DELETE FROM person WHERE ref = 's-code 3'",
    ("person", "extra", "c-none"): "INSERT INTO person VALUES ('c-none', 'x')",
    ("account", "different", "c-31"): "UPDATE account SET paid = paid + 0.01 WHERE ref = 'c-31'",
    ("account", "missing", "c-60"): "DELETE FROM account WHERE ref = 'c-60'",
    ("city_sales", "different", "3"): "UPDATE city_sales SET paid = paid + 0.01 WHERE city_id = 3",
    ("letter", "extra", "z"): "INSERT INTO letter VALUES ('z', 1)",
}


@pytest.fixture
def project(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> GrainProject:
    return GrainProject(old_pg, new_pg, spark, tmp_path)


@pytest.fixture
def busy(project: GrainProject, monkeypatch: pytest.MonkeyPatch) -> GrainProject:
    """A pipeline that holds its slot as long as it runs: nobody else can say that nothing waits there."""
    in_use = Pending(PendingAnswer.UNKNOWN, "the slot is in use")
    monkeypatch.setattr(PostgresSource, "pending", lambda *_: in_use)
    monkeypatch.setattr(live, "POLL_S", 0.02)  # chunks are small here, and each may have its wait
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)  # nothing is flipped to and fro here
    return project


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """The views that rows were read in: of each its rows by table. Those of both sides may be open at once."""
    seen: list[dict[str, int]] = []
    of: dict[PostgresSnapshot, dict[str, int]] = {}
    begin, read = PostgresViews.view, PostgresSnapshot.to_parquet

    @contextmanager
    def view(self: PostgresViews, bulk: bool = False) -> Any:
        with begin(self, bulk) as found:
            if bulk:
                of[found] = {}
                seen.append(of[found])
            yield found

    def to_parquet(
        self: PostgresSnapshot, query: Any, names: Any, path: Path, convert: Any, subject: str
    ) -> int:
        rows = read(self, query, names, path, convert, subject)
        of[self][subject] = of[self].get(subject, 0) + rows
        return rows

    monkeypatch.setattr(PostgresViews, "view", view)
    monkeypatch.setattr(PostgresSnapshot, "to_parquet", to_parquet)
    return seen


def most(views: Sequence[dict[str, int]]) -> int:
    return max(rows for view in views for rows in view.values())


@pytest.mark.slow
def test_no_view_holds_more_than_a_chunk(project: GrainProject, views: list[dict[str, int]]) -> None:
    result = project.verify(ROWS)
    assert result.verdict is Verdict.EQUAL
    counts = {table.target: table.counts.equal for table in result.tables}
    assert counts == {"person": CUSTOMERS + STAFF, "account": CUSTOMERS, "city_sales": 5, "letter": 4}
    assert [table.method.partition(":")[0] for table in result.tables] == [
        f"chunk by chunk, {chunks} chunks, all rows read"
        for chunks in (4 + 1 + 4, 4 + 1 + 8 + 4, 4 + 8 + 1, 4 + 1)
    ]
    assert most(views) == ROWS
    assert all(len(view) == 1 for view in views)
    views.clear()
    assert project.verify(0).verdict is Verdict.EQUAL
    assert most(views) == 150, "whole tables are read in one view by who asks for it"


@pytest.mark.slow
def test_tables_that_fit_into_one_chunk_share_its_view(
    project: GrainProject, views: list[dict[str, int]]
) -> None:
    result = project.verify(CUSTOMERS + STAFF + 150 + 5)
    assert result.verdict is Verdict.EQUAL
    assert {table.method.partition(": ")[0] for table in result.tables} == {
        "in one chunk, a short view of each side"
    }
    assert [len(view) for view in views] == [4, 4]
    views.clear()
    project.verify(CUSTOMERS + STAFF + 150)
    assert sorted(len(view) for view in views) != [4, 4]


@pytest.mark.slow
def test_what_differs_is_found_at_rest(project: GrainProject) -> None:
    project.new.execute(*PLANTED.values())
    assert project.verify(ROWS).verdict is Verdict.DIFFERENT
    assert project.found() == set(PLANTED)


@pytest.mark.slow
def test_what_differs_is_found_among_hot_rows_by_grain(
    busy: GrainProject, monkeypatch: pytest.MonkeyPatch, views: list[dict[str, int]]
) -> None:
    looked: list[str] = []
    look = GrainSweep.look

    def noted(self: GrainSweep, pieces: Any) -> Any:
        looked.append(self._mapping.name)
        return look(self, pieces)

    monkeypatch.setattr(GrainSweep, "look", noted)
    planted = {key: how for key, how in PLANTED.items() if key[0] in ("person", "account")}
    faults = list(planted.values())
    busy.apply(*MADE, fault=faults)
    with Shoppers(busy, ["person", "account"], faults) as shoppers:
        result = busy.verify(ROWS, ["person", "account"], rounds=rounds.STEADY_ROUNDS + 2)
    assert shoppers.commits > 3
    assert (result.verdict, busy.found()) == (Verdict.DIFFERENT, set(planted))
    assert set(looked) == {"person", "account"}
    assert max(sum(view.values()) for view in views) <= ROWS, "what is linked is in it"


@pytest.mark.slow
def test_a_grain_larger_than_a_chunk_is_not_read_in_one_view(
    busy: GrainProject, monkeypatch: pytest.MonkeyPatch, views: list[dict[str, int]]
) -> None:
    """Its key isn't taken for one that nothing makes. It is judged by sweeps, like one beside it that is
    missing."""
    busy.old.execute("INSERT INTO payment SELECT g, 31, 1 FROM generate_series(1000, 1030) g")
    faults = [PLANTED["account", "different", "c-31"], PLANTED["account", "missing", "c-60"]]
    busy.apply(*MADE, fault=faults)
    with Shoppers(busy, ["account"], faults):
        busy.verify(
            ROWS, ["account"], rounds=rounds.STEADY_ROUNDS + 1
        )  # in the second these keys are left open
    assert max(sum(view.values()) for view in views) <= ROWS
    assert busy.found() == {("account", "different", "c-31"), ("account", "missing", "c-60")}
    views.clear()
    monkeypatch.setattr(Grain, "_fits", lambda *_: True)
    with Shoppers(busy, ["account"], faults):
        busy.verify(ROWS, ["account"], rounds=2)  # a sweep, and one look by grain
    assert max(sum(view.values()) for view in views) > ROWS


@pytest.mark.slow
def test_hot_rows_are_no_alarm_and_most_of_them_settle(busy: GrainProject) -> None:
    with Shoppers(busy, ["person", "letter"]) as shoppers:
        result = busy.verify(ROWS, ["person", "letter"], rounds=3)
    assert shoppers.commits > 3
    assert busy.found() == set()
    for table in result.tables:
        counts = table.counts
        assert (counts.different, counts.missing, counts.extra, counts.duplicate) == (0, 0, 0, 0)
    person = next(table for table in result.tables if table.target == "person")
    assert person.counts.equal + person.counts.set_aside == CUSTOMERS + STAFF


def test_a_row_that_moves_between_two_chunks_is_no_duplicate(
    busy: GrainProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key stays the same in the target, and both chunks show it: where it was, and where it went."""
    moved: list[int] = []
    read = PostgresSourceTables.read

    def moving(self: PostgresSourceTables, parts: Sequence[Part]) -> tuple[Bracket, int]:
        found = read(self, parts)
        if not moved and parts[0].table == "staff":
            moved.append(1)
            busy.old.execute("UPDATE staff SET code = 'moved' WHERE name = 'staff 1'")
            busy.apply("person")
        return found

    monkeypatch.setattr(PostgresSourceTables, "read", moving)
    monkeypatch.setitem(MADE, "person", MADE["person"].replace("'s-' || code", "'s-' || name"))
    busy.mapping.write_text(busy.mapping.read_text().replace('ref("s-", "code")', 'ref("s-", "name")'))
    busy.apply("person")
    result = busy.verify(5, ["person"])
    assert moved
    assert (result.verdict, busy.found()) == (Verdict.EQUAL, set())


def test_a_judge_that_takes_chunks_for_one_view_calls_it_a_duplicate(
    busy: GrainProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = rounds.TableProgress.take

    def take(self: Any, *given: Any) -> None:
        taken: list[Any] = [self, *given[:-1], True]
        honest(*taken)

    monkeypatch.setattr(rounds.TableProgress, "take", take)
    with pytest.raises(AssertionError):
        test_a_row_that_moves_between_two_chunks_is_no_duplicate(busy, monkeypatch)
    assert busy.found() == {("person", "duplicate", "s-staff 1")}


@pytest.mark.slow
def test_a_table_that_nothing_cuts_is_unknown_unless_asked_for(project: GrainProject) -> None:
    project.new.execute("ALTER TABLE person DROP CONSTRAINT person_pkey")
    result = project.verify(ROWS)
    by_name = {table.target: table for table in result.tables}
    assert by_name["person"].verdict is Verdict.UNKNOWN
    assert "the target has no unique index" in by_name["person"].reason
    assert by_name["account"].verdict is Verdict.EQUAL
    assert project.verify(ROWS, ["person"]).verdict is Verdict.UNKNOWN
    assert project.verify(0).verdict is Verdict.EQUAL


@pytest.mark.slow
def test_many_open_keys_are_read_chunk_by_chunk_again(
    busy: GrainProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_reads, "KEYS_MAX", 0)
    monkeypatch.setattr(GrainSweep, "look", lambda *_: pytest.fail("too many keys for that"))
    fault = ["UPDATE account SET paid = paid + 0.01 WHERE ref = 'c-31'"]
    with Shoppers(busy, ["account"], fault):
        busy.verify(ROWS, ["account"], rounds=rounds.STEADY_ROUNDS + 2)
    assert busy.found() == {("account", "different", "c-31")}


BINLOG_OLD = f"""
CREATE TABLE city (city_id int PRIMARY KEY, city varchar(40) NOT NULL);
CREATE TABLE customer (id bigint PRIMARY KEY, name varchar(40), city_id int,
  FOREIGN KEY (city_id) REFERENCES city (city_id));
CREATE TABLE staff (code varchar(20) CHARACTER SET latin1 PRIMARY KEY, name varchar(40));
CREATE TABLE payment (payment_id bigint PRIMARY KEY, customer_id bigint, amount decimal(12,2),
  FOREIGN KEY (customer_id) REFERENCES customer (id));
INSERT INTO city VALUES {", ".join(f"({n}, 'city {n}')" for n in range(1, CITIES + 1))};
INSERT INTO customer VALUES
  {", ".join(f"({n}, 'name {n}', {n % (CITIES + 1) or 'NULL'})" for n in range(1, CUSTOMERS + 1))};
INSERT INTO staff VALUES {", ".join(f"('code {n}', 'staff {n}')" for n in range(1, STAFF + 1))};
INSERT INTO payment VALUES {", ".join(f"({n}, {n % 40 + 1}, {n})" for n in range(1, 151))}
"""


@pytest.mark.slow
def test_from_a_binlog_source_open_keys_are_looked_at_by_grain(
    old_binlog: Database,
    new_pg: Database,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing moves, but the judge is not told: so it has to see everything three times."""
    rows = 60  # a city with all its payments
    old_binlog.execute(*BINLOG_OLD.split(";"))
    project = BinlogProject(old_binlog, new_pg, spark, tmp_path)
    assert project.verify(rows, ["person", "account", "city_sales"]).verdict is Verdict.EQUAL
    planted = {key: how for key, how in PLANTED.items() if key[0] != "letter"}
    project.new.execute(*planted.values())
    looked: list[str] = []
    look = GrainSweep.look

    def noted(self: GrainSweep, pieces: Any) -> Any:
        looked.append(self._mapping.name)
        return look(self, pieces)

    monkeypatch.setattr(GrainSweep, "look", noted)
    monkeypatch.setattr(table_reads, "_still", lambda *_: False)
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)
    result = project.verify(rows, ["person", "account", "city_sales"])
    assert (project.found(), len(result.rounds)) == (set(planted), 3)
    assert sorted(looked) == ["account", "account", "city_sales", "city_sales", "person", "person"]
