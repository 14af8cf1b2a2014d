"""The judge piece by piece: nothing falls between two pieces, one bit is found, what is written is no alarm."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.model.table import Column
from tests.integration.verify.chunks.chunk_project import (
    COMPUTED,
    TRANSFORMED,
    ChunkProject,
    HotWriter,
    found_by,
)
from tests.integration.verify.verify_project import FILL
from tests.servers import Database
from verify.readers.chunk_keys import Key, KeyRange, condition
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.postgres.source import PostgresSource
from verify.tables.hashed_by_servers.digest import Pair, Pushed
from verify.tables.rounds import progress as rounds
from verify.tables.rounds.live import LiveComparison
from verify.tables.sweeps import chunk_choice, chunk_sweep, cuts, lanes
from verify.tables.sweeps.pairing import Waited
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 205
PLANTED = {
    ("different", "48"): "UPDATE item SET big = big + 1 WHERE item_id = 48",  # no double tells them apart
    ("different", "49"): "UPDATE item SET raw = set_bit(raw, 17, 1 - get_bit(raw, 17)) WHERE item_id = 49",
    ("different", "50"): "UPDATE item SET ratio = '-0' WHERE item_id = 50",
    ("different", "1003"): "UPDATE item SET ratio = 0 WHERE item_id = 1003",  # was -0
    ("different", "1001"): "UPDATE item SET exact = exact - 0.000001 WHERE item_id = 1001",  # 38 digits
    ("different", "1002"): "UPDATE item SET note = '' WHERE item_id = 1002",  # was NULL
    ("missing", "1"): "DELETE FROM item WHERE item_id = 1",
    ("extra", "-7"): "INSERT INTO item (item_id) VALUES (-7)",
    ("extra", "500"): "INSERT INTO item (item_id) VALUES (500)",
    ("extra", "9223372036854775807"): "INSERT INTO item (item_id) VALUES (9223372036854775807)",
}


@pytest.fixture
def project(old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path) -> ChunkProject:
    made = ChunkProject(old_pg, new_pg, spark, tmp_path)
    made.load()
    made.new.execute("UPDATE item SET ratio = 0 WHERE item_id = 50")
    made.old.execute("UPDATE thing SET ratio = 0 WHERE id = 50")
    made.ledger()
    return made


@pytest.mark.parametrize("rows", [1, 10, 1000])
def test_an_equal_table_is_told_by_the_servers_alone(project: ChunkProject, rows: int) -> None:
    result = project.chunks(rows)
    (table,) = result.tables
    assert (result.verdict, table.counts.equal, table.target_rows) == (Verdict.EQUAL, ROWS, ROWS)
    found = re.fullmatch(
        r"chunk by chunk, (\d+) chunks, hashes computed by both servers, no row read", table.method
    )
    assert found
    # Whose ends are reckoned has fewer rows behind a gap, and none behind the last key.
    assert ROWS // rows + 1 <= int(found[1]) <= ROWS // rows + 4
    assert table.uncompared_columns == ("filled_by_nobody",)


@pytest.fixture
def in_lanes(
    request: pytest.FixtureRequest, project: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """One table in so many lanes; each has had sessions of its own at the end."""
    monkeypatch.setattr(lanes, "ROWS_MIN", 1)
    opened: list[str] = []
    another = lanes.another_pair

    def noted(*args: Any) -> Any:
        opened.append("")
        return another(*args)

    monkeypatch.setattr(lanes, "another_pair", noted)
    project.lanes = request.param
    yield
    assert len(opened) == project.lanes - 1


@pytest.mark.slow
@pytest.mark.parametrize("in_lanes", [1, 2, 5], indirect=True)
@pytest.mark.usefixtures("in_lanes")
def test_what_differs_is_found_wherever_it_is(project: ChunkProject) -> None:
    project.new.execute(*PLANTED.values())
    (table,) = project.chunks().tables
    assert found_by(project) == set(PLANTED)
    assert table.counts.compared == ROWS + 3
    assert (table.counts.different, table.counts.missing, table.counts.extra) == (6, 1, 3)


@pytest.mark.slow
def test_a_transformed_column_is_read_and_mapped(project: ChunkProject) -> None:
    project.mapping.write_text(TRANSFORMED)
    project.new.execute("UPDATE item SET big = big + 1", *PLANTED.values())
    (table,) = project.chunks(50).tables
    assert table.method == "chunk by chunk, 5 chunks, all rows read"
    unseen = {("different", "1001")}  # its column is not filled any more
    assert found_by(project) == set(PLANTED) - unseen


def test_a_computed_column_is_computed_by_the_source(project: ChunkProject) -> None:
    project.mapping.write_text(COMPUTED)
    project.new.execute("UPDATE item SET big = big + 1, note = lower(note), at = seen AT TIME ZONE 'UTC'")
    project.new.execute("UPDATE item SET note = ' æther ' WHERE item_id = 1003")  # as Java has it
    result = project.chunks(40)
    (table,) = result.tables
    assert (result.verdict, table.counts.equal) == (Verdict.EQUAL, ROWS)
    # Of that note the source can't know what Java takes for its small letters, nor what Spark's infinity is.
    assert table.method.endswith("hashes computed by both servers, 4 rows of the source read")
    unseen = ("different", "1001")  # its column is not filled
    planted = [("different", "48"), ("different", "1002"), ("missing", "1"), ("extra", "500")]
    project.new.execute(
        *(PLANTED[one] for one in (*planted, unseen)),
        "UPDATE item SET at = at + interval '1 us' WHERE item_id = 77",
    )
    (table,) = project.chunks(40).tables
    assert "hashes computed by both servers" in table.method
    assert found_by(project) == {*planted, ("different", "77")}


@pytest.mark.slow
def test_a_row_made_twice_is_a_duplicate(project: ChunkProject) -> None:
    doubled = 'thing.drop("twice").withColumnRenamed("id", "item_id")'
    text = project.mapping.read_text().replace(doubled, f"{doubled}.union({doubled}.where('item_id = 30'))")
    project.mapping.write_text(text)
    (table,) = project.chunks().tables
    assert table.method.startswith("chunk by chunk")
    assert found_by(project) == {("duplicate", "30")}


def test_a_piece_is_found_by_its_key_though_the_table_has_no_statistics(project: ChunkProject) -> None:
    """The server would read all of it for the first piece, and for the last one."""
    before = scans(project, 0)
    project.chunks(20)
    after = scans(project, before["index"] + 11)
    assert after["whole"] == before["whole"]


def scans(project: ChunkProject, wanted: int) -> dict[str, int]:
    """How often the target's table was read, once the sessions have told that of ``wanted`` times by its index."""
    query = (
        "SELECT coalesce(seq_scan, 0), coalesce(idx_scan, 0) FROM pg_stat_user_tables WHERE relname = 'item'"
    )
    deadline = time.monotonic() + 30
    while True:
        with project.new.connect() as connection:
            whole, index = connection.execute(query).fetchone()
        if index >= wanted:
            return {"whole": whole, "index": index}
        assert time.monotonic() < deadline


