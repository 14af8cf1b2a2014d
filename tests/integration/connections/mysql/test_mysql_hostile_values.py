"""What is dumped, streamed, written and judged is the same whatever is set for the whole server, drawn by seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
import pytest

from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.connections.mysql.connection import Connection
from migrator.errors import MigratorError
from migrator.model.event import MarkKind
from tests import servers
from tests.drawn import seeds
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import make_watermark_table, read_to, source_of
from tests.integration.connections.mysql.every_setting import drawn_of_all
from tests.integration.connections.mysql.mysql_settings import drawn, hostile, plain_user
from tests.integration.target_bench_mysql import bench, ints
from tests.servers import Database, MariaDBServer, fresh_database
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.mysql.target import MySQLTarget
from verify.readers.ports import Digest
from verify.settings import ServerSettings
from verify.tables.hashed_by_servers.text_hash import Cell, select_in_mysql

pytestmark = pytest.mark.integration

SEEDS = seeds(4)
TABLE = """
CREATE TABLE t (
 id int PRIMARY KEY, c char(5), v varchar(40), n decimal(20,4), f float, g double, d datetime(6),
 ts timestamp(6) NULL, ti time(3), da date, b varbinary(20), e enum('a', 'b', '\u00f6'), j json,
 u bigint unsigned, i bit(9), x text CHARACTER SET latin1)
"""
TARGET = """
CREATE TABLE w (
 id int PRIMARY KEY, c char(5), v varchar(40), d datetime(6), b varbinary(20), x text CHARACTER SET latin1)
"""
_ROW = "(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, b'101010101', %s)"
_MOMENT = "2024-02-29 23:59:59.999999"
_NOON = (_MOMENT, "12:00:00.5", "2024-02-29")
_EARLY, _LATE = ("1000-01-01", "1999-01-01", "-838:59:59", "0001-01-01"), ("0", "9999-12-31")
ROWS: list[tuple[Any, ...]] = [
    (1, "ab", "", "0.1000", 0.1, 1e300, _MOMENT, *_NOON, b"\x00\xff", "a", '{"k": [1]}', 2**64 - 1, ""),
    (2, *[None] * 14),
    (3, "", "a\\b'\"||", "-9999999999999999.9999", -1.5, 0.1, *_EARLY, b"", "\u00f6", "[]", 0, "\u00e4 "),
    (4, "\u00e4", "tail  ", "1", 16777216.0, -0.5, _MOMENT, _MOMENT, *_LATE, b"a  ", "b", "null", 7, "x\n\t"),
]


@pytest.fixture
def values(spare_database: Database) -> Iterator[Database]:
    """A table of values that hostile settings would change, and a user for whom ``init_connect`` would run."""
    spare_database.execute(TABLE)
    with spare_database.connect() as writer:
        insert(writer)
    with plain_user(spare_database) as login:
        yield login


def insert(writer: Any) -> None:
    """Writes the rows anew, over a connection that says itself what it means."""
    with writer.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = 'STRICT_ALL_TABLES', time_zone = '+00:00'")
        cursor.execute("DELETE FROM t")
        cursor.executemany(f"INSERT INTO t VALUES {_ROW}", ROWS)


def server_of(database: Database) -> ServerSettings:
    return ServerSettings(servers.server_of(database))


def digest(database: Database) -> Digest:
    """The judge's hash of the texts, computed by the server."""
    cells = [
        Cell("`c`", "text", "char(5)", "utf8mb4_general_ci", True, False),
        Cell("`v`", "text", "varchar(40)", "utf8mb4_general_ci", True, False),
        Cell("`d`", "timestamp", "datetime(6)", "", True, True),
    ]
    numbers = select_in_mysql(cells, [False] * 3, ["`id`"], True)
    with MySQLTarget(server_of(database), "test").chunks("t") as chunks:
        return chunks.digest(numbers, "1 = 1")[1]


