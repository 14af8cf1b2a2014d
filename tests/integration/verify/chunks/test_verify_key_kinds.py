"""Tables cut by keys of every kind, in their own server's order: each row is in one chunk, and found by its key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.integration.judged import settings_of
from tests.servers import Database
from verify.readers.chunk_keys import KeyColumn, KeyList, KeyRange, condition, cut, lists_of
from verify.readers.engines import source_reader, target_reader
from verify.readers.ports import Part
from verify.tables.sweeps.grain_buckets import key_texts
from verify.tables.sweeps.table_sweep import source_key, target_key

pytestmark = pytest.mark.integration

LONG = "x" * 90
TEXTS = (
    "''", "'a'", "'A'", "'ä'", "'b'", "'Z'", "' a'", "'a b'", "'z''q'", "'%_'", "'😀'", "'10'", "'9'", f"'{LONG}'",
    "'1e99999999999999999999'", "'NaN'", "'-infinity'", "'1e-99999999999999999999'",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A key's type with values, as SQL. ``exact``: no two of them are one to the server."""

    type: str
    values: Sequence[str]


BACKSLASH = {"postgresql": r"'back\slash'", "mysql": r"'back\\slash'"}
POSTGRES = [
    Kind("bigint", ("-9223372036854775808", "-1", "0", "9223372036854775807", "7")),
    Kind("numeric", ("'NaN'", "-1.5", "1.50001", "1e30", "1e-10", "0", "'Infinity'", "'-Infinity'",
         "1e900", "-1e-200")),
    Kind("numeric(38,6)", ("-99999999999999999999999999999999.999999", "0.000001", "0", "12")),
    Kind("text", (*TEXTS, BACKSLASH["postgresql"])),
    Kind('varchar(99) COLLATE "C"', TEXTS),
    Kind("char(5)", ("'a'", "'ab'", "''", "'Ä'")),
    Kind("date", ("'-infinity'", "'4713-01-01 BC'", "'0001-12-31 BC'", "'0001-01-01'", "'1969-12-31'", "'2000-02-29'",
         "'5874897-12-31'",
         "'infinity'")),
    Kind("timestamp", ("'-infinity'", "'4713-01-01 BC'", "'1969-12-31 23:59:59.999999'",
         "'294246-12-31 23:59:59.999999'", "'infinity'", "'2026-01-01 00:00:00.000001'")),
    Kind("timestamptz", (
        "'-infinity'", "'0044-03-15 BC'", "'1969-12-31 23:59:59.999999+00'", "'2021-03-28 01:30+00'", "'infinity'")),
    Kind("uuid", (
        "'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'")),
    Kind("bytea", (r"'\x'", r"'\x00'", r"'\x00ff'", r"'\xff'", r"'\x61'", "'1e99999999999999999999'::bytea")),
    Kind("boolean", ("true", "false")),
    Kind("inet", ("'10.0.0.1'", "'10.0.0.0/8'", "'::1'")),
    Kind("interval", ("'1 day'", "'-3 mons 2 days 00:00:01.5'", "'0'")),
    Kind("double precision", ("0.1", "-1e300", "5e-324", "'NaN'", "'Infinity'")),
]  # fmt: skip
BINLOG = [
    Kind("bigint unsigned", ("0", "18446744073709551615", "9007199254740993", "9007199254740992")),
    Kind("int", ("-2147483648", "0", "2147483647")),
    Kind("decimal(38,10)", ("-9999999999999999999999999999.0123456789", "0", "0.0000000001", "1.5")),
    Kind("varchar(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", (*TEXTS, BACKSLASH["mysql"])),
    Kind("varchar(99) CHARACTER SET utf8mb4", (
        "'a'", "'b'", "'ä2'", "'Z'", "'z''q'", "'😀'", "'10'", "'9'", BACKSLASH["mysql"])),
    Kind("varchar(99) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", (
        "X'00'", "X'0000'", "X'610062'", "X'6100'", "'a'", "X'00E6BCA2'", "'1e99999999999999999999'")),
    Kind("varchar(50) CHARACTER SET latin1", ("'a'", "'é€'", "'z'", "'ß'")),
    Kind("char(5)", ("'a'", "'ab'", "''", "'9'")),
    Kind("binary(4)", ("X'00000000'", "X'61000000'", "X'ffffffff'", "X'00ff00ff'")),
    Kind("varbinary(9)", ("X''", "X'00'", "X'00ff'", "X'ff'", "X'61'", "'1e9999999'")),
    Kind("date", ("'1000-01-01'", "'1969-12-31'", "'2000-02-29'", "'9999-12-31'")),
    Kind("datetime(6)", ("'1000-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'9999-12-31 23:59:59.999999'")),
    Kind("timestamp(6)", ("'1970-01-01 00:00:01'", "'2021-03-28 01:30:00.000001'", "'2038-01-19 03:14:07'")),
    Kind("year", ("1901", "2000", "2155")),
]  # fmt: skip


def named(kind: Kind) -> str:
    return kind.type.replace(" ", "_")


