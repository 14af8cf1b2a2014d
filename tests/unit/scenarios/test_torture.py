"""The torture suite without servers: Debezium's records as deliveries, what counts as stale, repeated dumps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from migrator.errors import MigratorError
from migrator.model.chunk import Chunk
from migrator.model.position import Position
from migrator.model.table import TableId
from scenarios.recording.row_version import RowVersion
from scenarios.torture.course import recorded
from scenarios.torture.debezium import EventsFile
from scenarios.torture.deliveries import Deliveries
from scenarios.torture.envelopes import deliveries_of, windows
from scenarios.torture.old_table import COLUMNS, TABLE, TRACKED
from scenarios.torture.ours import CHUNK_ROWS, RepeatedDump
from scenarios.torture.report import CODES, stale
from verify.history.history import DELETE, PUT, Description, History, table_of
from verify.history.judge import judge
from verify.history.result import Outcome

TOPIC = "torture.public.register"


def row(key: int, session: Any, number: Any, value: Any = 0) -> dict[str, Any]:
    return {"id": key, "session": session, "number": number, "value": value}


def record(
    op: str, *, before: Any = None, after: Any = None, lsn: int | None = 500, transaction: Any = None
) -> str:
    value = {"op": op, "before": before, "after": after, "source": {"lsn": lsn}, "transaction": transaction}
    return json.dumps({"topic": TOPIC, "key": {"id": 1}, "value": value})


TOMBSTONE = json.dumps({"topic": TOPIC, "key": {"id": 1}, "value": None})


def adapted(*lines: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = deliveries_of(lines, {TOPIC: COLUMNS}).table().to_pylist()
    return found


def test_a_read_is_a_chunk_row_and_has_no_place_in_the_log() -> None:
    (found,) = adapted(record("r", after=row(7, 3, 12, 90), lsn=None))
    assert found == {
        "segment": 1,
        "origin": "chunk",
        "order": None,
        "index": None,
        "table": TABLE,
        "key": "7",
        "session": 3,
        "number": 12,
        "kind": PUT,
        "value": 90,
    }


@pytest.mark.parametrize("op", ["c", "u"])
def test_an_insert_and_an_update_put_their_after_image(op: str) -> None:
    (found,) = adapted(record(op, before=row(7, 1, 1), after=row(7, 3, 12)))
    assert (found["origin"], found["order"], found["key"]) == ("log", 500, "7")
    assert (found["session"], found["number"], found["kind"]) == (3, 12, PUT)


def test_a_delete_removes_the_row_of_its_before_image_and_its_tombstone_is_no_delivery() -> None:
    (found,) = adapted(record("d", before=row(7, 3, 12)), TOMBSTONE)
    assert (found["key"], found["session"], found["number"], found["kind"]) == ("7", 3, 12, DELETE)


def test_a_moved_key_is_a_delete_and_a_put_in_order() -> None:
    lines = [record("d", before=row(7, 1, 1)), TOMBSTONE, record("c", after=row(8, 3, 12))]
    assert [(each["key"], each["kind"]) for each in adapted(*lines)] == [("7", DELETE), ("8", PUT)]


def test_the_index_comes_from_transaction_metadata_where_there_is_any() -> None:
    marked = record("u", after=row(7, 3, 12), transaction={"id": "758:24318536", "total_order": 3})
    assert [each["index"] for each in adapted(marked, record("u", after=row(7, 3, 13)))] == [2, None]


@pytest.mark.parametrize("written", [9007199254740993, "9007199254740993", "9007199254740993.00"])
def test_whole_numbers_are_exact_also_as_decimal_text(written: Any) -> None:
    (found,) = adapted(record("r", after=row(7, "3", "12", written)))
    assert (found["session"], found["number"], found["value"]) == (3, 12, 9007199254740993)


def test_an_absent_value_stays_absent() -> None:
    (found,) = adapted(record("r", after=row(7, 3, 12, None)))
    assert found["value"] is None


def test_records_of_other_topics_are_left_out() -> None:
    lines = [
        json.dumps({"topic": topic, "key": None, "value": {"id": "x"}}) for topic in ("notifications", "x")
    ]
    assert adapted(*lines) == []


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (record("t"), "'t' is none of"),
        (record("m"), "'m' is none of"),
        (record("d"), "REPLICA IDENTITY FULL"),
        (record("r", after={"id": 7, "session": 1, "number": 1}), "value"),
        (record("r", after=row(7, 3, "AfE=")), "decimal.handling.mode"),
        (record("r", after=row(7, 3, "1.5")), "no whole number"),
        (record("r", after=row(7, 3, True)), "no whole number"),
        ("{", "no JSON"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(line: str, cause: str) -> None:
    with pytest.raises(MigratorError) as raised:
        adapted(record("r", after=row(1, 0, 1)), line)
    assert raised.value.where.startswith("record 2")
    assert cause in raised.value.cause


def test_chunk_reads_are_counted_by_notifications() -> None:
    def note(kind: str, **more: str) -> str:
        value = {"aggregate_type": "Incremental Snapshot", "type": kind, "additional_data": more}
        return json.dumps({"topic": "notes", "key": None, "value": value})

    lines = [
        note("STARTED"),
        note("IN_PROGRESS"),
        note("IN_PROGRESS"),
        note("TABLE_SCAN_COMPLETED", total_rows_scanned="300"),
        note("COMPLETED"),
        record("r", after=row(1, 0, 1)),
    ]
    assert windows(lines, "notes") == (2, 300)


# -- judging ----------------------------------------------------------------------------------------------------


def history(delivered: Deliveries) -> History:
    """Key 1 was written by session 0, then twice by session 1; key 2 was deleted."""
    versions = [("1", 0, 1, PUT), ("2", 0, 2, PUT), ("1", 1, 1, PUT), ("2", 0, 2, DELETE), ("1", 1, 2, PUT)]
    columns = {
        "position": [0, 0, 1, 2, 3],
        "order": [0, 0, 100, 200, 300],
        "index": [0, 1, 0, 0, 0],
        "table": [TABLE] * 5,
        **{
            name: [each[place] for each in versions]
            for place, name in enumerate(("key", "session", "number", "kind"))
        },
        "value": [0] * 5,
        "committed_at_us": [0] * 5,
    }
    final = {"table": [TABLE], "key": ["1"], "session": [1], "number": [2], "kind": [PUT], "value": [0]}
    description = Description("torture", "postgresql", 1, (TRACKED.table,), drained=True)
    return recorded(description, table_of("log", columns), delivered, table_of("final_source", final))


def version(key: int, session: int, number: int) -> RowVersion:
    return RowVersion(str(key), session, number, 0)


def log_delivered() -> Deliveries:
    found = Deliveries()
    found.put(1, 100, 0, TABLE, version(1, 1, 1))
    found.delete(2, 200, 0, TABLE, version(2, 0, 2))
    found.put(3, 300, 0, TABLE, version(1, 1, 2))
    return found


def outcomes(judged: History) -> dict[str, Outcome]:
    return {each.code: each.outcome for each in judge(judged, CODES)}


def test_a_chunk_row_as_new_as_the_log_is_not_stale(tmp_path: Path) -> None:
    delivered = log_delivered()
    delivered.read(4, TABLE, version(1, 1, 2))
    recorded_run = history(delivered)
    assert stale(recorded_run) == (0, 0)
    assert outcomes(recorded_run) == dict.fromkeys(CODES, Outcome.HOLDS)
    recorded_run.save(tmp_path)


def test_a_chunk_row_older_than_the_log_is_stale_and_stays_wrong() -> None:
    delivered = log_delivered()
    delivered.read(4, TABLE, version(1, 1, 1))
    recorded_run = history(delivered)
    assert stale(recorded_run) == (1, 0)
    found = outcomes(recorded_run)
    assert found["D1"] is found["D3"] is found["D7"] is Outcome.VIOLATED


def test_a_deleted_row_that_a_chunk_brings_back_is_stale_and_a_resurrection() -> None:
    delivered = log_delivered()
    delivered.read(4, TABLE, version(2, 0, 2))
    recorded_run = history(delivered)
    assert stale(recorded_run) == (1, 0)
    found = outcomes(recorded_run)
    assert found["D1"] is found["D4"] is found["D7"] is Outcome.VIOLATED


def test_an_event_behind_a_newer_chunk_row_is_told_apart() -> None:
    delivered = Deliveries()
    delivered.read(0, TABLE, version(1, 1, 2))
    delivered.rows += log_delivered().rows
    recorded_run = history(delivered)
    assert stale(recorded_run) == (0, 1)
    (time_travel,) = judge(recorded_run, ["D1"])
    assert time_travel.outcome is Outcome.VIOLATED


# -- the tools' own parts ---------------------------------------------------------------------------------------


def test_records_are_read_while_they_are_written(tmp_path: Path) -> None:
    events = EventsFile(tmp_path / "events.jsonl")
    assert events.lines() == []
    with events.path.open("w") as file:
        file.write('{"a":1}\n{"b"')
        file.flush()
        assert events.lines() == ['{"a":1}']
        assert not events.came('"b":2')
        file.write(":2}\n")
        file.flush()
        assert events.came('"b":2')
        assert not events.came('"b":2'), "a line is found once"


def test_a_dump_is_repeated_as_often_as_asked_and_never_by_itself() -> None:
    table = TableId("public", TABLE)
    plan = RepeatedDump([table])
    assert plan.next_request() is None
    plan.begin()
    plan.begin()
    for turn in (1, 2):
        request = plan.next_request()
        assert request is not None
        assert request.after is None, "from the first key on"
        assert plan.next_request() is None
        chunk = Chunk(request, None, 5, ("5",), True, None, Position(0, ""), "")
        assert plan.arrived(chunk)
        assert plan.is_head(chunk)
        plan.emitted(chunk, dropped_rows=2)
        assert (plan.done, plan.dropped_rows) == (turn, 2 * turn)
    assert plan.next_request() is None


def test_a_dump_asked_for_during_another_begins_after_it() -> None:
    plan = RepeatedDump([TableId("public", TABLE)])
    plan.begin()
    request = plan.next_request()
    assert request is not None
    plan.begin()
    plan.arrived(Chunk(request, None, CHUNK_ROWS, ("1024",), False, None, Position(0, ""), ""))
    going_on = plan.next_request()
    assert going_on is not None
    assert going_on.after == ("1024",), "asking again doesn't give up what was read"