NO_INDEX = "ALTER TABLE item DROP CONSTRAINT item_pkey"
OTHER_ORDER = "ALTER TABLE item ALTER item_id TYPE numeric"


@pytest.mark.parametrize(
    ("spoil", "why"), [(NO_INDEX, "no unique index"), (OTHER_ORDER, "is not agreed upon")]
)
def test_what_has_no_agreed_key_is_read_at_once_if_a_chunk_holds_it(
    project: ChunkProject, spoil: str, why: str
) -> None:
    project.new.execute(spoil)
    result = project.chunks(ROWS)
    assert result.verdict is Verdict.EQUAL
    assert result.tables[0].method.startswith("in one chunk, a short view of each side: ")
    assert why in result.tables[0].method


@pytest.mark.slow
def test_what_has_no_agreed_key_is_cut_on_each_side_by_itself(project: ChunkProject) -> None:
    project.new.execute(OTHER_ORDER, *PLANTED.values())
    (table,) = project.chunks().tables
    assert table.method.startswith(
        "chunk by chunk, 42 chunks, all rows read: the order of key column item_id"
    )
    assert found_by(project) == set(PLANTED)


def test_what_no_chunk_holds_and_nothing_cuts_is_left_to_who_asks_for_it(project: ChunkProject) -> None:
    project.new.execute(NO_INDEX)
    (table,) = project.chunks(ROWS - 1).tables
    assert table.verdict is Verdict.UNKNOWN
    assert "has more than 204 rows, and the target has no unique index" in table.reason
    assert "--whole" in table.reason
    assert project.chunks(0).verdict is Verdict.EQUAL