def make(database: Database, kind: Kind) -> int:
    """A table ``t (n, k)`` with a key of both, ``k`` first, two rows for each value."""
    rows = [f"({n}, {value})" for value in kind.values for n in (1, 2)]
    setting = ["SET time_zone = '+00:00'"] if database.kind != "postgresql" else ["SET TIME ZONE 'UTC'"]
    with database.connect() as connection, connection.cursor() as cursor:
        for statement in (
            *setting,
            f"CREATE TABLE t (n int NOT NULL, k {kind.type} NOT NULL, PRIMARY KEY (k, n))",
            f"INSERT INTO t VALUES {', '.join(rows)}",
        ):
            cursor.execute(statement)
        connection.commit()
    return len(rows)


def raw(rows: pa.Table) -> list[tuple[object, ...]]:
    """Rows without what Python has no days for."""
    numbers = {pa.date32(): pa.int32(), pa.timestamp("us"): pa.int64(), pa.timestamp("us", "UTC"): pa.int64()}
    columns = [column.cast(numbers.get(column.type, column.type)).to_pylist() for column in rows.columns]
    return [tuple(map(str, row)) for row in zip(*columns, strict=True)]


def check_source(database: Database, folder: Path, rows: int) -> None:
    with source_reader(settings_of(database), "m").tables(["t"]) as tables:
        key = source_key(tables, database.kind, "t")
        assert not isinstance(key, str), key
        names, kinds = [name for name, _ in key], [kind for _, kind in key]

        def said(piece: KeyRange) -> str:
            return condition(piece, names, kinds, tables.dialect)

        pieces = list(cut(lambda after: tables.end("t", key, said(KeyRange(after)), 3)))
        found = []
        for number, piece in enumerate(pieces):
            path = folder / f"s{number}.parquet"
            _, count = tables.read([Part("t", said(piece), path)])
            assert count <= 3
            read = pq.read_table(path)
            found += raw(read)
            if not count:
                continue
            keys = list(zip(*(key_texts(read[name], kind) for name, kind in key), strict=True))
            where = condition(KeyList(tuple(keys)), names, kinds, tables.dialect)
            tables.read([Part("t", where, path)])
            assert sorted(raw(pq.read_table(path))) == sorted(raw(read)), (
                "found again by what was read of them"
            )
    assert len(pieces) == rows // 3 + 1
    assert len(found) == rows == len(set(found))


def check_target(database: Database, folder: Path, rows: int) -> None:
    with target_reader(settings_of(database), "m").chunks("t") as chunks:
        key = target_key(chunks, database.kind, ("k", "n"))
        assert not isinstance(key, str), key
        names, kinds = ["k", "n"], [column.kind for column in key]

        def said(piece: KeyRange) -> str:
            return condition(piece, names, kinds, chunks.dialect)

        def end(key: list[KeyColumn], after: KeyRange) -> tuple[str, ...] | None:
            return chunks.end(key, said(after), 3)

        pieces = list(cut(lambda after: end(key, KeyRange(after))))
        found = 0
        for number, piece in enumerate(pieces):
            path = folder / f"t{number}.parquet"
            _, count = chunks.read(said(piece), path)
            assert count <= 3
            found += count
        assert (found, len(pieces)) == (rows, rows // 3 + 1)
        ends = [piece.upto for piece in pieces if piece.upto is not None]
        for (asked,) in [list_.keys for list_ in lists_of(ends, 1)]:
            where = condition(lists_of([asked], 1)[0], names, kinds, chunks.dialect)
            assert chunks.read(where, folder / "one.parquet")[1] == 1, asked


@pytest.mark.parametrize("kind", POSTGRES, ids=named)
def test_postgresql(old_pg: Database, tmp_path: Path, kind: Kind) -> None:
    rows = make(old_pg, kind)
    check_source(old_pg, tmp_path, rows)
    check_target(old_pg, tmp_path, rows)


@pytest.mark.parametrize("kind", BINLOG, ids=named)
def test_mysql_and_mariadb(old_binlog: Database, tmp_path: Path, kind: Kind) -> None:
    rows = make(old_binlog, kind)
    check_source(old_binlog, tmp_path, rows)
    check_target(old_binlog, tmp_path, rows)


@pytest.mark.parametrize("type_", ["enum('b', 'a')", "float", "bit(5)"])
def test_what_a_server_orders_otherwise_than_it_prints_is_not_cut(old_binlog: Database, type_: str) -> None:
    old_binlog.execute(f"CREATE TABLE t (n int NOT NULL, k {type_} NOT NULL, PRIMARY KEY (k, n))")
    with source_reader(settings_of(old_binlog), "m").tables(["t"]) as tables:
        assert "can't be cut by key column k" in str(source_key(tables, old_binlog.kind, "t"))
    with target_reader(settings_of(old_binlog), "m").chunks("t") as chunks:
        assert "can't be cut by key column k" in str(target_key(chunks, old_binlog.kind, ("k", "n")))
