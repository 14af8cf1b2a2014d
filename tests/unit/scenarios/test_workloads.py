"""What workloads decide, note and describe, without servers (those: tests/integration)."""

from __future__ import annotations

import random
import re
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.row_writes import Notes, RowWrite, operations
from scenarios.scenario import WorkloadSpec
from scenarios.session import RollBack, Session
from scenarios.workload import Action, ClientFailed, Provenance, Workload, WriterReport
from scenarios.workloads.base import Workload as Kind
from scenarios.workloads.base import key_text
from scenarios.workloads.choice import some_key, some_keys
from scenarios.workloads.program import run_as_client, run_to_set_up
from scenarios.workloads.registry import WORKLOADS, workload
from transforms import load_mapping
from verify.history.history import DELETE, FAILED, OK, OPERATIONS, PUT, UNKNOWN

NOWHERE = Database("postgresql", "127.0.0.1", 1, "old", "nobody")
WITHOUT_PROGRAM = [name for name in WORKLOADS if name not in ("pgbench", "sysbench")]


class Cursor:
    """Answers SELECTs with a row that has whatever number of columns was asked for, all of them 5."""

    def __init__(self, log: list[tuple[Any, ...]]):
        self.log = log
        self.rowcount = 1
        self.columns = 1

    def execute(self, statement: Any, parameters: Any = (), /) -> None:
        self.log.append((statement, parameters))
        if statement == "refused":
            raise psycopg.errors.UniqueViolation("key taken")
        selected = re.match(r"SELECT (.*?) FROM", statement)
        self.columns = len(selected[1].split(", ")) if selected else 0

    def fetchall(self) -> list[tuple[Any, ...]]:
        return [(5,) * self.columns]

    def close(self) -> None:
        pass


class Recording:
    """A connection that keeps its statements; its COMMIT can break."""

    def __init__(self, log: list[tuple[Any, ...]], breaks: bool = False):
        self.log = log
        self.breaks = breaks

    def cursor(self) -> Cursor:
        return Cursor(self.log)

    def commit(self) -> None:
        if self.breaks:
            raise psycopg.OperationalError("the connection is lost")

    rollback = commit

    def close(self) -> None:
        pass


def statements(name: str, seed: int) -> list[tuple[Any, ...]]:
    """What one client sends in forty transactions."""
    rng = random.Random(seed)
    actions = workload(name).actions(WorkloadSpec(name, keys=50, hot_percent=10))
    sent: list[tuple[Any, ...]] = []
    numbers = count(1)
    for _ in range(40):
        action = rng.choices(actions, [each.weight for each in actions])[0]
        session = Session(Recording(sent), rng, client=1, numbers=numbers, database=NOWHERE)
        try:
            action.run(session)
        except RollBack:
            sent.append(("rolled back",))
    return sent


@pytest.mark.parametrize("name", WITHOUT_PROGRAM)
def test_the_same_seed_sends_the_same_statements(name: str) -> None:
    assert len(statements(name, 3)) > 40
    assert statements(name, 3) == statements(name, 3)
    assert statements(name, 3) != statements(name, 4)


def test_an_unknown_workload_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(MigratorError, match="no workload 'register'") as refusal:
        workload("register")
    assert all(name in refusal.value.remedy for name in WORKLOADS)


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_describes_itself_without_contradiction(name: str) -> None:
    kind: Kind = workload(name)
    assert kind.name == name
    assert kind.tracked
    targets = {target.name: target for target in load_mapping(kind.project / "mapping.py").targets}
    for tracked in kind.tracked:
        assert tracked.old.table == tracked.table.name
        assert len(tracked.old.keys) == len(tracked.new.keys)
        assert bool(tracked.old.value) == bool(tracked.new.value)
        assert tracked.old.value or not (tracked.table.fold or tracked.table.total)
        assert set(tracked.new.keys) == set(targets[tracked.new.table].key)
        assert targets[tracked.new.table].sources == (tracked.old.table,)
        assert len(tracked.old.keys) == 1 or not tracked.table.numeric_key
    assert list((kind.project / "alembic" / "versions").glob("*.py"))


