"""Binary JSON of the log against the text of SELECT: documents of every kind and size, on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.rows.json_text import json_text
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from tests.integration.binlog_engine import MYSQL
from tests.integration.binlog_reading import fold, read_to, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.sampled_from([0, -1, 32767, 32768, 65535, 65536, -32769, 2**31, 2**32, -(2**31) - 1]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)
KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(KEYS, inner, max_size=6)),
    max_leaves=25,
)
SQL_VALUES = [
    "CAST(TIMESTAMP'2024-02-29 12:34:56.5' AS JSON)",
    "CAST(DATE'9999-12-31' AS JSON)",
    "CAST(TIME'-838:59:58.25' AS JSON)",
    "CAST(TIME'00:00:00.000001' AS JSON)",
    "CAST(1.50 AS JSON)",
    f"CAST(-{'9' * 35}.{'1' * 30} AS JSON)",
    "CAST(x'00ff' AS JSON)",
    "CAST(REPEAT('x', 200) AS BINARY)",
    "CAST(CAST(REPEAT('x', 200) AS BINARY) AS JSON)",
    "CAST(b'101' AS JSON)",
    "CAST(CAST(2024 AS YEAR) AS JSON)",
    "CAST(POINT(1, 2) AS JSON)",
    "JSON_ARRAY(1.0, -0e0, 1e15, 1e-7, 1e300, 5e-324, 123456789012345678)",
    "JSON_OBJECT('', NULL, 'a', TRUE, 'ab', FALSE, 'b', 1, 'aa', 2)",
    r"JSON_QUOTE('a\0\b\t\n\r\Z\"\\/')",
    "'[]'",
    "'{}'",
]


@pytest.fixture(scope="module")
def place(mysql: Any) -> Iterator[tuple[Database, BinlogReader, Any]]:
    database = mysql.create("json_values")
    database.execute("CREATE TABLE doc (id int PRIMARY KEY AUTO_INCREMENT, j json)")
    reader, _ = MYSQL.started(source_of(database), "doc")
    connection = database.connect()
    yield database, reader, connection
    reader.close()
    connection.close()
    mysql.drop(database)


def _both(place: tuple[Database, BinlogReader, Any], expressions: list[str], values: list[str]) -> None:
    database, reader, connection = place
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM doc")
        for expression, value in zip(expressions, values, strict=True):
            cursor.execute(f"INSERT INTO doc (j) VALUES ({expression})", (value,) if value else None)
        cursor.execute("SELECT id, j FROM doc")
        selected = {str(key): text for key, text in cursor.fetchall()}
    inserted = [c for c in read_to(reader, MysqlCatalog(source_of(database)).position()).changes() if c.after]
    assert {str(key): row[1] for (key,), row in fold(inserted, (0,)).items()} == selected


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(documents=st.lists(DOCUMENTS, min_size=1, max_size=8))
def test_any_document(place: tuple[Database, BinlogReader, Any], documents: list[Any]) -> None:
    texts = [json.dumps(document, ensure_ascii=False) for document in documents]
    _both(place, ["%s"] * len(texts), texts)


def test_values_that_json_itself_lacks(place: tuple[Database, BinlogReader, Any]) -> None:
    usable = [each for each in SQL_VALUES if not each.startswith("CAST(REPEAT")]
    _both(place, usable, [""] * len(usable))


def test_large_documents_use_the_long_offsets(place: tuple[Database, BinlogReader, Any]) -> None:
    wide = {f"k{number}": [number, -70_000, 3_000_000_000, "é" * (number % 50)] for number in range(3000)}
    deep: Any = "x" * 70_000
    for number in range(40):
        deep = [deep, number] if number % 2 else {"d": deep, "n": 70_000 + number}
    _both(place, ["%s"] * 3, [json.dumps(wide), json.dumps(deep), json.dumps(["y" * 200_000, 1])])


def test_an_empty_document_is_null_and_a_damaged_one_is_refused() -> None:
    assert json_text(b"") == "null"
    for damaged in (b"\x0c\x05ab", b"\x00\x01", b"\x63\x00", b"\x04\x09"):
        with pytest.raises((ValueError, LookupError)):
            json_text(damaged)