def test_one_snapshot_of_each_side_is_there_for_who_asks(project: ChunkProject) -> None:
    assert project.chunks(0).tables[0].method == "whole, in one snapshot of each side: asked for"


def add_rows(project: ChunkProject) -> None:
    """4,000 rows more on both sides, with keys from 2001."""
    more = "generate_series(2001, 6000) g"
    project.old.execute(f"INSERT INTO thing (id, note) SELECT g, 'n' || g FROM {more}")
    project.new.execute(f"INSERT INTO item (item_id, note) SELECT g, 'n' || g FROM {more}")
    project.ledger()


@pytest.fixture
def hot(project: ChunkProject, monkeypatch: pytest.MonkeyPatch) -> ChunkProject:
    """Thousands of rows more, and a pipeline that holds its slot as long as it runs."""
    add_rows(project)
    in_use = Pending(PendingAnswer.UNKNOWN, "the slot is in use")
    monkeypatch.setattr(PostgresSource, "pending", lambda *_: in_use)
    return project


@pytest.mark.slow
@pytest.mark.parametrize("in_lanes", [1, 5], indirect=True)
@pytest.mark.usefixtures("in_lanes")
def test_hot_rows_in_thousands_of_chunks_are_no_alarm(hot: ChunkProject) -> None:
    with HotWriter(hot, [*range(1, 201, 7), *range(2001, 6001, 131)]) as writer:
        result = hot.chunks(2)
    (table,) = result.tables
    pieces = re.match(r"chunk by chunk, (\d),(\d+) chunks", table.method)
    assert pieces
    # Behind each of two gaps, every lane may have taken empty ones until the first of them tells so.
    assert (ROWS + 4000) // 2 < int("".join(pieces.groups())) < (ROWS + 4000) // 2 + 50
    assert writer.commits > 100
    assert (table.counts.different, table.counts.missing, table.counts.extra) == (0, 0, 0)
    assert table.counts.equal + table.counts.set_aside == ROWS + 4000


@pytest.mark.slow
def test_one_bit_among_hot_rows_is_named(hot: ChunkProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "STEADY_ROUNDS", 3)  # nothing is flipped to and fro here
    hot.new.execute("UPDATE item SET raw = set_bit(raw, 17, 1 - get_bit(raw, 17)) WHERE item_id = 49")
    with HotWriter(hot, [*range(2001, 6001, 131), 47, 48, 50]):
        (table,) = hot.chunks(100, rounds=12).tables
    assert found_by(hot) == {("different", "49")}
    assert table.counts.different == 1


