"""Every key is in exactly one piece, wherever a table is cut; SQLite evaluates the conditions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import VerifyError
from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from verify.readers.chunk_keys import (
    BYTES,
    DATE,
    INTEGER,
    NUMBER,
    TEXT,
    Dialect,
    Key,
    KeyColumn,
    KeyList,
    KeyRange,
    condition,
    cut,
    is_written,
    lists_of,
)
from verify.readers.mysql.chunks import DIALECT as MYSQL
from verify.readers.ports import Digest
from verify.readers.postgres.chunks import DIALECT as POSTGRES
from verify.readers.postgres.chunks import quoted
from verify.readers.snapshot import TargetColumnText
from verify.tables.hashed_by_servers.digest import Pair, pushed
from verify.tables.hashed_by_servers.postgres import in_postgres

KEYS = st.sets(st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=30)
SQLITE = Dialect(quoted, lambda _, value: value, rows=True)
NAMES, KINDS = ("a", "b c"), (INTEGER, INTEGER)


def table(keys: set[tuple[int, int]]) -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    made.execute('CREATE TABLE t (a integer, "b c" integer)')
    made.executemany("INSERT INTO t VALUES (?, ?)", sorted(keys))
    return made


def under(made: sqlite3.Connection, where: str) -> list[tuple[int, int]]:
    return made.execute(f"SELECT * FROM t WHERE {where}").fetchall()


def texts(key: tuple[int, int]) -> Key:
    return str(key[0]), str(key[1])


def end_in(
    made: sqlite3.Connection, rows: int, upto: Key | None = None
) -> Callable[[Key | None], Key | None]:
    def end(after: Key | None) -> Key | None:
        where = condition(KeyRange(after, upto), NAMES, KINDS, SQLITE)
        order = f'ORDER BY a, "b c" LIMIT 1 OFFSET {rows - 1}'
        found = made.execute(f"SELECT * FROM t WHERE {where} {order}").fetchone()
        return None if found is None else texts(found)

    return end


def held(made: sqlite3.Connection, pieces: Sequence[KeyRange], dialect: Dialect) -> list[tuple[int, int]]:
    return [key for piece in pieces for key in under(made, condition(piece, NAMES, KINDS, dialect))]


@given(old=KEYS, new=KEYS, rows=st.integers(1, 7), by_rows=st.booleans())
def test_every_key_of_either_side_is_in_exactly_one_piece(
    old: set[tuple[int, int]], new: set[tuple[int, int]], rows: int, by_rows: bool
) -> None:
    source, target = table(old), table(new)
    dialect = replace(SQLITE, rows=by_rows)
    pieces = list(cut(end_in(source, rows)))
    assert held(source, pieces, dialect) == sorted(old)
    assert sorted(held(target, pieces, dialect)) == sorted(new)
    assert all(len(under(source, condition(p, NAMES, KINDS, dialect))) <= rows for p in pieces)
    for piece in pieces:
        finer = list(cut(end_in(source, 2, piece.upto), piece))
        assert (finer[0].after, finer[-1].upto) == (piece.after, piece.upto)
        assert sorted(held(target, finer, dialect)) == sorted(
            under(target, condition(piece, NAMES, KINDS, dialect))
        )


@pytest.mark.parametrize(("wrong", "right"), [("<=", "<"), (">", ">=")])
def test_ends_on_the_wrong_side_are_seen(wrong: str, right: str) -> None:
    """The control: were a range open above, or closed below, keys would be in none or in two."""
    keys = {(0, n) for n in range(10)}
    source = table(keys)
    ranges = [condition(piece, NAMES, KINDS, SQLITE) for piece in cut(end_in(source, 3))]
    assert sorted(key for each in ranges for key in under(source, each)) == sorted(keys)
    broken = [each.replace(f" {wrong} ", f" {right} ") for each in ranges]
    assert sorted(key for each in broken for key in under(source, each)) != sorted(keys)


@given(keys=KEYS, wanted=KEYS, size=st.integers(1, 5))
def test_lists_hold_just_their_keys(
    keys: set[tuple[int, int]], wanted: set[tuple[int, int]], size: int
) -> None:
    source = table(keys)
    lists = lists_of([texts(key) for key in sorted(wanted)], size)
    found = [key for each in lists for key in under(source, condition(each, NAMES, KINDS, SQLITE))]
    assert sorted(found) == sorted(keys & wanted)


def test_keys_are_written_as_each_server_reads_them() -> None:
    day = KeyRange(("-2147483648",), ("10957",))
    assert condition(day, ["d"], [DATE], POSTGRES) == (
        "\"d\" > '-infinity'::date AND \"d\" <= (date '1970-01-01' + (10957))"
    )
    raw = KeyList((("00ff",), ("",)))
    assert condition(raw, ["r"], [BYTES], POSTGRES) == "\"r\" IN ('\\x00ff'::bytea, '\\x'::bytea)"
    assert condition(raw, ["r`"], [BYTES], MYSQL) == "`r``` IN (X'00ff', X'')"
    pair = KeyRange(("1", "2"))
    assert condition(pair, ["a", "b"], KINDS, POSTGRES) == '("a", "b") > (1, 2)'
    assert condition(pair, ["a", "b"], KINDS, MYSQL) == "((`a` > 1) OR (`a` = 1 AND `b` > 2))"


@pytest.mark.parametrize("key", ["1; DROP TABLE t", "1.5", "", "not exactly 1"])
def test_what_is_no_key_never_becomes_sql(key: str) -> None:
    with pytest.raises(VerifyError, match="isn't what its type says"):
        condition(KeyList(((key,),)), ["a"], [INTEGER], POSTGRES)


def test_a_row_without_a_hash_agrees_with_nothing() -> None:
    assert Digest(2, 2, (5, 6)).agrees(Digest(2, 2, (5, 6)))
    assert not Digest(2, 1, (5, 6)).agrees(Digest(2, 1, (5, 6)))


LOGICAL = {
    "real": "float32",
    "double": "float64",
    "timestamp without time zone": "timestamp",
    "boolean": "bool",
}
BASES = {
    "tinyint(1)": "bool",
    "datetime(6)": "timestamp",
    "double precision": "float8",
    "real": "float4",
    "character varying(9)": "varchar",
    "character(9)": "bpchar",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz",
    "time without time zone": "time",
}


def pair(source: str, target: str) -> Pair:
    old = Column("c", LOGICAL.get(source, "string"), True, source)
    return Pair(old, TargetColumnText("d", target, BASES.get(target, target), False))


@pytest.mark.parametrize(
    ("kinds", "source", "target", "possible"),
    [
        ("pp", "numeric(12,2)", "numeric(14,4)", True),
        ("pp", "integer", "bigint", True),
        ("pp", "integer", "numeric(20,0)", True),
        ("pp", "interval", "interval", True),
        ("pp", "character(8)", "text", True),  # the padding is a part of the mapped value, and printed
        ("pp", "text", "character(9)", True),  # whose padding is none
        ("pp", "mood", "text", True),
        ("pp", "text", "mood", True),
        ("pp", "json", "jsonb", False),
        ("pp", "real", "double precision", False),
        ("pp", "timestamp without time zone", "timestamp with time zone", False),
        ("mp", "decimal(38,10)", "numeric(38,10)", True),
        ("mp", "double", "double precision", True),
        ("mp", "double(9,2)", "double precision", False),  # printed with two decimals, whatever it is
        ("mp", "tinyint(1)", "smallint", True),
        ("mp", "datetime(6)", "timestamp without time zone", False),
        ("mp", "datetime(6)", "text", True),
        ("mp", "float", "real", True),
        ("mp", "float", "double precision", False),
        ("mp", "year", "smallint", True),
        ("mp", "time(3)", "time without time zone", True),
        ("mp", "time", "interval", True),  # as texts, which are rarely the same
        ("mp", "char(36)", "uuid", True),
        ("mp", "enum('a','b')", "mood", True),
        ("mp", "set('a','b')", "character varying(9)", True),
        ("mp", "json", "jsonb", True),
        ("ap", "longtext", "jsonb", False),
        ("ap", "longtext", "json", True),
        ("pm", "uuid", "char(36)", True),
        ("mm", "json", "longtext", True),
        ("mm", "double", "double", True),
        ("mm", "bit(9)", "bit(9)", False),
        ("mm", "tinyint(1)", "tinyint(1)", False),  # a number there, a boolean here
        ("pm", "boolean", "tinyint(1)", True),
        ("pm", "date", "date", True),
        ("pm", "timestamp without time zone", "datetime(6)", True),
        ("ma", "datetime(6)", "datetime(6)", False),
        ("ma", "varchar(9)", "longtext", True),
    ],
)
def test_only_what_both_servers_say_alike_is_left_to_them(
    kinds: str, source: str, target: str, possible: bool
) -> None:
    names = {"p": "postgresql", "m": "mysql", "a": "mariadb"}
    dialects = {"p": POSTGRES, "m": MYSQL, "a": MYSQL}
    made = pushed(
        (names[kinds[0]], names[kinds[1]]),
        (dialects[kinds[0]], dialects[kinds[1]]),
        [pair(source, target)],
        [KeyColumn("k", "k", INTEGER)],
    )
    assert (made is not None) == possible


def test_no_text_is_looked_for_under_a_column_s_collation() -> None:
    """To one that isn't deterministic other texts are equal; before 18 PostgreSQL looks for none under it."""
    text, old, new = (
        Expression("AttributeReference", (), "string", column=0),
        *(Expression("Literal", (), "string", value=value) for value in "ab"),
    )
    made = in_postgres(Expression("StringReplace", (text, old, new)), [Column("c", "string", True, "text")])
    assert made is not None
    assert made.sql.startswith('replace("c" COLLATE "C", ')
    found = pushed(("postgresql",) * 2, (POSTGRES, POSTGRES), [pair("text", "uuid")], [])
    assert found is not None
    assert '("c" COLLATE "C") LIKE ' in found.source
    assert '"c" LIKE' not in found.source


def test_what_a_server_holds_in_a_key_can_be_said_to_it() -> None:
    """Infinite numbers to PostgreSQL; U+0000 within text to MySQL and MariaDB, and to no other."""
    for value in ("Infinity", "-Infinity", "NaN"):
        assert condition(KeyRange(upto=(value,)), ["k"], [NUMBER], POSTGRES) == f"\"k\" <= '{value}'::numeric"
    assert condition(KeyRange(upto=("a\0b",)), ["k"], [TEXT], MYSQL) == "`k` <= _utf8mb4 X'610062'"
    assert is_written(("a\0b",), [TEXT], MYSQL)
    assert not is_written(("a\0b",), [TEXT], POSTGRES)
    with pytest.raises(VerifyError, match="is no text"):
        condition(KeyRange(upto=("a\0b",)), ["k"], [TEXT], POSTGRES)