def test_every_workload_has_a_fold_for_the_exactly_once_check() -> None:
    assert all(any(each.table.fold for each in workload(name).tracked) for name in WORKLOADS)


def test_pgbench_is_refused_on_mariadb() -> None:
    with pytest.raises(MigratorError, match="PostgreSQL only") as refusal:
        workload("pgbench").create(Database("mariadb", "127.0.0.1", 1, "old", "x"), WorkloadSpec("pgbench"))
    assert "sysbench" in refusal.value.remedy


def test_a_machine_without_sysbench_is_told_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    sysbench = workload("sysbench")
    for call in (
        lambda: sysbench.create(NOWHERE, WorkloadSpec("x")),
        lambda: sysbench.actions(WorkloadSpec("x")),
    ):
        with pytest.raises(MigratorError, match="needs the program sysbench") as refusal:
            call()
        assert "apt-get install sysbench" in refusal.value.remedy


def test_a_program_that_fails_leaves_its_last_words() -> None:
    script = ["/bin/sh", "-c", "echo one >&2; echo two >&2; exit 3"]
    with pytest.raises(ClientFailed, match="one; two"):
        run_as_client(script, {})
    with pytest.raises(MigratorError, match="can't be made") as failure:
        run_to_set_up(script, {})
    assert failure.value.cause == "one; two"
    with pytest.raises(ClientFailed, match="code 4"):
        run_as_client(["/bin/sh", "-c", "exit 4"], {})


def test_keys_are_joined_as_text() -> None:
    assert key_text((1, 20, "x")) == "1-20-x"
    assert key_text((-7,)) == "-7"


@pytest.mark.parametrize(("hot_percent", "least", "most"), [(0, 0, 60), (50, 900, 1150), (100, 2000, 2000)])
def test_the_hot_key_has_its_share(hot_percent: int, least: int, most: int) -> None:
    rng = random.Random(1)
    drawn = [some_key(rng, 100, hot_percent) for _ in range(2000)]
    assert least <= drawn.count(1) <= most
    assert set(drawn) <= set(range(1, 101))


def test_several_keys_differ_and_ascend() -> None:
    rng = random.Random(1)
    for _ in range(100):
        keys = some_keys(rng, 10, 6)
        assert keys == sorted(set(keys))
        assert 1 <= len(keys) <= 6


def note(session: Session) -> None:
    session.change("INSERT")
    session.note_put("t", "1", session.number(), 5)
    session.note_delete("t", "2", 0, 2, 7)


def undo(session: Session) -> None:
    note(session)
    raise RollBack


def refused(session: Session) -> None:
    note(session)
    session.change("refused")


def lose_program(session: Session) -> None:
    note(session)
    raise ClientFailed("killed")


def undo_part(session: Session) -> None:
    note(session)
    with session.savepoint():
        session.change("INSERT")
        session.note_put("t", "3", session.number(), 9)
        raise RollBack


@pytest.fixture
def clock() -> count[int]:
    return count(100)


def run(
    monkeypatch: pytest.MonkeyPatch, action: Any, clock: count[int], breaks: bool = False
) -> WriterReport:
    """One client that makes at least three row changes (more if its connection breaks)."""
    monkeypatch.setattr(Database, "connect", lambda *_, **__: Recording([], breaks))
    writers = Workload(
        NOWHERE,
        [Action("act", 1, action)],
        seed=1,
        threads=1,
        rate_per_s=None,
        limit_row_changes=3,
        provenance=Provenance(lambda: next(clock), first_client=4),
    )
    writers.start()
    assert writers.wait(10)
    return writers.stop()


