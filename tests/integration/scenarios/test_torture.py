"""Short hazards of the torture suite on real servers; Debezium's part needs the extra ``torture``."""

from __future__ import annotations

from pathlib import Path

import pytest

from scenarios.torture import course
from scenarios.torture.debezium import missing_extra
from scenarios.torture.hazards import chosen
from scenarios.torture.report import judged
from verify.history.history import load_history

pytestmark = pytest.mark.integration

(GHOST,) = chosen("ghost_standby")
(MOVES,) = chosen("key_moves")


def test_commits_that_nobody_sees_yet_make_none_of_our_chunk_rows_stale(tmp_path: Path) -> None:
    seen = course.run(GHOST, "ours", seconds=20, seed=1, folder=tmp_path, most_dumps=3)
    row = judged(GHOST, seen)
    assert (row.dumps, row.chunks, row.rows_read, row.changes) == (3, 3, 600, 24)
    assert row.reads == 600 - 24, "the rows of the waiting commits, and no others, are held back"
    assert (row.stale_reads, row.stale_events, row.wrong_keys) == (0, 0, 0)
    assert row.verdict == "holds", row.checks


@pytest.mark.slow
def test_moved_deleted_and_inserted_keys_under_load(tmp_path: Path) -> None:
    seen = course.run(MOVES, "ours", seconds=3, seed=1, folder=tmp_path)
    row = judged(MOVES, seen)
    assert row.dumps > 3
    assert row.changes > 100
    assert (row.stale_reads, row.stale_events, row.wrong_keys) == (0, 0, 0)
    assert row.verdict == "holds", row.checks
    seen.history.save(tmp_path)
    assert load_history(tmp_path).deliveries.equals(seen.history.deliveries)


@pytest.mark.skipif(missing_extra() != "", reason=missing_extra())
def test_the_judge_finds_the_stale_rows_of_a_tool_that_trusts_watermarks_alone(tmp_path: Path) -> None:
    """The suite's positive control: 8 commits hang while the table is read, so 8 rows of each read are stale."""
    seen = course.run(GHOST, "debezium", seconds=20, seed=1, folder=tmp_path, most_dumps=3)
    row = judged(GHOST, seen)
    assert row.ended == ""
    assert (row.dumps, row.changes) == (3, 24)
    assert row.stale_reads == 24
    assert row.wrong_keys == 8 * 3 - 8 * 2, "each read mends the keys of the round before and breaks its own"
    assert row.verdict == "violated"
    assert "delivered by a chunk" in row.witness
