"""A failed run becomes an incident, is made smaller, and is told with the lines that play it again."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from migrator.errors import MigratorError
from scenarios.chaos.incident.history import Change, Transaction
from scenarios.chaos.incident.incident_file import Incident, unpacked
from scenarios.chaos.incident.of_run import NAME, history_of, kept, write
from scenarios.chaos.incident.shrink import shrunk
from scenarios.chaos.smallest import SMALL, in_words, smaller
from scenarios.chaos.writes.plain_rows import plain
from scenarios.play.run_result import RunResult
from scenarios.recording.whole_rows import Committed, RowChange
from scenarios.rehearsal.tables import Column, Table
from tests.unit.scenarios.chaos.test_plugin import result
from tests.unit.scenarios.incident.made_up import customer, order
from tests.unit.scenarios.incident.test_shrink import LARGE, guilty
from verify.history.result import Outcome


def failed(folder: Path, incident: Incident | None = LARGE) -> RunResult:
    if incident is not None:
        write(folder, incident)
    return replace(result(Outcome.VIOLATED), bundle=folder)


def test_the_smallest_run_is_told_with_the_lines_that_play_it_again(tmp_path: Path) -> None:
    def of(incident: Incident, seconds: float, _: object) -> Incident | None:
        assert seconds == 120
        return shrunk(incident, 3600, replayed=guilty)

    lines = smaller(failed(tmp_path), 2, print, of)
    assert "  start: customer id '7'" in lines
    assert "  transaction 1: insert orders code 'new-5', customer '5'" in lines
    assert sum(line.startswith(("  start", "  transaction")) for line in lines) == 2
    assert f"again: migrator incident replay {tmp_path / SMALL}" in lines
    assert guilty(unpacked(tmp_path / SMALL))
    assert (tmp_path / SMALL).stat().st_mode & 0o077 == 0, "others can read the rows"


@pytest.mark.parametrize(
    ("incident", "minutes", "said"),
    [
        (LARGE, 0, "make it smaller: migrator incident shrink"),
        (LARGE, 1, "the failure doesn't come back"),
        (None, 1, "it isn't the end of the run that is wrong"),
    ],
)
def test_what_cannot_be_made_smaller_says_why(
    tmp_path: Path, incident: Incident | None, minutes: float, said: str
) -> None:
    [line] = smaller(failed(tmp_path, incident), minutes, print, lambda *_: None)
    assert said in line
    assert not (tmp_path / SMALL).exists()


@pytest.mark.parametrize("outcome", [Outcome.HOLDS, Outcome.UNKNOWN])
def test_only_what_failed_is_made_smaller(tmp_path: Path, outcome: Outcome) -> None:
    write(tmp_path, LARGE)
    assert smaller(replace(failed(tmp_path), outcome=outcome), 1, print, lambda *_: LARGE) == []


def test_each_kind_of_change_is_told() -> None:
    changes = (
        Change("orders", order("a", 1), order("a", 2)),
        Change("orders", order("a", 2), None),
        Change("customer", None, None),
        Change("customer", None, customer(1, "x" * 99)),
    )
    history = replace(LARGE.history, start={}, transactions=(Transaction(9, changes),))
    lines = [*in_words(replace(LARGE, history=history))]
    assert lines[0] == "transaction 1: update orders code 'a' to customer '2'"
    assert lines[1] == "transaction 1: delete orders code 'a'"
    assert lines[2] == "transaction 1: truncate customer"
    assert "x" * 99 not in lines[3]
    assert "seal 0xdeadbeef0102" in lines[3]


@pytest.mark.parametrize("error", [MigratorError("no such table"), psycopg.OperationalError("gone")])
def test_a_run_without_an_incident_keeps_its_verdict(tmp_path: Path, error: Exception) -> None:
    """A server that is gone by then would make a violated run unknown."""

    def broken() -> Incident:
        raise error

    assert kept(tmp_path, broken) == str(error)
    assert [*tmp_path.iterdir()] == []
    assert kept(tmp_path, lambda: LARGE) == ""
    assert unpacked(tmp_path / NAME).history == LARGE.history


def test_the_history_of_a_run_has_what_the_mapping_reads() -> None:
    columns = (Column("id", "int", nullable=False), Column("twice", "int", nullable=True, written=False))
    tables = {name: Table(name, columns, ("id",)) for name in ("t", "other")}
    log = [
        Committed(1, (RowChange("other", None, {"id": 1, "twice": 2}),)),
        Committed(
            2, (RowChange("t", {"id": 1, "twice": 2}, {"id": 3, "twice": 6}), RowChange("other", None, {}))
        ),
    ]
    found = history_of({"t": [{"id": "1"}]}, tables, log)
    assert found.transactions == (Transaction(2, (Change("t", {"id": "1"}, {"id": "3"}),)),)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (timedelta(hours=30, minutes=2, seconds=3, microseconds=4), "30:02:03.000004"),
        (-timedelta(hours=1, minutes=1), "-01:01:00.000000"),
        (timedelta(), "00:00:00.000000"),
        (b"\x00", b"\x00"),
        (None, None),
        (7, "7"),
    ],
)
def test_a_driver_s_value_is_what_its_server_takes(value: object, text: object) -> None:
    """Python's own text of a time below zero is ``-1 day, 22:59:00``, which no server takes."""
    assert plain(value) == text
