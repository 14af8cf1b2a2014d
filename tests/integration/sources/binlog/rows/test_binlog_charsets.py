"""Every character of every character set of MySQL and MariaDB, by the log as by SELECT."""

from __future__ import annotations

from typing import Any

import pytest

from migrator.adapters.sources.binlog.rows.multibyte import CHARSETS
from migrator.errors import SourceError
from migrator.model.event import Operation
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.integration.exact import assert_same
from tests.integration.sources.binlog.rows.test_binlog_values import images
from tests.servers import Database

pytestmark = pytest.mark.integration

DIGITS = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(16))
NUMBERS = f"WITH d AS ({DIGITS}) SELECT a.n * 4096 + b.n * 256 + c.n * 16 + e.n AS n FROM d a, d b, d c, d e"
CODES = {
    "ujis": "8F0000",
    "eucjpms": "8F0000",
    "gb18030": "81300000",
    "utf8mb3": "E00000",
    "utf8mb4": "F0900000",
}
"""Where the codes of more than two bytes begin; those that differ in the last two bytes are tried."""
SURROGATE = "(HEX(code) NOT REGEXP '^(0000)?D[89A-F]..$' OR '{0}' NOT IN ('ucs2', 'utf32'))"


def every_character(charset: str, cursor: Any) -> str:
    """A text of all characters whose code is a number below 65536, and of some with longer codes, as SQL."""
    # MySQL's eucjpms takes single bytes that it can't convert, ucs2 and utf32 take surrogates
    single = "n < 128" if charset == "eucjpms" else "n < 256"
    tries = [
        ("n", f"(LENGTH(code) = 1 AND {single} OR LENGTH(code) IN (2, 4)) AND {SURROGATE.format(charset)}")
    ]
    if charset in CODES:
        tries.append((f"0x{CODES[charset]} + n", f"LENGTH(code) = {len(CODES[charset]) // 2}"))
    codes = ""
    for number, wanted in tries:
        cursor.execute(
            "SELECT HEX(GROUP_CONCAT(code SEPARATOR '')) FROM"
            f" (SELECT n, CHAR({number} USING {charset}) AS code FROM numbers) codes"
            f" WHERE ({wanted}) AND CHAR_LENGTH(code) = 1"
        )
        ((found,),) = cursor.fetchall()
        codes += found
    return f"_{charset} x'{codes}'"


def test_every_character_of_every_set(engine: BinlogEngine, old_binlog: Database) -> None:
    sets = old_binlog.query(
        "SELECT CHARACTER_SET_NAME, MAXLEN FROM information_schema.CHARACTER_SETS"
        " WHERE CHARACTER_SET_NAME <> 'binary' ORDER BY 1"
    )
    multi = {name for name, most in sets if most > 1 and not name.startswith(("utf", "ucs"))}
    assert multi <= set(CHARSETS)
    columns = ", ".join(f"{name} longtext CHARACTER SET {name}" for name, _ in sets)
    old_binlog.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    with old_binlog.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET group_concat_max_len = 4000000, sql_mode = ''")
        cursor.execute(f"CREATE TEMPORARY TABLE numbers AS {NUMBERS}")
        texts = [
            every_character(name, cursor) if most > 1 else f"_{name} x'{bytes(range(256)).hex()}'"
            for name, most in sets
        ]
        cursor.execute(f"INSERT INTO t VALUES (1, {', '.join(texts)})")
    read = read_to(reader, engine.end(source))
    reader.close()
    (chunk,) = engine.dump(source, schema, 10)
    assert_same(images(read, Operation.INSERT, "after"), chunk.rows)
    lengths = {name: len(chunk.rows[name][0].as_py()) for name, _ in sets}
    assert all(length > (7000 if name in multi else 120) for name, length in lengths.items()), lengths


@pytest.mark.parametrize("text", ["_ucs2 x'0041D83DDE00'", "_ucs2 x'D800'"])
def test_surrogates_stop_by_name_on_both_paths(engine: BinlogEngine, old_binlog: Database, text: str) -> None:
    """The server stores them in ucs2, and prints them as bytes that are no UTF-8."""
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(9) CHARACTER SET ucs2)")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    old_binlog.execute(f"INSERT INTO t VALUES (1, {text})")
    with pytest.raises(SourceError, match=r"t\.v can't be represented"):
        engine.dump(source, schema, 10)
    with pytest.raises(SourceError, match=r"can't be decoded.*(surrogate|unexpected end)"):
        images(read_to(reader, engine.end(source)), Operation.INSERT, "after")
    reader.close()


def test_a_set_that_the_database_began_to_use_is_named_and_read_after_a_start(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    begin = engine.end(source)
    old_binlog.execute("ALTER TABLE t ADD v varchar(9) CHARACTER SET gbk", "INSERT INTO t VALUES (1, '中')")
    with pytest.raises(SourceError, match=r"character set gbk.*start the migration again"):
        read_to(reader, engine.end(source))
    reader = engine.log_reader(source, [schema])
    reader.start(begin)
    assert [change.after for change in read_to(reader, engine.end(source)).changes()] == [("1", "中")]
    reader.close()
