"""Every supported type with extreme values: the log path and the SELECT path give the same text, value by value."""

from __future__ import annotations

from typing import Any

import pytest

import migrator.binlog.chunk_reader as chunk_reader_module
from migrator.columnar.text import rows_to_table
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import fold, read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

MOMENTS = ["'2024-02-29 12:34:56.123456'", "'0000-00-00 00:00:00'"]
COLUMNS: dict[str, tuple[str, list[str]]] = {
    "tiny": ("tinyint", ["-128", "127", "0"]),
    "tiny_u": ("tinyint unsigned", ["0", "255"]),
    "small": ("smallint", ["-32768", "32767"]),
    "small_u": ("smallint unsigned", ["65535"]),
    "medium": ("mediumint", ["-8388608", "8388607", "-1"]),
    "medium_u": ("mediumint unsigned", ["16777215"]),
    "plain": ("int", ["-2147483648", "2147483647"]),
    "years": ("year", ["1901", "2155", "0", "1970"]),
    "big": ("bigint", ["-9223372036854775808", "9223372036854775807", "9007199254740993"]),
    "big_u": ("bigint unsigned", ["18446744073709551615"]),
    "plain_u": ("int unsigned", ["4294967295"]),
    "filled": ("int(5) zerofill", ["5", "123456"]),
    "filled_decimal": ("decimal(8,2) zerofill", ["1.5"]),
    "filled_float": ("float zerofill", ["2.5"]),
    "widest": (
        "decimal(65,30)",
        [
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            f"0.{'0' * 29}1",
            "-0.5",
            "0",
        ],
    ),
    "money": ("decimal(12,2)", ["-0.01", "9999999999.99", "-9999999999.99", "100"]),
    "whole38": ("decimal(38,0)", ["-" + "9" * 38, "1"]),
    "fraction": ("decimal(9,9)", ["0.000000001", "-0.999999999"]),
    "whole5": ("decimal(5,0)", ["-99999", "0"]),
    "even": ("decimal(18,9)", ["123456789.000000001", "-1.1"]),
    "single": ("float", ["0.1", "-3.4028235e38", "1.17549435e-38", "16777217", "0"]),
    "single_fixed": ("float(7,2)", ["12345.67"]),
    "exact": ("double", ["0.1", "1.7976931348623157e308", "5e-324", "1e15", "123456789012345678", "-1e-15"]),
    "exact_long": (
        "double",
        ["1234567890123456.7", "1601411422831431.4", "-5704310632670461e1", "1e22", "0.0001"],
    ),
    "exact_fixed": ("double(10,3)", ["1.5", "-1234567.891"]),
    "bit1": ("bit(1)", ["b'1'", "b'0'"]),
    "bit10": ("bit(10)", ["b'1010101010'"]),
    "bit64": ("bit(64)", ["x'ffffffffffffffff'", "x'01'"]),
    "labels": ("enum('a','b,c','','é','it''s')", ["'b,c'", "'é'", "''", "'it''s'"]),
    "labels_latin": ("enum('a','ü€') character set latin1", ["'ü€'"]),
    "flags": ("set('x','y','é')", ["''", "'x,é'", "'x,y,é'"]),
    "char10": ("char(10)", ["'abc'", "'tr  '", "''", "'日本'"]),
    "char_long": ("char(200) character set utf8mb4", ["repeat('€', 200)"]),
    "text_utf8": (
        "varchar(300)",
        ["'a  '", "repeat('😀', 300)", "''", r"'a\0b'", "'e\u0301'", "'\u00e9'", r"'\\ \' \n'"],
    ),
    "latin": ("varchar(50) character set latin1", ["x'8180a0ffe98d8f909d'", "'é'"]),
    "latin2": ("varchar(20) character set latin2", ["x'b1e6'"]),
    "cyrillic": ("varchar(20) character set koi8r", ["x'c1c2a0'"]),
    "ucs2": ("varchar(20) character set ucs2", ["'é日'"]),
    "utf16": ("varchar(20) character set utf16", ["'é😀'"]),
    "utf16le": ("varchar(20) character set utf16le", ["'é😀'"]),
    "utf32": ("varchar(20) character set utf32", ["'é😀'"]),
    "utf8mb3": ("varchar(20) character set utf8mb3", ["'é日'"]),
    "ascii_text": ("varchar(20) character set ascii", ["'abc'"]),
    "binary6": ("binary(6)", ["x'610000'", "x'000000000000'"]),
    "binary255": ("binary(255)", ["x'01'"]),
    "varbinary300": ("varbinary(300)", ["x'0061ff00'", "''"]),
    "tinyblobs": ("tinyblob", ["''", "x'00ff'"]),
    "blobs": ("blob", ["repeat(x'00ff', 1000)"]),
    "mediumblobs": ("mediumblob", ["repeat('x', 70000)"]),
    "longblobs": ("longblob", ["x'02'"]),
    "tinytexts": ("tinytext", ["''", "'é'"]),
    "texts": ("text", ["repeat('é', 1000)"]),
    "longtexts": ("longtext", ["repeat('z', 70000)"]),
    "documents": ("json", ["""'{"b": [1, null, "é"], "a": {}}'"""]),
    "days": (
        "date",
        [f"'{day}'" for day in ("0000-00-00", "2024-02-29", "2024-02-31", "2024-00-00", "9999-12-31")],
    ),
    "moments": (
        "datetime",
        ["'0000-00-00 00:00:00'", "'2024-02-31 23:59:59'", "'2024-00-10 01:02:03'", "'9999-12-31 23:59:59'"],
    ),
    **{f"moments{n}": (f"datetime({n})", MOMENTS) for n in range(1, 7)},
    "instants": (
        "timestamp null",
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    ),
    **{f"instants{n}": (f"timestamp({n}) null", [*MOMENTS, "'1970-01-01 00:00:01.1'"]) for n in range(1, 7)},
    "clock": ("time", ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    **{
        f"clock{n}": (
            f"time({n})",
            ["'-838:59:58.999999'", "'-00:00:00.5'", "'12:34:56.000001'", "'838:59:59.999999'"],
        )
        for n in range(1, 7)
    },
    "shape": ("geometry", ["st_geomfromtext('POINT(1 2)', 4326)", "st_geomfromtext('LINESTRING(0 0,1 1)')"]),
    "place": ("point", ["point(1, 2)"]),
    "stored": ("int as (tiny + 1) stored", []),
    "virtual": ("int as (tiny + 2) virtual", []),
    "hidden": ("int invisible default 7", ["9"]),
}
OWN_COLUMNS: dict[str, dict[str, tuple[str, list[str]]]] = {
    "mysql": {
        "moods": ("vector(3)", ["to_vector('[1,-2.5,3e38]')"]),
        "shapes": (
            "geomcollection",
            ["st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')"],
        ),
    },
    "mariadb": {},
}


def _fill(database: Database) -> int:
    """One row of NULLs, then rows that go round through every column's values. Returns the number of rows."""
    columns = COLUMNS | OWN_COLUMNS[database.kind]
    declared = ", ".join(f"`{name}` {kind}" for name, (kind, _) in columns.items())
    most = max(len(values) for _, values in columns.values())
    written = {name: values for name, (_, values) in columns.items() if values}
    with database.connect(sql_mode="ALLOW_INVALID_DATES") as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute(f"CREATE TABLE t (id int PRIMARY KEY AUTO_INCREMENT, {declared})")
        cursor.execute("INSERT INTO t () VALUES ()")
        for row in range(most):
            values = ", ".join(options[row % len(options)] for options in written.values())
            names = ", ".join(f"`{name}`" for name in written)
            cursor.execute(f"INSERT IGNORE INTO t ({names}) VALUES ({values})")
        cursor.execute(
            "INSERT IGNORE INTO t (labels, flags, exact) VALUES (99, 0, 0)"
        )  # an invalid enum is ''
        cursor.execute("UPDATE t SET exact = -exact, single = -single")  # both images, and minus zero
    return most + 2


def test_log_and_select_print_every_value_alike(
    engine: BinlogEngine, old_binlog: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_binlog.execute("CREATE TABLE t (id int PRIMARY KEY)", "DROP TABLE t")
    source = source_of(old_binlog)
    begin = engine.end(source)
    rows = _fill(old_binlog)
    reader, (schema,) = engine.started(source, "t")
    reader.start(begin)
    delivered = read_to(reader, engine.end(source))
    reader.close()
    logged = fold(delivered.changes(), schema.key_indexes())

    seen: list[Any] = []
    original = chunk_reader_module.columns_to_table
    monkeypatch.setattr(
        chunk_reader_module,
        "columns_to_table",
        lambda table, columns: (seen.append(columns), original(table, columns))[1],
    )
    (chunk,) = engine.dump(source, schema, 1000)

    selected = list(zip(*seen[0], strict=True))
    assert len(selected) == len(logged) == chunk.row_count == rows
    for row in selected:
        for column, value, other in zip(schema.columns, row, logged[(row[0].decode(),)], strict=True):
            text = value if value is None or column.type == "binary" else value.decode()
            assert (column.name, text) == (column.name, other)
    assert rows_to_table(
        schema, [logged[key] for key in sorted(logged, key=lambda key: int(str(key[0])))]
    ).equals(chunk.rows)


def test_virtual_columns_are_left_out_and_the_others_stay(engine: BinlogEngine, old_binlog: Database) -> None:
    _fill(old_binlog)
    (schema,) = engine.catalog(source_of(old_binlog)).tables(["t"])
    assert schema.names() == (
        "id",
        *(name for name in COLUMNS | OWN_COLUMNS[engine.kind] if name != "virtual"),
    )
    types = {column.name: column.type for column in schema.columns}
    assert (types["big_u"], types["medium_u"], types["plain_u"], types["widest"]) == (
        "decimal(20,0)",
        "int32",
        "int64",
        "string",
    )
    assert types["money"] == "decimal(12,2)"


def test_a_value_of_sixteen_megabytes_comes_whole_on_both_paths(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    old_binlog.execute("CREATE TABLE wide (id int PRIMARY KEY, b longblob)")
    old_binlog.execute("SET GLOBAL max_allowed_packet = 67108864")
    source = source_of(old_binlog)
    reader, (schema,) = engine.started(source, "wide")
    size = 17 * 1024 * 1024
    old_binlog.execute(f"INSERT INTO wide VALUES (1, repeat('q', {size})), (2, 'small')")
    delivered = read_to(reader, engine.end(source))
    reader.close()
    logged = fold(delivered.changes(), schema.key_indexes())
    assert (logged[("1",)][1], logged[("2",)][1]) == (b"q" * size, b"small")
    (chunk,) = engine.dump(source, schema, 10)
    assert chunk.rows["b"].to_pylist() == [b"q" * size, b"small"]
