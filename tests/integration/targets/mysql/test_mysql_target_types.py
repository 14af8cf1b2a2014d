"""Every type of a MySQL or MariaDB target: extreme values come out as they went in, or are refused by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration.target_bench_mysql import Bench, bench
from tests.servers import Database

pytestmark = pytest.mark.integration

US = pa.timestamp("us")
UTC_US = pa.timestamp("us", "UTC")
NASTY = "tab\t newline\n return\r back\\slash \\N nul\0 quote' \" percent%s é 漢 🙂"

# declared type, Arrow type, values, and what the server shows of them with {0} for the column
EXACT: list[tuple[str, pa.DataType, list[Any], str, list[Any]]] = [
    ("tinyint(1)", pa.bool_(), [True, False], "{0}", [1, 0]),
    ("tinyint", pa.int8(), [-128, 127], "{0}", [-128, 127]),
    ("smallint unsigned", pa.int32(), [0, 65535], "{0}", [0, 65535]),
    ("mediumint", pa.int32(), [-8388608, 8388607], "{0}", [-8388608, 8388607]),
    ("int unsigned", pa.int64(), [0, 4294967295], "{0}", [0, 4294967295]),
    ("bigint", pa.int64(), [-(2**63), 2**63 - 1], "{0}", [-(2**63), 2**63 - 1]),
    ("bigint unsigned", pa.decimal128(20, 0), [Decimal(2**64 - 1)], "{0}", [2**64 - 1]),
    ("decimal(38,10)", pa.decimal128(38, 10), [Decimal("0.0000000001"), Decimal("-1E+27")], "CAST({0} AS CHAR)",
     ["0.0000000001", "-1000000000000000000000000000.0000000000"]),
    ("decimal(65,30)", pa.string(), ["12345678901234567890123456789012345.123456789012345678901234567891"],
     "CAST({0} AS CHAR)", ["12345678901234567890123456789012345.123456789012345678901234567891"]),
    ("float", pa.float32(), [0.1, 3.4028234663852886e38, 1e-40], "CAST({0} + 0e0 AS CHAR)",
     ["0.10000000149011612", "3.4028234663852886e38", "9.99994610111476e-41"]),
    ("double", pa.float64(), [0.1, 1.7976931348623157e308, 5e-320], "CAST({0} AS CHAR)",
     ["0.1", "1.7976931348623157e308", "5e-320"]),
    ("date", pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], "CAST({0} AS CHAR)", ["0001-01-01", "9999-12-31"]),
    ("datetime(6)", US, [datetime(1000, 1, 1, 0, 0, 0, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)],
     "CAST({0} AS CHAR)", ["1000-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999"]),
    ("datetime", US, [datetime(2024, 2, 29, 1, 2, 3)], "CAST({0} AS CHAR)", ["2024-02-29 01:02:03"]),
    ("timestamp(3) NULL", UTC_US, [datetime(2038, 1, 19, 3, 14, 7, 999000, UTC)], "UNIX_TIMESTAMP({0})",
     [Decimal("2147483647.999")]),
    ("time(6)", pa.string(), ["-838:59:59.000000", "00:00:00.000001"], "CAST({0} AS CHAR)",
     ["-838:59:59.000000", "00:00:00.000001"]),
    ("year", pa.int32(), [0, 1901, 2155], "CAST({0} AS CHAR)", ["0000", "1901", "2155"]),
    ("varchar(200)", pa.string(), [NASTY, "", "NULL"], "{0}", [NASTY, "", "NULL"]),
    ("longtext", pa.string(), [NASTY * 3], "{0}", [NASTY * 3]),
    ("varchar(20) CHARACTER SET latin1", pa.string(), ["größe €"], "HEX({0})", ["6772F6DF652080"]),
    ("varbinary(300)", pa.binary(), [bytes(range(256)), b""], "{0}", [bytes(range(256)), b""]),
    ("binary(3)", pa.binary(), [b"\x00\\\n"], "{0}", [b"\x00\\\n"]),
    ("longblob", pa.binary(), [b"\xff\x00" * 1000], "{0}", [b"\xff\x00" * 1000]),
    ("bit(1)", pa.bool_(), [True, False], "{0} + 0", [1, 0]),
    ("bit(64)", pa.binary(), [b"\xff" * 8, b"\x00" * 8], "{0} + 0", [2**64 - 1, 0]),
    ("enum('a','b','2','it''s')", pa.string(), ["a", "2", "it's"], "{0}", ["a", "2", "it's"]),
    ("set('x','y','z')", pa.string(), ["x,z", "", "y"], "{0}", ["x,z", "", "y"]),
    ("json", pa.string(), ['{"a": [1, null, "\\u0001\\t\\\\"]}'], "JSON_EXTRACT({0}, '$.a[0]')", ["1"]),
]  # fmt: skip

# declared type, Arrow type, a value that would be changed, a word of the refusal
REFUSED: list[tuple[str, pa.DataType, Any, str]] = [
    ("tinyint", pa.int16(), 128, "Out of range"),
    ("int unsigned", pa.int64(), -1, "Out of range"),
    ("decimal(5,2)", pa.decimal128(6, 3), Decimal("1.005"), "without loss"),
    ("decimal(65,30)", pa.string(), "0.1234567890123456789012345678901", "truncated"),
    ("float", pa.float32(), float("nan"), "NaN"),
    ("float(5,2)", pa.float32(), 1.25, "own number of digits"),
    ("date", pa.date32(), date(1, 1, 1).toordinal() - 719163 - 1, "0001-01-01"),
    ("datetime(3)", US, datetime(2024, 1, 1, 0, 0, 0, 1), "rounded"),
    (
        "timestamp(6) NULL",
        UTC_US,
        datetime(2106, 2, 7, 6, 28, 16, tzinfo=UTC),
        "Incorrect datetime|Out of range",
    ),
    ("time(3)", pa.string(), "00:00:00.0001", "rounded"),
    ("time", pa.string(), "12", "HH:MM:SS"),
    ("year", pa.int32(), 70, "1901"),
    ("varchar(3)", pa.string(), "four", "too long|truncated"),
    ("varchar(3)", pa.string(), "two   ", "truncated"),
    ("varchar(9) CHARACTER SET latin1", pa.string(), "漢", "Incorrect string"),
    ("binary(4)", pa.binary(), b"abc", "zeros"),
    ("bit(4)", pa.binary(), b"\x10", "too long|truncated|Out of range"),
    ("enum('a','b')", pa.string(), "2", "none of the column's members"),
    ("enum('a','b')", pa.string(), "A", "none of the column's members"),
    ("set('x','y')", pa.string(), "y,x", "order"),
    ("json", pa.string(), "{", "JSON|CONSTRAINT"),
    ("point", pa.binary(), b"\x00", "not written"),
]


@pytest.fixture(params=["new_maria", "new_mysql"])
def new(request: pytest.FixtureRequest) -> Iterator[Database]:
    """An empty database; the server takes LOAD DATA LOCAL meanwhile."""
    database: Database = request.getfixturevalue(request.param)
    ((before,),) = database.query("SELECT @@GLOBAL.local_infile")
    database.execute("SET GLOBAL local_infile = 1")
    yield database
    database.execute(f"SET GLOBAL local_infile = {int(before)}")


def exact_rows(count: int, with_nulls: bool) -> dict[str, pa.ChunkedArray]:
    """A column a type, each value in turn, and the row's number as the key."""
    columns = {"id": pa.chunked_array([pa.array(range(count), pa.int64())])}
    for place, (_, kind, values, _, _) in enumerate(EXACT):
        given = [None if with_nulls and n % 7 == 6 else values[n % len(values)] for n in range(count)]
        columns[f"v{place}"] = pa.chunked_array([pa.array(given, kind)])
    return columns


