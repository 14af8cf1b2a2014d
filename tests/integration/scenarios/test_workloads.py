"""Every workload on real servers: what its clients noted is what its tables hold, and its project can be run."""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from scenarios.row_writes import operations
from scenarios.scenario import WorkloadSpec
from scenarios.workload import Provenance, WriterReport
from scenarios.workload import Workload as Writers
from scenarios.workloads.base import Columns, Tracked, Workload
from scenarios.workloads.registry import WORKLOADS, workload
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from verify.history.history import DELETE, FAILED, OK, PUT

pytestmark = pytest.mark.integration

SPEC = WorkloadSpec(
    "any", keys=60, sessions=4, changes=500, hot_percent=10, options={"rows": 3000, "transactions": 3}
)
EVERY = ("postgresql", "mariadb", "mysql")
FIXTURES = {"postgresql": "old_pg", "mariadb": "old_maria", "mysql": "old_mysql"}
FOREIGN = {"pgbench": ("postgresql",), "sysbench": EVERY if shutil.which("sysbench") else ()}
"""Clients of others: sysbench where somebody installed it; that it says so where not is a unit test."""
CASES = [(name, engine) for name in WORKLOADS for engine in FOREIGN.get(name, EVERY)]
MIGRATED_EACH_TIME = {
    ("registers", "mariadb"),
    ("swaps", "mysql"),
    ("order_entry", "postgresql"),
    ("pgbench", "postgresql"),
}
MIGRATED = [
    pytest.param(name, engine, marks=[] if (name, engine) in MIGRATED_EACH_TIME else [pytest.mark.slow])
    for name, engine in CASES
    if name != "hot" and (engine == "postgresql" or name in ("registers", "order_entry", "sysbench", "swaps"))
]
"""Each project once, those with types or keys that the engines treat differently on all."""

Row = tuple[int, int, int | None]
Rows = dict[tuple[str, str], Row]
"""Session, number and value by table and key."""


@pytest.fixture
def old(request: pytest.FixtureRequest, engine: str) -> Database:
    """An empty source database of the engine that the test is about."""
    found: Database = request.getfixturevalue(FIXTURES[engine])
    return found


def rows_of(database: Database, columns: Columns, table: str) -> Rows:
    """What a side holds now, by SQL of the test's own."""
    names = [columns.session, columns.number, columns.value or columns.number, *columns.keys]
    found = database.query(f"SELECT {', '.join(names)} FROM {quoted(columns.table, database.kind)}")
    return {
        (table, "-".join(map(str, row[3:]))): (row[0], row[1], row[2] if columns.value else None)
        for row in found
    }


def quoted(name: str, kind: str) -> str:
    return f'"{name}"' if kind == "postgresql" else f"`{name}`"


def present(database: Database, tracked: Sequence[Tracked]) -> Rows:
    found: Rows = {}
    for each in tracked:
        found |= rows_of(database, each.old, each.table.name)
    return found


def write(
    database: Database, kind: Workload, sessions: int = 4, seed: int = 7, first_client: int = 1
) -> WriterReport:
    """Several clients until they have made the wanted changes."""
    writers = Writers(
        scenario_database(database),
        kind.actions(SPEC),
        seed=seed,
        rate_per_s=None,
        threads=sessions,
        limit_row_changes=SPEC.changes,
        provenance=Provenance(first_client=first_client),
    )
    writers.start()
    assert writers.wait(60)
    return writers.stop()


def acknowledged(report: WriterReport) -> list[dict[str, Any]]:
    return [row for row in operations(report.writes).to_pylist() if row["outcome"] == OK]


def transactions(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["transaction"]].append(row)
    return list(grouped.values())


def replay(first: Rows, rows: Sequence[dict[str, Any]]) -> Rows:
    """The state that these writes make of the first one, in the order given."""
    found = dict(first)
    for row in rows:
        key, version = (row["table"], row["key"]), (row["session"], row["number"], row["value"])
        if row["kind"] == PUT:
            found[key] = version
        else:
            assert found.pop(key) == version, "a DELETE names the row that it removes"
    return found