def judged(database: Database, folder: Path) -> dict[str, Any]:
    """What the judge reads of either side, and its hash."""
    source = (MySQLSource if database.kind == "mysql" else MariaDBSource)(server_of(database))
    with source.chunks("t") as chunks:
        chunks.read("1 = 1", folder / "source.parquet")
    target = MySQLTarget(server_of(database), "test").snapshot(["t"], folder).tables["t"]
    return {
        "source": pq.read_table(folder / "source.parquet").to_pylist(),
        "target": pq.read_table(target.path).to_pylist(),
        "hash": digest(database),
    }


def dumped(engine: BinlogEngine, database: Database) -> list[dict[str, Any]]:
    """The rows by chunks of two."""
    source = source_of(database, tls="prefer")
    [schema] = engine.catalog(source).tables(["t"])
    chunks = engine.dump(source, schema, 2)
    return [row for chunk in chunks for row in chunk.rows.to_pylist()]


def streamed(engine: BinlogEngine, database: Database, writer: Any) -> list[tuple[Any, ...]]:
    """The rows as the log has them when they are written anew."""
    source = source_of(database, tls="prefer")
    reader, _ = engine.started(source, "t")
    try:
        insert(writer)
        changes = read_to(reader, engine.end(source)).changes()
    finally:
        reader.close()
    return [tuple(change.after) for change in changes if change.after is not None]


def write(database: Database) -> None:
    """The same texts through the writer."""
    columns = {name: place for place, name in ((1, "c"), (2, "v"), (6, "d"), (10, "b"), (14, "x"))}
    kinds = {"b": pa.binary()}
    given = {
        name: pa.array([row[place] for row in ROWS], kinds.get(name, pa.string()))
        for name, place in columns.items()
    }
    rows = pa.table({**ints("id", *(row[0] for row in ROWS)), **given})
    with bench(database) as it:
        it.apply(it.part("w", after=rows.slice(0, 2)))
        it.apply(it.part("w", before=rows.slice(0, 1), after=rows.slice(2)))


def written(database: Database) -> list[tuple[Any, ...]]:
    """What a plain session finds of the texts that the writer wrote."""
    with database.connect(autocommit=True) as plain, plain.cursor() as cursor:
        cursor.execute(
            "SET SESSION sql_mode = '', sql_select_limit = 18446744073709551615, sql_big_selects = 1"
        )
        cursor.execute("SET NAMES utf8mb4")
        cursor.execute("SELECT id, c, HEX(v), CAST(d AS CHAR), HEX(b), HEX(x) FROM w ORDER BY id")
        return [tuple(row) for row in cursor.fetchall()]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_setting_of_the_server_changes_what_is_dumped_streamed_written_or_judged(
    engine: BinlogEngine,
    spare_server: MariaDBServer,
    spare_database: Database,
    values: Database,
    tmp_path: Path,
    seed: int,
) -> None:
    chance = random.Random(seed)
    settings = drawn(engine.kind, chance, share=chance.choice((0.2, 0.5, 1.0)))
    spare_database.execute(TARGET)
    with spare_database.connect() as writer:
        calm = dumped(engine, values), judged(values, tmp_path)
        calm_log = streamed(engine, values, writer)
        write(values)
        calm_rows = written(values)
        spare_database.execute("DROP TABLE w", TARGET, "DELETE FROM migrator_ledger")
        with hostile(spare_server, settings, "SET timestamp = 1"):
            assert (dumped(engine, values), judged(values, tmp_path)) == calm, settings
            assert streamed(engine, values, writer) == calm_log, settings
            write(values)
            assert written(values) == calm_rows, settings
    assert [row["id"] for row in calm[1]["source"]] == [1, 2, 3, 4]
    assert [row[0] for row in calm_rows] == [2, 3, 4]
    assert calm_rows[0] == (2, None, None, None, None, None)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_value_of_any_setting_changes_it(
    engine: BinlogEngine,
    spare_server: MariaDBServer,
    spare_database: Database,
    values: Database,
    tmp_path: Path,
    seed: int,
) -> None:
    """Settings of which nobody thought, too, as the server describes them; what was written is read afterwards."""
    chance = random.Random(seed)
    settings = drawn_of_all(spare_server, engine.kind, chance, chance.choice((0.2, 0.5, 1.0)))
    assert len(settings) > 10
    spare_database.execute(TARGET)
    with spare_database.connect() as writer:
        calm = dumped(engine, values), judged(values, tmp_path)
        calm_log = streamed(engine, values, writer)
        write(values)
        calm_rows = written(values)
        spare_database.execute("DROP TABLE w", TARGET, "DELETE FROM migrator_ledger")
        with hostile(spare_server, settings, "SET timestamp = 1"):
            assert (dumped(engine, values), judged(values, tmp_path)) == calm, settings
            assert streamed(engine, values, writer) == calm_log, settings
            write(values)
    assert written(values) == calm_rows, settings


