"""The metrics: well-formed names, one value in each from a full observation, hostile names as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families

from migrator.adapters.observers.declared import COUNTER, METRICS
from migrator.adapters.observers.metrics import exposition
from migrator.model.observed.observation import (
    LEADER,
    STREAMING,
    Ended,
    Fallen,
    Judged,
    Lag,
    Observation,
    Room,
    Server,
    VerifiedTable,
    Work,
    counted_aside,
)
from migrator.model.position import Position
from migrator.model.progress import BadRow, Filling, TableDump
from migrator.model.retention import Retention
from migrator.model.table import TableId

HOSTILE = 'a"b\\c\nmigrator_lag_seconds{migration="shop"} 0 </script>\U0001f600'
FULL = Observation(
    migration="shop",
    at_us=3_000_000,
    started_us=1_000_000,
    role=LEADER,
    phase=STREAMING,
    note="waits",
    warnings=(("event log", "full"), ("event log", "fuller")),
    epoch=7,
    leader="process 1",
    standbys=1,
    captured=Position(9, "9"),
    applied=Position(7, "7"),
    end=Position(9, "9"),
    lag=Lag(2, 1.5, 1.5, ""),
    capture_lag=Lag(0, 0.0, 0.0, ""),
    source=Server(0.01, "", 5),
    target=Server(0.01, "", 5),
    retention=Retention(Position(9, "9"), 1, 2, 3, 4.0),
    room=Room(1, 2, 3),
    dumps=(TableDump(TableId("public", HOSTILE), done=True, rows=7, estimated_rows=9),),
    filling=(Filling("t", 1, 2, 3),),
    requests_left=0,
    work=Work(
        batches=((("stream",), 3),),
        batch_seconds=((("map",), 0.5),),
        changes=(((HOSTILE, "insert"), 3),),
        errors=((("ConnectionFailed",), 1),),
    ),
    judged=Judged((VerifiedTable(HOSTILE, "equal", 1, 1.0, 1.0),), (("wrong", 0),)),
    memory=(("python", 5),),
    heap=(("used", 3),),
    ended=Ended(1, "MappingError", "a column is gone"),
    fallen=(Fallen(HOSTILE, 1, 60.0, 0.0),),
    aside=counted_aside(
        BadRow(HOSTILE, ("id",), (key,), "p", 1, "no", "x", dropped=dropped, grain=grain)
        for key, dropped, grain in (
            ("1", "", False),
            ("2", "", False),
            ("3", "a test", False),
            ("4", "", True),
        )
    ),
)


def samples(seen: Observation) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in text_string_to_metric_families(exposition(seen).decode()):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def test_each_metric_is_told_once_with_its_labels_and_by_what_it_means() -> None:
    names = [metric.full_name for metric in METRICS]
    assert len(names) == len(set(names))
    found = list(samples(FULL))
    assert {name for name, _, _ in found} == set(names), "an observation that knows all tells all"
    for metric in METRICS:
        assert re.fullmatch(r"migrator_[a-z][a-z0-9_]*", metric.full_name)
        assert metric.full_name.endswith("_total") == (metric.kind == COUNTER)
        assert len(metric.meaning) > 5
        for _, labels, _ in (one for one in found if one[0] == metric.full_name):
            assert set(labels) == {"migration", *metric.labels}
            assert labels["migration"] == "shop"


def test_rows_and_grains_that_are_set_aside_are_counted_apart() -> None:
    found = {
        (labels["target"], labels["kind"], labels["dropped"]): value
        for name, labels, value in samples(FULL)
        if name == "migrator_set_aside"
    }
    assert found == {(HOSTILE, "row", "no"): 2, (HOSTILE, "row", "yes"): 1, (HOSTILE, "grain", "no"): 1}


def test_a_hostile_name_stays_a_label() -> None:
    found = list(samples(FULL))
    assert [value for name, _, value in found if name == "migrator_lag_seconds"] == [1.5]
    tables = {labels["table"] for name, labels, _ in found if name == "migrator_captured_changes_total"}
    assert tables == {HOSTILE}


def test_an_observation_that_knows_nothing_tells_that_alone() -> None:
    found = {name for name, _, _ in samples(Observation("shop", 1, 1, "standby", "starting"))}
    assert "migrator_lag_seconds" not in found
    assert "migrator_source_log_kept_bytes" not in found
    assert {"migrator_lag_known", "migrator_leading", "migrator_source_up"} <= found
