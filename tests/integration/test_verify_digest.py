"""Digests of different rows differ, on real servers: by value, column and row, whatever a type's own hash folds."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from migrator.model.table import Column
from tests.servers import Database
from verify import mysql_chunks, postgres_chunks
from verify.chunk_reader import Digest
from verify.digest import Pair, Pushed, pushed
from verify.snapshot import TargetColumnText

pytestmark = pytest.mark.integration

POSTGRES = {
    "integer": ["NULL", "0", "1", "-1", "2147483647", "-2147483648"],
    # 2^32 - 1 is what -1 is to one who forgets the sign; the halves of 2^32 + 1 cancel each other out.
    "bigint": ["NULL", "0", "1", "-1", "4294967295", "4294967296", "4294967297", "-9223372036854775808"],
    "numeric": ["NULL", "0", "5", "-5", "50000", "0.0005", "'NaN'", "'Infinity'", "'-Infinity'", "1e-20"],
    "numeric(12,2)": ["NULL", "0", "1.5", "-1.5", "10000", "1", "'NaN'"],
    "text": ["NULL", "''", "' '", "'a'", "'A'", "'a '", "'0'", "'ä'", "'a\u0308'"],
    "character(3)": ["NULL", "''", "'a'", "'ab'"],
    "bytea": ["NULL", r"'\x'", r"'\x00'", r"'\x0000'"],
    "boolean": ["NULL", "true", "false"],
    "real": ["NULL", "0", "'-0'", "'NaN'", "1", "-1", "'Infinity'"],
    "double precision": ["NULL", "0", "'-0'", "'NaN'", "1", "-1", "'-Infinity'"],
    "date": ["NULL", "'2000-01-01'", "'1970-01-01'", "'infinity'", "'-infinity'", "'0044-03-15 BC'"],
    "timestamp without time zone": [
        *("NULL", "'2000-01-01'", "'1999-12-31 23:59:59.999999'", "'infinity'", "'-infinity'"),
        # 4294.967295 s behind the epoch is what 1 us before it is, if halves are added up
        "'2000-01-01 01:11:34.967295'",
    ],
    "timestamp with time zone": ["NULL", "'2000-01-01 00:00Z'", "'2000-01-01 00:00+01'", "'infinity'"],
    "uuid": ["NULL", "gen_random_uuid()", "'00000000-0000-0000-0000-000000000000'"],
    "interval": ["NULL", "'1 day'", "'24:00'", "'30 days'", "'1 month'"],
    "integer[]": ["NULL", "'{}'", "'{1}'", "'{1,2}'", "'{{1,2}}'", "'[0:1]={1,2}'"],
}
BINLOG = {
    "bigint": ["NULL", "0", "1", "-1", "4294967295", "4294967296"],
    "bigint unsigned": ["NULL", "0", "9223372036854775807", "18446744073709551615"],
    "decimal(30,10)": ["NULL", "0", "5", "-5", "50", "0.5", "0.0000000001"],
    "varchar(20)": ["NULL", "''", "' '", "'a'", "'A'", "'-'", "','", "'1,a'", "'0'"],
    "varbinary(20)": ["NULL", "''", "X'00'", "X'2d'", "X'30'"],
}
ONLY_ALIKE = {
    "double": ["NULL", "0", "1", "1e-300", "0.1"],
    "datetime(6)": ["NULL", "'2000-01-01'", "'1999-12-31 23:59:59.999999'"],
    "json": ["NULL", "'null'", "'{}'", "'[1, 2]'", "'\",\"'"],
    "set('a','b')": ["NULL", "''", "'a'", "'a,b'"],
}
BESIDE_MYSQL = {
    "bigint": ("bigint", BINLOG["bigint"]),
    "numeric(30,10)": ("decimal(30,10)", BINLOG["decimal(30,10)"]),
    "text": ("longtext", BINLOG["varchar(20)"]),
    "bytea": ("longblob", ["NULL", r"'\x'", r"'\x00'", r"'\x2d'"]),
}
Row = tuple[int, str, str]


def contents(values: list[str], key: bool) -> list[list[Row]]:
    """Different contents of a table ``(k, a, b)``; without a key, of ``(a, b)``."""
    made: list[list[Row]] = [[(0, value, value)] for value in values]
    made += [[(0, *pair)] for pair in permutations(values, 2)]
    for one, other in combinations(values, 2):
        made.append([(0, one, one), (1, other, other)])
        made.append([(0, one, other), (1, other, one)])
        if key:
            made.append([(0, other, other), (1, one, one)])
            made.append([(0, other, one), (1, one, other)])
    return made


def digests(database: Database, native: str, numbers: str, wanted: list[list[Row]]) -> set[Digest]:
    rows = [f"({n}, {k}, {a}, {b})" for n, content in enumerate(wanted) for k, a, b in content]
    of = (postgres_chunks if database.kind == "postgresql" else mysql_chunks).digest_of
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (content int, k int, a {native}, b {native})")
        cursor.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        cursor.execute(f"SELECT {numbers} FROM t GROUP BY content")
        found = [of(row) for row in cursor.fetchall()]
        cursor.execute("DROP TABLE t")
    assert len(found) == len(wanted)
    assert all(each.agrees(each) for each in found), "every row has a hash"
    return set(found)


def numbers(kinds: tuple[str, str], columns: list[tuple[str, str, str]]) -> Pushed:
    dialects = [postgres_chunks.DIALECT if kind == "postgresql" else mysql_chunks.DIALECT for kind in kinds]
    pairs = [
        Pair(Column(name, "string", True, old), TargetColumnText(name, new, new, False))
        for name, old, new in columns
    ]
    made = pushed(kinds, (dialects[0], dialects[1]), pairs)
    assert made is not None
    return made


def check(database: Database, native: str, values: list[str], key: bool) -> None:
    whole = "integer" if database.kind == "postgresql" else "int"
    columns = [("k", whole, whole)] * key + [("a", native, native), ("b", native, native)]
    wanted = contents(values, key)
    made = numbers((database.kind, database.kind), columns)
    assert made.source == made.target
    assert len(digests(database, native, made.source, wanted)) == len(wanted)


@pytest.mark.parametrize("key", [True, False], ids=["keyed", "keyless"])
@pytest.mark.parametrize("native", POSTGRES)
def test_between_postgresqls(old_pg: Database, native: str, key: bool) -> None:
    check(old_pg, native, POSTGRES[native], key)


@pytest.mark.parametrize("native", BINLOG | ONLY_ALIKE)
def test_between_mysqls(old_binlog: Database, native: str) -> None:
    check(old_binlog, native, (BINLOG | ONLY_ALIKE)[native], True)


@pytest.mark.parametrize("native", BESIDE_MYSQL)
def test_on_postgresql_beside_mysql(old_pg: Database, native: str) -> None:
    old, values = BESIDE_MYSQL[native]
    made = numbers(("mysql", "postgresql"), [("a", old, native), ("b", old, native)])
    wanted = contents(values, key=False)
    assert len(digests(old_pg, native, made.target, wanted)) == len(wanted)


@pytest.mark.parametrize(
    ("native", "hash_"),
    [("bigint", "hashint8extended({}, 1)"), ("numeric", "hash_numeric_extended({}, 1)")],
)
def test_what_the_types_own_hashes_fold_is_seen_here(old_pg: Database, native: str, hash_: str) -> None:
    """The control: a digest of PostgreSQL's own hashes misses a sign."""
    wanted = contents(POSTGRES[native], key=False)
    cells = "31 * coalesce({}, 0) + coalesce({}, 0)".format(hash_.format("a"), hash_.format("b"))
    lenient = f"count(*), count(*), sum(hashtextextended(({cells}::numeric)::text, 1))::text"
    lenient = lenient.replace("31 *", "31::numeric *")
    assert len(digests(old_pg, native, lenient, wanted)) < len(wanted)
