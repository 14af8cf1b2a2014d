"""Several reads at once on real servers: every kind of key, under writers, killed in the middle, growing."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

import psycopg
import pymysql
import pytest

from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import Pace
from migrator.run.failure import Stopping
from tests.integration.capturing import Capturing, Killed, capturing
from tests.servers import POSTGRES_VERSION, Database

pytestmark = pytest.mark.integration

LIMITS = CaptureLimits(chunk_rows=20, chunk_rows_min=20, chunk_rows_max=20, dump_workers=3, linger_s=0.01)
ROWS = 150
SPARE = 400
"""Numbers from here on make keys that no row has at first."""

Literal = Callable[[int], str]


def _word(number: int) -> str:
    """Words whose order depends on the collation: letters of both cases, umlauts, digits, an empty suffix."""
    letters = "aAbBäÄzZ09"
    return f"{letters[number % 10]}{letters[number // 10 % 10]}{'é' if number % 3 else 'E'}{number}"


def _scattered(number: int) -> int:
    """Half of the keys lie in a clump, the others far apart."""
    return number if number % 2 else (number * 2_654_435_761 % 1_000_003) ** 2


# Columns of the key, their literals for a number (all different), per engine. The key's columns are k, or a and b.
POSTGRES: dict[str, tuple[str, Literal]] = {
    "scattered": ("k bigint", lambda n: f"{_scattered(n)}"),
    "negative": ("k int", lambda n: f"{(n - 200) * 7}"),
    "composite": ("a smallint, b text", lambda n: f"{n % 4 - 2}, '{_word(n)}'"),
    "words": ("k text", lambda n: f"'{_word(n)}'"),
    "words_c": ('k varchar(40) COLLATE "C"', lambda n: f"'{_word(n)}'"),
    "words_unicode": ('k text COLLATE "pg_unicode_fast"', lambda n: f"'{_word(n)}'"),
    "bytes": ("k bytea", lambda n: f"'\\x{n * 7919 % 65521:04x}{'00' * (n % 3)}'"),
    "uuids": ("k uuid", lambda n: f"'{random.Random(n).getrandbits(128):032x}'"),
    "exact": ("k numeric(20)", lambda n: f"{2**64 - 1 - n * 3**20}"),
    "days": ("k date", lambda n: f"date '0900-01-01' + {n * 977}"),
}
if POSTGRES_VERSION < 18:
    del POSTGRES["words_unicode"]  # the collation is new in 18
BINLOG: dict[str, tuple[str, Literal]] = {
    "scattered": ("k bigint", lambda n: f"{_scattered(n)}"),
    "negative": ("k int", lambda n: f"{(n - 200) * 7}"),
    "composite": ("a smallint, b varchar(40)", lambda n: f"{n % 4 - 2}, '{_word(n)}'"),
    "words": ("k varchar(40)", lambda n: f"'{_word(n)}'"),
    "words_bin": ("k varchar(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", lambda n: f"'{_word(n)}'"),
    "words_latin": ("k varchar(40) CHARACTER SET latin1 COLLATE latin1_german1_ci", lambda n: f"'{_word(n)}'"),
    "bytes": ("k varbinary(8)", lambda n: f"x'{n * 7919 % 65521:04x}{'00' * (n % 3)}'"),
    "unsigned_64": ("k bigint unsigned", lambda n: f"{2**64 - 1 - n * 3**20 if n % 2 else n}"),
    "days": ("k date", lambda n: f"DATE_ADD('1000-01-01', INTERVAL {n * 577} DAY)"),
}  # fmt: skip


@pytest.fixture(params=["old_pg", "old_maria", pytest.param("old_mysql", marks=pytest.mark.slow)])
def old(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    return database


def kinds(database: Database) -> dict[str, tuple[str, Literal]]:
    return POSTGRES if database.kind == "postgresql" else BINLOG


def create(database: Database) -> None:
    statements = []
    for name, (columns, literal) in kinds(database).items():
        key = "a, b" if columns.startswith("a ") else "k"
        statements.append(f"CREATE TABLE {name} ({columns}, v int, PRIMARY KEY ({key}))")
        rows = ", ".join(f"({literal(number)}, {number})" for number in range(ROWS))
        statements.append(f"INSERT INTO {name} VALUES {rows}")
        if database.kind == "postgresql":
            statements.append(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    database.execute(*statements)


def change(rng: random.Random, name: str, columns: str, literal: Literal) -> str:
    """A statement that changes, deletes, inserts or moves a row of a table; it may find none."""
    key = "(a, b)" if columns.startswith("a ") else "k"
    old, new = literal(rng.randrange(ROWS)), literal(SPARE + rng.randrange(200))
    absent = f"WHERE NOT EXISTS (SELECT 1 FROM {name} AS t WHERE {key} = ({new}))"
    choices = [
        f"UPDATE {name} SET v = v + 1 WHERE {key} = ({old})",
        f"DELETE FROM {name} WHERE {key} = ({old})",
        f"DELETE FROM {name} WHERE {key} = ({new})",
        f"INSERT INTO {name} SELECT {new}, {rng.randrange(99)} {absent}",
        f"UPDATE {name} SET k = {new} WHERE k = {old}" if key == "k" else "",
    ]
    return rng.choice(choices) or f"UPDATE {name} SET a = 9 WHERE {key} = ({old})"


@contextmanager
def writing(database: Database) -> Iterator[list[int]]:
    """One writer in all tables; yields how many statements it ran."""
    stopping, count, rng = Stopping(), [0], random.Random(1)

    def write() -> None:
        with database.connect() as connection, connection.cursor() as cursor:
            while not stopping.requested():
                name, (columns, literal) = rng.choice(list(kinds(database).items()))
                with suppress(
                    psycopg.errors.UniqueViolation, pymysql.err.IntegrityError
                ):  # moved onto another
                    cursor.execute(change(rng, name, columns, literal))
                count[0] += 1

    thread = stopping.thread("writer", write)
    try:
        yield count
    finally:
        stopping.request()
        thread.join(30)
        stopping.raise_failure()


def equal(capture: Capturing, database: Database) -> None:
    held = capture.held()
    for table in capture.schemas:
        expected = capture.source(table)
        assert (len(expected),) == database.query(f"SELECT count(*) FROM {table.name}")[0]
        assert held[table] == expected, table.name


@pytest.mark.slow
def test_every_kind_of_key_under_writers(old: Database) -> None:
    create(old)
    capture = capturing(old, list(kinds(old)), LIMITS)
    with writing(old) as written:
        capture.run(capture.dumped)
    assert written[0] > 0
    dumps = capture.progress.snapshot().dumps
    capture.run(capture.caught_up())
    assert all(dump.chunks > ROWS / LIMITS.chunk_rows / 2 for dump in dumps), dumps
    equal(capture, old)


def test_killed_with_several_chunks_in_flight(old: Database) -> None:
    create(old)
    capture = capturing(old, list(kinds(old)), LIMITS)
    seen: list[str] = []

    def kill_at(point: str, count: int) -> Callable[[str], None]:
        seen.clear()

        def step(name: str) -> None:
            seen.append(name)
            if seen.count(point) >= count:
                raise Killed

        return step

    with writing(old):
        for point, count in (("capture.emitted", 7), ("capture.chunk", 12), ("chunk.selected", 20)):
            with pytest.raises(Killed):
                capture.run(lambda: False, kill_at(point, count))
        capture.run(capture.dumped)
    capture.run(capture.caught_up())
    equal(capture, old)


def numbered(old: Database, rows: int) -> None:
    """Table t with the keys from 0 on."""
    old.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    old.execute(f"INSERT INTO t VALUES {', '.join(f'({n}, 0)' for n in range(rows))}")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE t REPLICA IDENTITY FULL")


def test_a_table_that_grows_at_its_end_all_the_time_is_dumped_all_the_same(old: Database) -> None:
    """Each read waits until more rows were appended than it can bring."""
    numbered(old, 200)
    capture = capturing(old, ["t"], replace(LIMITS, dump_workers=2))
    next_key = iter(range(200, 1_000_000))
    lock = threading.Lock()

    def grow(name: str) -> None:
        if name == "chunk.begin":
            with lock:
                rows = ", ".join(f"({next(next_key)}, 0)" for _ in range(LIMITS.chunk_rows + 1))
                old.execute(f"INSERT INTO t VALUES {rows}")

    capture.run(capture.dumped, grow)
    (dump,) = capture.progress.snapshot().dumps
    assert 200 <= dump.rows + dump.dropped_rows < 300, "what was appended came by the log"
    capture.run(capture.caught_up())
    equal(capture, old)


def test_windows_of_several_workers_overlap(old: Database) -> None:
    """Each worker writes watermarks of its own around its SELECT, into the same row of the source."""
    create(old)
    capture = capturing(old, ["scattered", "words"], LIMITS, "watermark")
    story: list[str] = []
    with writing(old):
        capture.run(
            capture.dumped, lambda name: story.append(name[6:]) if name.startswith("chunk.") else None
        )
    marks = [name for name in story if name in ("low", "high")]
    assert "low low" in " ".join(marks), "no window began while another was open"
    assert marks.count("low") == marks.count("high") > 2
    capture.run(capture.caught_up())
    equal(capture, old)


def test_workers_are_changed_while_they_read(old: Database) -> None:
    create(old)
    capture = capturing(old, list(kinds(old)), LIMITS)
    begun: list[int] = []

    def employ(name: str) -> None:
        if name == "chunk.begin":
            begun.append(len(begun))
            if len(begun) in (10, 20, 30):
                workers = {10: 5, 20: 1, 30: 2}[len(begun)]
                capture.requests.update(lambda book: replace(book, pace=Pace(workers=workers)))

    with writing(old):
        capture.run(capture.dumped, employ)
    assert len(begun) > 30, "the dump was over before the last change"
    capture.run(capture.caught_up())
    equal(capture, old)


def test_dblogs_own_interleaving_reads_one_chunk_at_a_time_between_its_marks(old: Database) -> None:
    create(old)
    capture = capturing(old, ["scattered", "words"], replace(LIMITS, dump_workers=1), "watermark")
    story: list[str] = []
    with writing(old):
        capture.run(
            capture.dumped, lambda name: story.append(name) if name in ("chunk.low", "chunk.high") else None
        )
    assert len(story) > 2 * ROWS / LIMITS.chunk_rows
    assert story == ["chunk.low", "chunk.high"] * (len(story) // 2), "a window began while another was open"
    capture.run(capture.caught_up())
    equal(capture, old)


def test_a_table_that_shrinks_ahead_of_its_dump_keeps_no_row(old: Database) -> None:
    """Most of what is not read yet is deleted while the third chunk is read."""
    numbered(old, 400)
    capture = capturing(old, ["t"], LIMITS)
    begun: list[str] = []

    def shrink(name: str) -> None:
        if name == "chunk.selected":
            begun.append(name)
            if len(begun) == 3:
                old.execute("DELETE FROM t WHERE k BETWEEN 10 AND 390")

    capture.run(capture.dumped, shrink)
    (dump,) = capture.progress.snapshot().dumps
    assert 19 < dump.rows + dump.dropped_rows < 200, "reads brought rows that were deleted, and few of them"
    capture.run(capture.caught_up())
    equal(capture, old)
    assert sum(map(len, capture.held().values())) == 19
