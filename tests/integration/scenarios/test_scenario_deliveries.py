"""What the recorder keeps of the event log: deliveries, segment by segment."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from scenarios.recording.deliveries import SegmentKeeper, deliveries
from tests.integration.scenarios.test_scenario_recording import ITEM, PAIR
from verify.history.history import DELETE, PUT

pytestmark = pytest.mark.integration


@pytest.fixture
def event_log(tmp_path: Path) -> Path:
    (tmp_path / "log" / "segments").mkdir(parents=True)
    (tmp_path / "log" / "data").mkdir()
    return tmp_path / "log"


def segment(event_log: Path, number: int, epoch: int, files: dict[str, pa.Table]) -> None:
    """A segment as the event log lays it out; ``files``: table and kind -> rows."""
    described = []
    for place, (name, rows) in enumerate(files.items()):
        table, kind = name.split()
        file = f"data/{number:010d}-{epoch}-{place}.parquet"
        pq.write_table(rows, event_log / file)
        described.append({"path": file, "kind": kind, "schema": {"table": ["public", table]}})
    dumps = [{"chunks": number, "dropped_rows": 2 * number}]
    manifest = {"number": number, "epoch": epoch, "files": described, "checkpoint": {"dumps": dumps}}
    path = event_log / "segments" / f"{number:010d}.json"
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(manifest) + '\n{"sha256":"..."}\n')
    temporary.rename(path)


def images(*rows: tuple[int, int, int, int, int, int]) -> pa.Table:
    """Position, index, sign, key, write number, amount."""
    names = ["__position", "__index", "__sign", "id", "write_no", "amount"]
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return pa.table({**columns, "writer": [1] * len(rows)})


def test_deliveries_survive_the_release_of_their_segments(event_log: Path, tmp_path: Path) -> None:
    keeper = SegmentKeeper(event_log, tmp_path / "kept")
    keeper.start()
    chunk = pa.table(
        {"id": [1, 2], "amount": [10, 20], "writer": [0, 0], "write_no": [1, 2], "note": ["", ""]}
    )
    segment(event_log, 1, 1, {"item chunk": chunk})
    keeper.keep()
    for file in [*event_log.glob("data/*"), *event_log.glob("segments/*")]:
        file.unlink()
    log = images((100, 0, -1, 1, 1, 10), (100, 0, 1, 1, 3, 11), (101, 0, -1, 1, 3, 11), (101, 0, 1, 4, 4, 11),
                 (103, 0, -1, 2, 2, 20))  # fmt: skip
    pair = pa.table(
        {
            "__position": [102],
            "__index": [0],
            "__sign": [1],
            "a": [7],
            "b": ["x"],
            "writer": [2],
            "write_no": [5],
        }
    )
    segment(event_log, 2, 1, {"item log": log, "pair log": pair, "foreign log": log})
    keeper.stop()
    found = deliveries(tmp_path / "kept", [ITEM, PAIR])
    assert (found.segments, found.missing, found.chunks, found.dropped_rows) == (2, (), 2, 4)
    assert [tuple(row.values()) for row in found.table.to_pylist()] == [
        (1, "chunk", None, None, "item", "1", 0, 1, PUT, 10),
        (1, "chunk", None, None, "item", "2", 0, 2, PUT, 20),
        (2, "log", 100, 0, "item", "1", 1, 3, PUT, 11),
        (2, "log", 101, 0, "item", "1", 1, 3, DELETE, 11),
        (2, "log", 101, 0, "item", "4", 1, 4, PUT, 11),
        (2, "log", 102, 0, "pair", "7-x", 2, 5, PUT, None),
        (2, "log", 103, 0, "item", "2", 1, 2, DELETE, 20),
    ]


def test_a_segment_that_was_missed_is_known(event_log: Path, tmp_path: Path) -> None:
    keeper = SegmentKeeper(event_log, tmp_path / "kept")
    keeper.start()
    segment(event_log, 1, 1, {})
    segment(event_log, 3, 1, {})
    keeper.stop()
    assert deliveries(tmp_path / "kept", [ITEM]).missing == (2,)


def test_a_segment_written_again_replaces_the_one_that_was_lost(event_log: Path, tmp_path: Path) -> None:
    keeper = SegmentKeeper(event_log, tmp_path / "kept")
    keeper.start()
    segment(event_log, 1, 1, {"item log": images((100, 0, 1, 1, 1, 10))})
    keeper.keep()
    segment(event_log, 1, 2, {"item log": images((100, 0, 1, 1, 1, 10), (101, 0, 1, 2, 2, 20))})
    keeper.stop()
    found = deliveries(tmp_path / "kept", [ITEM])
    assert found.table["key"].to_pylist() == ["1", "2"]
    assert found.segments == 1


@pytest.mark.parametrize(("damaged", "left"), [(True, [1, 2]), (False, [1, 2, 3])])
def test_segments_that_went_with_a_damaged_event_log_were_delivered_to_nobody(
    event_log: Path, tmp_path: Path, damaged: bool, left: list[int]
) -> None:
    """The control: a stale segment of a log that is in use counts, whoever wrote it."""
    keeper = SegmentKeeper(event_log, tmp_path / "kept")
    keeper.start()
    for number in (1, 2, 3):
        segment(event_log, number, 1, {})
    keeper.keep()
    if damaged:
        event_log.rename(f"{event_log}.damaged")
        for folder in ("data", "segments"):
            (event_log / folder).mkdir(parents=True)
    segment(event_log, 2, 2, {})
    keeper.stop()
    assert sorted(int(path.stem) for path in (tmp_path / "kept").glob("*.json")) == left