def create_exact() -> str:
    body = ", ".join(f"v{place} {kind[0]}" for place, kind in enumerate(EXACT))
    return f"CREATE TABLE t (id bigint PRIMARY KEY, {body}) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC"


@pytest.mark.parametrize("local_files", [True, False], ids=["file", "insert"])
def test_every_type_comes_out_as_it_went_in(new: Database, local_files: bool) -> None:
    with bench(new, create_exact(), local_files=local_files) as it:
        it.apply(it.part("t", chunk=pa.table(exact_rows(300, with_nulls=True)), strict=False))
        assert it.target._session is not None
        assert it.target._session.loads_files == local_files
        shown = ", ".join(kind[3].replace("{0}", f"v{place}") for place, kind in enumerate(EXACT))
        rows = new.query(f"SELECT {shown} FROM t ORDER BY id")
    assert len(rows) == 300
    for number, row in enumerate(rows):
        expected = [None if number % 7 == 6 else kind[4][number % len(kind[4])] for kind in EXACT]
        assert [_text(value) for value in row] == [_text(value) for value in expected], number


def _text(value: Any) -> Any:
    return value.decode("latin1") if isinstance(value, bytes) else None if value is None else str(value)


@pytest.mark.parametrize("local_files", [True, False], ids=["file", "insert"])
def test_what_would_be_changed_is_refused_with_column_and_key(new: Database, local_files: bool) -> None:
    body = ", ".join(f"v{place} {kind[0]}" for place, kind in enumerate(REFUSED))
    create = f"CREATE TABLE t (id bigint PRIMARY KEY, {body}) CHARACTER SET utf8mb4"
    with bench(new, create, local_files=local_files) as it:
        for place, (kind, arrow, value, word) in enumerate(REFUSED):
            _refused(it, place, kind, arrow, value, word)
        assert new.query("SELECT * FROM t") == []
        assert it.ledger_segment() == 0