@pytest.mark.each_value
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_the_notes_of_one_client_make_the_tables_exactly(name: str, engine: str, old: Database) -> None:
    kind = workload(name)
    kind.create(scenario_database(old), SPEC)
    first = present(old, kind.tracked)
    assert {row[0] for row in first.values()} == {0}
    assert len({row[1] for row in first.values()}) == len(first) >= SPEC.keys - SPEC.keys % 2
    report = write(old, kind, sessions=1)
    written = acknowledged(report)
    assert len(written) > SPEC.changes / 2
    assert replay(first, written) == present(old, kind.tracked)
    assert {row["outcome"] for row in operations(report.writes).to_pylist()} <= {OK, FAILED}


@pytest.mark.each_value
@pytest.mark.parametrize(("name", "engine"), CASES)
def test_the_notes_of_many_clients_make_the_tables(name: str, engine: str, old: Database) -> None:
    """Clients do not know each other's order; whatever a table holds must be a last write of its key."""
    kind = workload(name)
    kind.create(scenario_database(old), SPEC)
    first = present(old, kind.tracked)
    report = write(old, kind)
    written = acknowledged(report)
    found = present(old, kind.tracked)
    # The changes are shared: on a busy machine one that begins late may find none left.
    assert len({row["session"] for row in written if row["kind"] == PUT}) >= 2, "it takes several clients"
    puts = [(row["session"], row["number"]) for row in written if row["kind"] == PUT]
    assert len(set(puts)) == len(puts), "a write number was used twice"
    known = {key: {version} for key, version in first.items()}
    for row in written:
        if row["kind"] == PUT:
            known.setdefault((row["table"], row["key"]), set()).add(
                (row["session"], row["number"], row["value"])
            )
    removed = {
        (row["table"], row["key"], row["session"], row["number"]) for row in written if row["kind"] == DELETE
    }
    for row in written:
        if row["kind"] == DELETE:
            assert (row["session"], row["number"], row["value"]) in known[row["table"], row["key"]]
    by_key: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for transaction in transactions(written):
        last = {(row["table"], row["key"]): row for row in transaction}
        for key, row in last.items():
            by_key[key].append(row)
    for key in first.keys() | known.keys():
        last_ones = [
            row
            for row in by_key[key]
            if not any(row["ended_us"] < other["invoked_us"] for other in by_key[key])
        ]
        if key in found:
            assert (*key, *found[key][:2]) not in removed
            versions = {(r["session"], r["number"], r["value"]) for r in last_ones if r["kind"] == PUT}
            assert found[key] in (versions if last_ones else {first[key]}), key
        else:
            assert any(row["kind"] == DELETE for row in last_ones), key
    assert found.keys() <= known.keys()


@pytest.mark.parametrize("engine", EVERY)
def test_the_bank_keeps_its_total(engine: str, old: Database) -> None:
    bank = workload("bank")
    bank.create(scenario_database(old), SPEC)
    total = "SELECT (SELECT sum(balance) FROM checking) + (SELECT sum(balance) FROM savings)"
    before = old.query(total)
    report = write(old, bank)
    assert old.query(total) == before
    assert {"open", "close", "transfer"} <= report.by_action().keys()
    assert old.query("SELECT count(*) FROM journal") == [(report.commits,)]


@pytest.mark.parametrize("engine", EVERY)
def test_counters_are_the_sum_of_all_acknowledged_increments(engine: str, old: Database) -> None:
    counters = workload("counters")
    counters.create(scenario_database(old), SPEC)
    report = write(old, counters)
    increments = sum(row["value"] for row in acknowledged(report) if row["table"] == "click")
    assert old.query("SELECT sum(hits), (SELECT sum(amount) FROM click) FROM tally") == [
        (increments, increments)
    ]
    assert old.query(
        "SELECT count(*) FROM tally WHERE hits <> (SELECT coalesce(sum(amount), 0) FROM click WHERE tally = tally.id)"
    ) == [(0,)]
    undone = [write for write in report.writes if write.cause == "rolled back to a savepoint"]
    assert undone
    assert {write.outcome for write in undone} == {FAILED}