@pytest.mark.slow
def test_pieces_of_two_lanes_meet_between_two_keys(
    project: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_rows(project)
    monkeypatch.setattr(lanes, "ROWS_MIN", 1)
    project.new.execute("UPDATE item SET note = 'wrong' WHERE item_id IN (3000, 3001)")
    (table,) = project.chunks(100).tables
    assert found_by(project) == {("different", "3000"), ("different", "3001")}
    assert table.counts.compared == ROWS + 4000

    def late(after: Key | None = None, upto: Key | None = None) -> KeyRange:
        """The control: a piece that begins behind a key that no other piece has."""
        has_it = after and upto and int(after[0]) < 3001 <= int(upto[0])
        return KeyRange(("3001",) if has_it else after, upto)

    monkeypatch.setattr(cuts, "KeyRange", late)
    project.chunks(100)
    assert ("different", "3001") not in found_by(project)


def test_one_flipped_bit_among_a_million_cells_is_named(project: ChunkProject) -> None:
    rows = 53_000  # of nineteen columns
    project.old.execute(FILL.replace("generate_series(1, 200)", f"generate_series(10001, {10000 + rows})"))
    project.old.execute("ANALYZE thing")
    project.copy("id > 10000")
    project.ledger()
    # As the server itself writes to the log at any moment: the judge has to look at what lies after the ledger, and
    # more than fifty thousand applied changes lie before it.
    project.old.execute("SELECT pg_logical_emit_message(true, 'of nobody', 'x')")
    project.new.execute("UPDATE item SET raw = set_bit(raw, 17, 1 - get_bit(raw, 17)) WHERE item_id = 44444")
    (table,) = project.chunks(5_000).tables
    assert found_by(project) == {("different", "44444")}
    assert (table.counts.equal, table.counts.different) == (ROWS + rows - 1, 1)
    assert "312 rows of the source read" in table.method  # the finer piece that holds it


# -- judges that are broken on purpose ---------------------------------------------------------------------------


def test_a_judge_that_does_not_wait_for_the_ledger_gives_false_alarm(
    project: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.old.execute("UPDATE thing SET note = 'on its way' WHERE id = 50")
    assert project.chunks().verdict is Verdict.UNKNOWN
    monkeypatch.setattr(LiveComparison, "_wait", lambda *_: Waited(True, "not waited"))
    assert project.chunks().verdict is Verdict.DIFFERENT


@pytest.mark.slow
def test_a_range_that_is_open_above_misses_its_last_row(
    project: ChunkProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.new.execute("UPDATE item SET note = 'wrong' WHERE item_id = 50")
    project.chunks(10)
    assert found_by(project) == {("different", "50")}
    monkeypatch.setattr(chunk_sweep, "condition", lambda *given: condition(*given).replace("<=", "<"))
    table = project.chunks(10).tables[0]
    assert found_by(project) == set()
    assert table.counts.compared < ROWS


def source_name(pair: Pair) -> str:
    assert isinstance(pair.source, Column)
    return f'"{pair.source.name}"'


def skips_nulls(_: object, __: object, pairs: list[Pair], key: object) -> Pushed:
    def numbers(names: list[str]) -> str:
        text = f"concat_ws(',', {', '.join(names)})"
        return f"count(*), count(*), coalesce(sum(hashtextextended({text}, 1)), 0)::text"

    return Pushed(
        numbers([source_name(pair) for pair in pairs]),
        numbers([f'"{pair.target.name}"' for pair in pairs]),
    )


def adds_up_cells(_: object, __: object, pairs: list[Pair], key: object) -> Pushed:
    def numbers(names: list[str]) -> str:
        cells = ", ".join(f"{name}::text" for name in names)
        return (
            "count(*), count(*),"
            f" (coalesce(sum(hash_record_extended(ROW({cells}), 1)), 0) % 18446744073709551616)::text"
        )

    return Pushed(
        numbers([source_name(pair) for pair in pairs]),
        numbers([f'"{pair.target.name}"' for pair in pairs]),
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "planted", "differ"),
    [
        (skips_nulls, ["UPDATE item SET wide = 7, big = NULL WHERE item_id = 2000"], {"2000"}),
        (
            adds_up_cells,
            [
                "UPDATE item SET note = 'note 12' WHERE item_id = 11",
                "UPDATE item SET note = 'note 11' WHERE item_id = 12",
            ],
            {"11", "12"},
        ),
    ],
)
def test_a_lenient_digest_misses_what_ours_finds(
    project: ChunkProject,
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[..., Pushed],
    planted: list[str],
    differ: set[str],
) -> None:
    project.old.execute("INSERT INTO thing (id, big) VALUES (2000, 7)")
    project.copy("id = 2000")
    project.ledger()
    project.new.execute(*planted)
    project.chunks()
    assert {key for _, key in found_by(project)} == differ
    monkeypatch.setattr(chunk_choice, "pushed", broken)
    assert project.chunks().verdict is Verdict.EQUAL