def _refused(it: Bench, place: int, kind: str, arrow: pa.DataType, value: Any, word: str) -> None:
    count = 250  # more than go by INSERT
    values = pa.array([None] * (count - 1) + [value], pa.int32() if isinstance(value, int) else arrow)
    rows = pa.table({"id": pa.array(range(count), pa.int64()), f"v{place}": values.cast(arrow)})
    with pytest.raises(TargetError) as raised:
        it.apply(it.part("t", chunk=rows, strict=False))
    text = str(raised.value)
    assert re.search(word, text), (kind, text)
    assert not raised.value.retryable, (kind, text)
    if "error" in raised.value.cause:  # the server found it
        assert "id=249" in text, (kind, text)
    assert f"v{place}" in text, (kind, text)


JSON_NUMBERS = [
    ("18446744073709551615", ""), ("-9223372036854775808", ""), ("0.1", ""), ("1e22", ""), ("1.0", ""), ("-0.0", ""),
    ("1.7976931348623157e308", ""), ("9007199254740993.0", "9007199254740993.0"),
    ("18446744073709551616", "18446744073709551616"), ("18446744073709552000", ""),
    ("18446744073709551617", "18446744073709551617"), ("0.12345678901234567890", "0.12345678901234567890"),
    ("1e400", "1e400"), ("1e99999999999999999999", "1e99999999999999999999"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "rounded"), JSON_NUMBERS, ids=[one[0] for one in JSON_NUMBERS])
def test_a_number_in_json_that_mysql_would_round_is_refused_by_row(
    new_mysql: Database, number: str, rounded: str
) -> None:
    """MariaDB keeps JSON as text."""
    create = "CREATE TABLE t (id bigint PRIMARY KEY, v json)"
    text = f'{{"a": [{number}, "0.12345678901234567890"]}}'
    rows = pa.table({"id": pa.array([1, 2], pa.int64()), "v": pa.array(["{}", text])})
    with bench(new_mysql, create) as it:
        if not rounded:
            it.apply(it.part("t", after=rows))
            [(kept,)] = new_mysql.query("SELECT CAST(JSON_EXTRACT(v, '$.a[0]') AS CHAR) FROM t WHERE id = 2")
            assert Decimal(kept) == Decimal(number)
            return
        with pytest.raises(TargetError, match="without loss") as raised:
            it.apply(it.part("t", after=rows))
        assert "id=2, column v, value" in raised.value.where
        assert rounded in raised.value.cause
        if "e" not in number:  # the control: the server takes it, and keeps another
            new_mysql.execute(f"INSERT INTO t VALUES (3, '[{number}]')")
            [(kept,)] = new_mysql.query("SELECT CAST(JSON_EXTRACT(v, '$[0]') AS CHAR) FROM t")
            assert Decimal(kept) != Decimal(number)
