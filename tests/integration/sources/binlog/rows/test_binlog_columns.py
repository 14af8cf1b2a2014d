"""Columns that aren't plain, on MySQL and MariaDB: generated, invisible, added in the middle, with odd names."""

from __future__ import annotations

import pytest

from migrator.columnar.text import rows_to_table
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import fold, read_to, source_of
from tests.integration.exact import assert_same
from tests.servers import Database

pytestmark = pytest.mark.integration

ODD = [
    'double "quotes"', "single 'quotes'", "back`tick", "per%cent %s %(x)s", "{brace}", "select", "日本 é", "a,b(c)",
    "back\\slash", "semi;colon -- x", "/* c */", "Case", "f0", "at", "data",
]  # fmt: skip
"""The last ones are names that generated decoders use themselves."""


def test_odd_names(engine: BinlogEngine, old_binlog: Database) -> None:
    names = [*ODD, "日本"]
    quoted = ["`" + name.replace("`", "``") + "`" for name in names]
    columns = ", ".join(f"{name} enum('a%', 'b''\"', 'c,d')" for name in quoted)
    with old_binlog.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE `od%d t``able` (`key %s` int PRIMARY KEY, {columns})")
        source = source_of(old_binlog)
        reader, (schema,) = engine.started(source, "od%d t`able")
        cursor.execute(f"INSERT INTO `od%d t``able` VALUES (1{', 2' * len(names)}), (2{', 3' * len(names)})")
    changes = read_to(reader, engine.end(source)).changes()
    reader.close()
    assert schema.names() == ("key %s", *names)
    chunks = engine.dump(source, schema, 1)
    assert [chunk.row_count for chunk in chunks] == [1, 1, 0]
    assert chunks[0].rows.to_pylist() == [{"key %s": 1} | dict.fromkeys(names, "b'\"")]
    for chunk, change in zip(chunks, changes, strict=False):
        assert change.after is not None
        assert_same(rows_to_table(schema, [change.after]), chunk.rows)


def test_generated_and_invisible_columns(engine: BinlogEngine, old_binlog: Database) -> None:
    """A virtual column may stand among the others, and its rows may be NULL while others aren't. MariaDB's log of
    newer versions has no generated column in updates."""
    old_binlog.execute(
        "CREATE TABLE t (v1 varchar(20) AS (concat(a, 'x')) VIRTUAL, id int PRIMARY KEY, a varchar(10),"
        " v2 int AS (id + 1) VIRTUAL, s varchar(40) AS (concat(a, 'é')) STORED, hidden int INVISIBLE DEFAULT 7,"
        " v3 json AS (json_array(id)) VIRTUAL, b blob)"
    )
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    stored = engine.kind == "mysql" or old_binlog.query("SELECT VERSION()")[0][0].startswith("10.")
    assert schema.names() == ("id", "a", *["s"][:stored], "hidden", "b")
    unread = [
        one.fatal for one in engine.catalog(source).preflight(["t"]) if "is not captured" in one.problem
    ]
    assert unread == [False] * (3 if stored else 4)
    old_binlog.execute(
        "INSERT INTO t (id, a, b) VALUES (1, 'q', x'00'), (2, NULL, NULL)",
        "INSERT INTO t (id, a, hidden) VALUES (3, '', NULL)",
        "UPDATE t SET a = 'ü', hidden = 8 WHERE id = 1",
        "DELETE FROM t WHERE id = 3",
    )
    changes = read_to(reader, engine.end(source)).changes()
    reader.close()
    logged = fold(changes, schema.key_indexes())
    (chunk,) = engine.dump(source, schema, 10)
    assert_same(rows_to_table(schema, [logged[key] for key in (("1",), ("2",))]), chunk.rows)
    computed = ({"s": "üé"}, {"s": None}) if stored else ({}, {})
    assert chunk.rows.to_pylist() == [
        {"id": 1, "a": "ü", "hidden": 8, "b": b"\0"} | computed[0],
        {"id": 2, "a": None, "hidden": 7, "b": None} | computed[1],
    ]


def test_a_column_added_in_front(engine: BinlogEngine, old_binlog: Database) -> None:
    """Both engines may do it without rewriting rows; the log has the table's order, the dump the schema's."""
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, a int)", "INSERT INTO t VALUES (1, 1)")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    old_binlog.execute(
        "ALTER TABLE t ADD f varchar(5) DEFAULT 'new' FIRST", "INSERT INTO t VALUES ('é', 2, 3)"
    )
    old_binlog.execute("UPDATE t SET a = 5 WHERE id = 1")
    read = read_to(reader, engine.end(source))
    reader.close()
    (now,) = engine.catalog(source).tables(["t"])
    (chunk,) = engine.dump(source, now, 10)
    assert chunk.rows.to_pylist() == [{"f": "new", "id": 1, "a": 5}, {"f": "é", "id": 2, "a": 3}]
    names = read.schemas()[-1].names() if read.schemas() else schema.names()
    rows = [dict(zip(names, change.after or (), strict=True)) for change in read.changes()]
    assert rows == [{"f": "é", "id": "2", "a": "3"}, {"f": "new", "id": "1", "a": "5"}]
    before = dict(zip(names, read.changes()[1].before or (), strict=True))
    assert before == {"f": "new", "id": "1", "a": "1"}


def test_columns_dropped_before_leave_no_trace(engine: BinlogEngine, old_binlog: Database) -> None:
    """Dropped in place: rows written before still have them on the disk."""
    old_binlog.execute(
        "CREATE TABLE t (id int PRIMARY KEY, a varchar(9), gone int, b int)",
        "INSERT INTO t VALUES (1, 'a', 7, 1), (2, NULL, NULL, NULL)",
        "ALTER TABLE t DROP COLUMN gone, ALGORITHM=INSTANT",
        "ALTER TABLE t ADD COLUMN late int DEFAULT 5, ALGORITHM=INSTANT",
    )
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    assert schema.names() == ("id", "a", "b", "late")
    old_binlog.execute("INSERT INTO t VALUES (3, 'c', 3, 6)", "UPDATE t SET b = 9 WHERE id < 3")
    read = read_to(reader, engine.end(source))
    reader.close()
    assert [(change.before, change.after) for change in read.changes()] == [
        (None, ("3", "c", "3", "6")),
        (("1", "a", "1", "5"), ("1", "a", "9", "5")),
        (("2", None, None, "5"), ("2", None, "9", "5")),
    ]
    (chunk,) = engine.dump(source, schema, 10)
    assert [tuple(row.values()) for row in chunk.rows.to_pylist()] == [
        (1, "a", 9, 5),
        (2, None, 9, 5),
        (3, "c", 3, 6),
    ]