@contextmanager
def without_pins(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """The control: sessions as the server makes them, but for what a driver's caller would ask for."""
    with patch.context() as free:
        for place in (
            "migrator.connections.mysql.settings.pin",
            "migrator.adapters.targets.mysql.settings.pin",
        ):
            free.setattr(place, lambda *_: None)
        free.setattr("verify.readers.mysql.session.pin_judge", lambda *_: None)
        yield


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sql_select_limit", "3"),
        ("sql_mode", "'ORACLE'"),
        ("sql_mode", "'PAD_CHAR_TO_FULL_LENGTH'"),
        ("group_concat_max_len", "16"),
        ("time_zone", "'-11:30'"),
    ],
)
def test_what_one_setting_would_change_for_the_judge(
    engine: BinlogEngine, spare_server: MariaDBServer, values: Database, tmp_path: Path, name: str, value: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if engine.kind == "mysql":  # which has no mode ORACLE
        value = value.replace("ORACLE", "ANSI,PAD_CHAR_TO_FULL_LENGTH")
    calm = judged(values, tmp_path)
    with hostile(spare_server, {name: value}):
        assert judged(values, tmp_path) == calm
        with without_pins(monkeypatch):
            try:
                assert judged(values, tmp_path) != calm
            except MigratorError:
                return  # noticed in another way


def test_a_watermark_is_committed_where_sessions_begin_without_autocommit(
    engine: BinlogEngine,
    spare_server: MariaDBServer,
    spare_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make_watermark_table(spare_database)
    source = source_of(spare_database, tls="prefer", placement="watermark")
    kept = "SELECT token FROM migrator.watermark WHERE migration = 'test' AND token LIKE %s"
    with hostile(spare_server, {"autocommit": "0", "completion_type": "'CHAIN'"}):
        writer = WatermarkRowWriter(source)
        writer.write("pinned", MarkKind.LOW)
        assert spare_database.query(kept, ["pinned"]) == [("pinned",)]
        writer.close()
        with without_pins(monkeypatch):
            writer = WatermarkRowWriter(source)
            writer.write("lost", MarkKind.LOW)
            assert spare_database.query(kept, ["lost"]) == []
            writer.close()


def test_a_target_that_wants_a_primary_key_of_each_table_is_written(spare_mysql: MariaDBServer) -> None:
    """MariaDB's setting of this kind (innodb_force_primary_key) is no session's."""
    with (
        fresh_database(spare_mysql, "new") as database,
        plain_user(database) as login,
        hostile(spare_mysql, {"sql_require_primary_key": "1"}),
    ):
        with bench(login, "CREATE TABLE t (id int PRIMARY KEY, v int)") as it:
            it.apply(it.part("t", after=pa.table({**ints("id", 1, 2), **ints("v", 1, 2)})))
            session = it.target._session
            assert session is not None
            session.make_temporary("migrator_scratch_9", "a int, b int, KEY (a)")
            session.run("INSERT INTO migrator_scratch_9 SELECT id, v FROM t")
            assert session.rows("SELECT * FROM migrator_scratch_9 ORDER BY a") == [(1, 1), (2, 2)]
        plain = Connection(host=login.host, port=login.port, user=login.user, database=login.database)
        with plain, pytest.raises(pymysql.err.MySQLError, match="sql_require_primary_key"):  # the control
            plain.cursor().execute("CREATE TEMPORARY TABLE x (a int)")