@pytest.mark.parametrize(
    ("action", "breaks", "outcome", "cause"),
    [
        (note, False, OK, ""),
        (note, True, UNKNOWN, "the connection is lost"),
        (undo, False, FAILED, "rolled back by the client"),
        (refused, False, FAILED, "key taken"),
        (lose_program, False, UNKNOWN, "killed"),
    ],
)
def test_row_writes_end_as_their_transaction(
    monkeypatch: pytest.MonkeyPatch, clock: count[int], action: Any, breaks: bool, outcome: str, cause: str
) -> None:
    report = run(monkeypatch, action, clock, breaks)
    puts = [write for write in report.writes if write.kind == PUT]
    assert {(write.outcome, write.cause) for write in report.writes} == {(outcome, cause)}
    assert [write.number for write in puts] == list(range(1, len(puts) + 1)), (
        "numbers rise, connections come and go"
    )
    assert {write.session for write in puts} == {4}
    deletes = [write for write in report.writes if write.kind == DELETE]
    assert {(write.session, write.number, write.client, write.value) for write in deletes} == {(0, 2, 4, 7)}
    assert [write.transaction for write in puts] == [write.transaction for write in deletes]
    assert all(100 <= write.invoked_us < write.ended_us for write in report.writes)


def test_what_a_savepoint_undid_has_failed(monkeypatch: pytest.MonkeyPatch, clock: count[int]) -> None:
    report = run(monkeypatch, undo_part, clock)
    ended = {(write.key, write.outcome) for write in report.writes}
    assert ended == {("1", OK), ("2", OK), ("3", FAILED)}
    assert report.row_changes == report.commits, "the undone row is not counted"


def test_notes_become_the_table_of_operations() -> None:
    notes = Notes(2, 9, 50)
    notes.add(2, 7, "t", "4", PUT, 1, 1)
    notes.add(2, 8, "t", "10", PUT, None, 3)
    table = operations(notes.end(60, OK, ""))
    assert table.schema.equals(OPERATIONS)
    rows = table.to_pylist()
    assert [(row["key"], row["number"], row["value"]) for row in rows] == [
        ("4", 7, 1), ("10", 8, None), ("11", 9, None), ("12", 10, None),
    ]  # fmt: skip
    assert {(row["session"], row["transaction"], row["invoked_us"], row["ended_us"]) for row in rows} == {
        (2, 9, 50, 60)
    }
    assert operations([]).num_rows == 0


def test_a_run_of_a_million_rows_is_one_note() -> None:
    run_of_rows = RowWrite(1, 1, 1, "t", "1", PUT, 0, 0, 1, OK, rows=1_000_000)
    table = operations([run_of_rows])
    assert table.num_rows == 1_000_000
    assert table.slice(999_999).to_pylist()[0]["key"] == "1000000"


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_register_becomes_a_gauge() -> None:
    from transforms.testing import run as run_mapping

    mapping = load_mapping(workload("registers").project / "mapping.py")
    row = {
        "id": 7,
        "reading": 9001,
        "state": "Checked",
        "fee": "12.50",
        "note": "  ",
        "writer": 3,
        "write_no": 4,
    }
    assert run_mapping(mapping, "gauge", register=[row]) == [
        {
            "gauge_id": 7,
            "level": 9001,
            "status": "checked",
            "fee_cents": 1250,
            "remark": None,
            "client": 3,
            "client_no": 4,
        }
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_ticket_becomes_a_pass() -> None:
    from transforms.testing import run as run_mapping

    mapping = load_mapping(workload("churn").project / "mapping.py")
    row = {"id": 2, "price": 1001, "seat": "ROW 17", "paid": 1, "writer": 0, "write_no": 1}
    [made] = run_mapping(mapping, "pass", ticket=[row])
    assert made == {
        "pass_id": 2, "price": 1001, "seat_row": 17, "is_paid": True, "client": 0, "client_no": 1,
    }  # fmt: skip


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_an_order_line_becomes_a_sale_line() -> None:
    from decimal import Decimal

    from transforms.testing import run as run_mapping

    mapping = load_mapping(workload("order_entry").project / "mapping.py")
    key = {"w_id": 1, "d_id": 2, "o_id": 3, "ol_number": 4, "ol_i_id": 5}
    rest = {"ol_quantity": 6, "ol_amount": Decimal("12.25"), "ol_delivered": 1, "writer": 2, "write_no": 9}
    [made] = run_mapping(mapping, "sale_line", order_line=[key | rest])
    assert (made["depot_id"], made["area_no"], made["sale_no"], made["line_no"]) == (1, 2, 3, 4)
    assert (made["cents"], made["is_delivered"], made["pieces"]) == (1225, True, 6)