@pytest.mark.parametrize("engine", EVERY)
def test_swaps_leave_nothing_parked_and_lose_no_code(engine: str, old: Database) -> None:
    swaps = workload("swaps")
    swaps.create(scenario_database(old), SPEC)
    codes = old.query("SELECT code FROM locker ORDER BY code")
    keys = old.query("SELECT id, code FROM locker ORDER BY id")
    report = write(old, swaps)
    assert old.query("SELECT code FROM locker ORDER BY code") == codes
    assert old.query("SELECT id, code FROM locker ORDER BY id") != keys
    assert old.query("SELECT count(*) FROM locker WHERE id < 1 OR code LIKE '~%'") == [(0,)]
    assert {"swap keys", "swap codes", "move"} <= report.by_action().keys()


@pytest.mark.parametrize("engine", EVERY)
def test_order_entry_is_consistent_as_its_model_demands(engine: str, old: Database) -> None:
    """TPC-C's consistency conditions 1 to 4 (clause 3.3.2), as far as the tables have them."""
    entry = workload("order_entry")
    entry.create(scenario_database(old), SPEC)
    report = write(old, entry)
    assert report.by_action().keys() == {"new order", "payment", "delivery"}
    assert old.query(
        "SELECT count(*) FROM warehouse w"
        " WHERE w_ytd <> (SELECT sum(d_ytd) FROM district d WHERE d.w_id = w.w_id)"
    ) == [(0,)]
    assert old.query(
        "SELECT count(*) FROM district d WHERE d_next_o_id - 1 <>"
        " (SELECT coalesce(max(o_id), 0) FROM orders o WHERE o.w_id = d.w_id AND o.d_id = d.d_id)"
    ) == [(0,)]
    assert old.query("SELECT sum(o_ol_cnt), (SELECT count(*) FROM order_line) FROM orders")[0] == tuple(
        old.query("SELECT count(*), count(*) FROM order_line")[0]
    )
    assert old.query(
        "SELECT count(*), (SELECT count(*) FROM new_order) FROM orders WHERE o_carrier_id IS NULL"
    )[0] == tuple(old.query("SELECT count(*), count(*) FROM new_order")[0])


@pytest.mark.parametrize("engine", EVERY)
def test_a_bulk_transaction_is_one_note_and_all_its_rows(engine: str, old: Database) -> None:
    bulk = workload("bulk")
    bulk.create(scenario_database(old), SPEC)
    report = write(old, bulk, sessions=1)  # others might make all changes before the last of three
    runs = [write for write in report.writes if write.rows > 1]
    assert [run.rows for run in runs] == [3000, 3000, 3000]
    assert {run.outcome for run in runs} == {OK}
    assert old.query("SELECT count(*) FROM parcel WHERE label = 'bulk'") == [(6000,)]
    singles = sum(write.rows for write in report.writes) - 9000
    assert singles >= SPEC.changes, "bulk rows do not use up the writers' changes"


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(("name", "engine"), MIGRATED)
def test_the_project_migrates_its_workload(
    name: str, engine: str, old: Database, new_pg: Database, tmp_path: Path, spark: SparkSession
) -> None:
    """Row-wise mapping, revisions, dump and changes: both sides hold the same tracked rows in the end."""
    kind = workload(name)
    kind.create(scenario_database(old), SPEC)
    config = make_project(
        tmp_path / "project", scenario_database(old), scenario_database(new_pg), kind.project, name
    )
    config.write_text(config.read_text() + '\n[spark]\nmaster = "local[2]"\n')
    wiring.upgrade_user_target(configuration.load(config))
    project = Project(old, new_pg, config)
    project.run_here()
    write(old, kind)
    project.run_here()
    found: Rows = {}
    for each in kind.tracked:
        found |= rows_of(new_pg, each.new, each.table.name)
    assert found == present(old, kind.tracked)
    assert any(row[0] for row in found.values())
    if name in FOREIGN:  # their own tables are not tracked
        assert project.command("verify") == 0


@pytest.mark.parametrize("engine", ["postgresql"])
def test_pgbench_writes_its_own_tables_beside_ours(engine: str, old: Database) -> None:
    pgbench = workload("pgbench")
    pgbench.create(scenario_database(old), SPEC)
    report = write(old, pgbench)
    runs = report.by_action()["pgbench"]
    assert old.query(
        "SELECT count(*), sum(delta) = (SELECT sum(abalance) FROM pgbench_accounts) FROM pgbench_history"
    ) == [(runs * 2 * SPEC.options["transactions"], True)]
    assert {write.table for write in report.writes} == {"probe"}
