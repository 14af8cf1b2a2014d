"""Chunks against real servers of both engines: keyset reads over every kind of key, witness, changed tables."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.keyset import chunk_select, compared
from migrator.adapters.sources.mariadb.witness import BinlogWitness
from migrator.adapters.sources.mysql.witness import GtidWitness
from migrator.errors import ConnectionFailed, SchemaError, SourceError
from migrator.model.chunk import ChunkRequest
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.servers import Database, has_mysql

pytestmark = pytest.mark.integration

KEYS = {
    "bigint unsigned": "`k` bigint unsigned, PRIMARY KEY (k)",
    "case-insensitive text": "k varchar(20) COLLATE utf8mb4_general_ci, PRIMARY KEY (k)",
    "latin1 text": "k varchar(20) CHARACTER SET latin1, PRIMARY KEY (k)",
    "binary": "k binary(3), PRIMARY KEY (k)",
    "composite": "k int, `l ``2` varchar(10), PRIMARY KEY (k, `l ``2`)",
    "enum": "k enum('z','m','a'), l int, PRIMARY KEY (k, l)",
    "enum, odd labels": "k enum('z','new\nline','it''s','a\\\\b','cr\r','é😀','','?!','\\0x'), PRIMARY KEY (k)",
    "set": "k set('z','m','a'), PRIMARY KEY (k)",
    "set, odd labels": "k set('z','new\nline','it''s','a\\\\b','é😀'), PRIMARY KEY (k)",
    "decimal": "k decimal(30,10), PRIMARY KEY (k)",
    "double": "k double, PRIMARY KEY (k)",
    "date and time": "k date, l time(3), PRIMARY KEY (k, l)",
    "timestamp": "k timestamp(6) DEFAULT '2000-01-01', PRIMARY KEY (k)",
    "bit": "k bit(20), PRIMARY KEY (k)",
    "unique index": "k int NOT NULL, l int, UNIQUE (l), UNIQUE INDEX `the key` (k)",
    "prefix": "k varchar(50), PRIMARY KEY (k(8))",
}
ROWS = {
    "bigint unsigned": [
        "0",
        "9007199254740992",
        "9007199254740993",
        "9007199254740994",
        "18446744073709551615",
    ],
    "case-insensitive text": ["'a'", "'B'", "'c'", "'É'", "'z''\\\\'", "''"],
    "latin1 text": ["x'81'", "x'e9'", "'a'", "'B'", "x'8d41'"],
    "binary": ["x'000000'", "x'00ff'", "x'27'", "x'5c'", "x'ffffff'"],
    "composite": ["1,'a'", "1,'B'", "2,''", "2,'x'", "3,'''\\\\'"],
    "enum": ["'z',1", "'m',1", "'m',2", "'a',1", "'a',9"],
    "enum, odd labels": [str(number) for number in range(1, 10)],
    "set": ["''", "'z'", "'m'", "'z,m'", "'a'", "'z,m,a'"],
    "set, odd labels": ["0", "1", "2", "5", "8", "31"],
    "decimal": ["-1.5", "12345678901234567890.0000000001", "12345678901234567890.0000000002", "0"],
    "double": ["-1e300", "0.1", "0.30000000000000004", "1e22", "5e-324"],
    "date and time": ["'2024-02-31','-01:00:00.5'", "'0000-00-00','00:00:00'", "'2024-02-31','100:00:00'"],
    "timestamp": ["'2024-10-27 00:30:00'", "'2024-10-27 01:30:00.000001'", "'2024-10-27 02:30:00'"],
    "bit": ["0", "1", "255", "256", "1048575"],
    "unique index": ["1,NULL", "2,NULL", "3,5", "4,4", "5,3"],
    "prefix": ["'same pre 1'", "'other'", "'zebra crossing'", "'a'"],
}
PLAN_WORDS = {
    "mysql": ("Index range scan on big using PRIMARY", "sort")
    if has_mysql(8, 3)
    else ('"access_type": "range"', '"using_filesort": true'),
    "mariadb": ('"access_type": "range"', "filesort"),
}
"""What the plan of a chunk must say of its index, and what it must not say, in lower case."""
WITNESSES = {"mysql": GtidWitness, "mariadb": BinlogWitness}


@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("limit_rows", [1, 2])
def test_every_row_is_read_once_in_key_order(
    engine: BinlogEngine, old_binlog: Database, kind: str, limit_rows: int
) -> None:
    old_binlog.execute(f"CREATE TABLE `a ``table` ({KEYS[kind]}, note varchar(20) DEFAULT 'n')")
    with old_binlog.connect(sql_mode="ALLOW_INVALID_DATES") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        columns = "k" if "," not in ROWS[kind][0] else "k, `l ``2`" if kind == "composite" else "k, l"
        cursor.execute(
            f"INSERT INTO `a ``table` ({columns}) VALUES {', '.join(f'({row})' for row in ROWS[kind])}"
        )
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["a `table"])
    chunks = engine.dump(source, schema, limit_rows)
    whole = engine.dump(source, schema, 1000)
    keys = [tuple(row[name] for name in schema.key) for chunk in chunks for row in chunk.rows.to_pylist()]
    assert keys == [tuple(row[name] for name in schema.key) for row in whole[0].rows.to_pylist()]
    assert len(set(keys)) == len(ROWS[kind])
    assert [chunk.final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert all(chunk.schema_version == schema.version() for chunk in chunks)


def test_a_chunk_that_follows_a_key_uses_the_index(engine: BinlogEngine, old_binlog: Database) -> None:
    old_binlog.execute(
        "CREATE TABLE big (a int, b int, c int, PRIMARY KEY (a, b))",
        f"INSERT INTO big VALUES {', '.join(f'({n // 100}, {n % 100}, 0)' for n in range(1, 20_001))}",
        "ANALYZE TABLE big",
    )
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["big"])
    reader = engine.chunk_reader(source)
    chunk = reader.read(ChunkRequest(1, schema.id, ("150", "50"), 100), schema)
    reader.close()
    assert (chunk.rows["a"][0].as_py(), chunk.rows["b"][0].as_py(), chunk.last_key) == (
        150,
        51,
        ("151", "50"),
    )
    sql = chunk_select(schema, "PRIMARY", 100, [compared(schema, ">", ("150", "50"), repr)])
    ((plan,),) = old_binlog.query(f"EXPLAIN FORMAT=JSON {sql}")
    by_index, sort = PLAN_WORDS[engine.kind]
    assert by_index in plan
    assert sort not in plan.lower()


def test_an_empty_table_is_one_final_chunk(engine: BinlogEngine, old_binlog: Database) -> None:
    old_binlog.execute("CREATE TABLE nothing (id int PRIMARY KEY, b blob)")
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["nothing"])
    (chunk,) = engine.dump(source, schema, 10)
    assert (chunk.row_count, chunk.last_key, chunk.final) == (0, None, True)
    assert chunk.rows.schema.names == ["id", "b"]


def test_each_chunk_has_a_read_view_of_its_own_and_its_witness_tells_it(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
    source = source_of(old_binlog)
    log, (schema,) = engine.started(source, "t")
    reader = engine.chunk_reader(source)
    request = ChunkRequest(1, schema.id, None, 10)
    before = reader.read(request, schema)
    old_binlog.execute("UPDATE t SET v = 2")
    after = reader.read(request, schema)
    newest = reader.witness()
    (part,) = read_to(log, engine.end(source)).parts()
    log.close()
    reader.close()
    assert (before.rows["v"].to_pylist(), after.rows["v"].to_pylist()) == ([1], [2])
    assert before.witness is not None
    assert isinstance(before.witness, WITNESSES[engine.kind])
    assert not before.witness.contains(part.id)
    assert after.witness is not None
    assert after.witness.contains(part.id)
    assert newest.contains(part.id)
    assert before.high < part.position
    assert after.high >= part.position


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("ALTER TABLE t DROP COLUMN v", "v"),
        ("ALTER TABLE t MODIFY v bigint", "bigint"),
        ("DROP TABLE t", "doesn't exist"),
    ],
)
def test_a_changed_table_stops_its_dump(
    engine: BinlogEngine, old_binlog: Database, change: str, words: str
) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["t"])
    reader = engine.chunk_reader(source)
    reader.read(ChunkRequest(1, schema.id, None, 1), schema)
    old_binlog.execute(change)
    with pytest.raises(SchemaError, match=words):
        reader.read(ChunkRequest(2, schema.id, ("1",), 1), schema)
    reader.close()


def test_added_columns_do_not_disturb_a_dump(engine: BinlogEngine, old_binlog: Database) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["t"])
    reader = engine.chunk_reader(source)
    reader.read(ChunkRequest(1, schema.id, None, 1), schema)
    old_binlog.execute("ALTER TABLE t ADD COLUMN w int FIRST")
    chunk = reader.read(ChunkRequest(2, schema.id, ("1",), 1), schema)
    reader.close()
    assert chunk.rows.to_pylist() == [{"id": 2, "v": 2}]


def test_a_cut_connection_is_retryable_and_the_next_chunk_connects_anew(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    source = source_of(old_binlog)
    (schema,) = engine.catalog(source).tables(["t"])
    reader = engine.chunk_reader(source)
    request = ChunkRequest(1, schema.id, None, 10)
    reader.read(request, schema)
    for (session,) in old_binlog.query(
        "SELECT id FROM information_schema.processlist WHERE db = %s AND id <> connection_id()",
        [old_binlog.database],
    ):
        old_binlog.execute(f"KILL {session}")
    with pytest.raises(ConnectionFailed) as cut:
        reader.read(request, schema)
    assert cut.value.retryable
    assert reader.read(request, schema).row_count == 1
    reader.close()


def test_tables_that_are_missing_or_keyless_are_named(engine: BinlogEngine, old_binlog: Database) -> None:
    old_binlog.execute("CREATE TABLE loose (a int, b int, UNIQUE (a))")
    with pytest.raises(SourceError, match=r"don't exist: gone, lost"):
        engine.catalog(source_of(old_binlog)).tables(["gone", "lost"])
    with pytest.raises(SourceError, match=r"have no key: loose"):
        engine.catalog(source_of(old_binlog)).tables(["loose"])


@pytest.mark.parametrize(
    ("setting", "words", "retryable"),
    [
        ({"database": "nowhere"}, "does not exist", False),
        ({"user": "stranger", "password": "secret word"}, "denied", False),
        ({"port": 1}, "can't be reached", True),
    ],
)
def test_refused_logins_are_named_without_the_password(
    engine: BinlogEngine, old_binlog: Database, setting: dict[str, object], words: str, retryable: bool
) -> None:
    with pytest.raises(ConnectionFailed, match=words) as refused:
        engine.catalog(source_of(old_binlog, **{"tls": engine.password_tls, **setting})).position()
    assert refused.value.retryable is retryable
    assert "secret word" not in str(refused.value) + repr(source_of(old_binlog, **setting))
    assert refused.value.remedy
