"""Digests of different rows differ, on real servers: by value, column and row, whatever a type's own hash folds."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations, permutations, product

import pytest

from migrator.model.table import Column
from tests.servers import Database
from verify.readers.chunk_keys import INTEGER, KeyColumn
from verify.readers.mysql import chunks as mysql_chunks
from verify.readers.ports import Digest
from verify.readers.postgres import chunks as postgres_chunks
from verify.readers.snapshot import TargetColumnText
from verify.tables.hashed_by_servers import row_hash, text_hash
from verify.tables.hashed_by_servers.digest import Pair, Pushed, pushed

pytestmark = pytest.mark.integration

POSTGRES = {
    "integer": ["NULL", "0", "1", "-1", "2147483647", "-2147483648"],
    # 2^32 - 1 is what -1 is to one who forgets the sign; the halves of 2^32 + 1 cancel each other out.
    "bigint": [
        *("NULL", "0", "1", "-1", "4294967295", "4294967296", "4294967297", "-9223372036854775808"),
        # 3 * 2^32 + 5 and 6 have one hash where 3 makes the first column's seed the second's; so do the others
        *("12884901893", "6", "12884901895", "4"),
        "4295",  # the seconds between two times with one hash
    ],
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
    "timestamp with time zone": [
        *("NULL", "'2000-01-01 00:00Z'", "'2000-01-01 00:00+01'", "'infinity'"),
        *("'1999-12-31 23:59:59.999999Z'", "'2000-01-01 01:11:34.967295Z'"),
    ],
    "uuid": ["NULL", "gen_random_uuid()", "'00000000-0000-0000-0000-000000000000'"],
    "interval": ["NULL", "'1 day'", "'24:00'", "'30 days'", "'1 month'"],
    "integer[]": ["NULL", "'{}'", "'{1}'", "'{1,2}'", "'{{1,2}}'", "'[0:1]={1,2}'"],
}
BINLOG = {
    "bigint": ["NULL", "0", "1", "-1", "4294967295", "4294967296"],
    "bigint unsigned": ["NULL", "0", "9223372036854775807", "18446744073709551615"],
    "decimal(30,10)": ["NULL", "0", "5", "-5", "50", "0.5", "0.0000000001"],
    "varchar(20)": ["NULL", "''", "' '", "'a'", "'A'", "'-'", "'='", "'=-'", "','", "'1,a'", "'0'"],
    "varbinary(20)": ["NULL", "''", "X'00'", "X'2d'", "X'30'"],
}
ONLY_ALIKE = {
    "double": ["NULL", "0", "1", "1e-300", "0.1"],
    "float": ["NULL", "0", "1", "1e-30", "0.1"],
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
BASES = {
    "character varying(9)": "varchar",
    "character varying(10)": "varchar",
    "character(2)": "bpchar",
    "time without time zone": "time",
    "timestamp without time zone": "timestamp",
}
Content = Sequence[tuple[str, ...]]
"""Rows of literals."""
chain = row_hash._chain


def contents(values: list[str], key: bool) -> list[Content]:
    """Different contents of a table ``(k, a, b)``; without a key, of ``(a, b)``."""
    made: list[Content] = [[("0", value, value)] for value in values]
    made += [[("0", *pair)] for pair in permutations(values, 2)]
    for one, other in combinations(values, 2):
        made.append([("0", one, one), ("1", other, other)])
        made.append([("0", one, other), ("1", other, one)])
        if key:
            made.append([("0", other, other), ("1", one, one)])
            made.append([("0", other, one), ("1", one, other)])
    return made


def digests(database: Database, natives: list[str], numbers: str, wanted: Sequence[Content]) -> set[Digest]:
    """Of the contents of a table with columns c0, c1 and so on."""
    columns = ", ".join(f"c{n} {native}" for n, native in enumerate(natives))
    rows = [f"({n}, {', '.join(map(str, row))})" for n, content in enumerate(wanted) for row in content]
    of = (postgres_chunks if database.kind == "postgresql" else mysql_chunks).digest_of
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE t (content int, {columns})")
        cursor.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        cursor.execute(f"SELECT {numbers} FROM t GROUP BY content")
        found = [of(row) for row in cursor.fetchall()]
        cursor.execute("DROP TABLE t")
    assert len(found) == len(wanted)
    assert all(each.agrees(each) for each in found), "every row has a hash"
    return set(found)


def numbers(kinds: tuple[str, str], columns: list[tuple[str, str]], nullable: bool = True) -> Pushed:
    """Of the old and the new types of columns c0, c1 and so on."""
    dialects = [postgres_chunks.DIALECT if kind == "postgresql" else mysql_chunks.DIALECT for kind in kinds]
    pairs = [
        Pair(
            Column(f"c{n}", "string", nullable, old),
            TargetColumnText(f"c{n}", new, BASES.get(new, new), False),
        )
        for n, (old, new) in enumerate(columns)
    ]
    made = pushed(kinds, (dialects[0], dialects[1]), pairs, [KeyColumn("c0", "c0", INTEGER)])
    assert made is not None
    return made


def missed(database: Database, natives: list[str], wanted: Sequence[Content], nullable: bool = True) -> int:
    """How many contents have a digest that another one has too."""
    made = numbers((database.kind, database.kind), [(native, native) for native in natives], nullable)
    assert made.source == made.target or database.kind != "postgresql"
    return len(wanted) - len(digests(database, natives, made.source, wanted))


def of_one_type(
    database: Database, native: str, values: list[str], key: bool
) -> tuple[list[str], list[Content]]:
    whole = "integer" if database.kind == "postgresql" else "int"
    wanted = contents(values, key)
    if key:
        return [whole, native, native], wanted
    return [native, native], [[row[1:] for row in content] for content in wanted]


def of_all_types() -> tuple[list[str], list[Content]]:
    """One row in which two columns have any of their values; and two rows that swap one."""
    values = [*POSTGRES.values()]
    base = tuple(each[1] for each in values)
    rows, swapped = {base}, []
    for one, other in combinations(range(len(values)), 2):
        for a, b in product(values[one], values[other]):
            rows.add((*base[:one], a, *base[one + 1 : other], b, *base[other + 1 :]))
        a, b = values[one][2], values[other][2]
        first, second = (*base[:one], a, *base[one + 1 :]), (*base[:other], b, *base[other + 1 :])
        both = (*first[:other], b, *first[other + 1 :])
        swapped += [[first, second], [base, both]]
    return [*POSTGRES], [*([row] for row in sorted(rows)), *swapped]


@pytest.mark.parametrize("native", POSTGRES)
def test_between_postgresqls(old_pg: Database, native: str) -> None:
    for key, nullable in product(
        (True, False), repeat=2
    ):  # NULL comes where the source says that it can't, too
        natives, wanted = of_one_type(old_pg, native, POSTGRES[native], key)
        assert missed(old_pg, natives, wanted, nullable) == 0, (key, nullable)


def test_of_all_types_in_one_row(old_pg: Database) -> None:
    for nullable in (True, False):
        assert missed(old_pg, *of_all_types(), nullable) == 0


def test_of_as_many_columns_as_a_table_may_have(old_pg: Database) -> None:
    natives = ["boolean", "text"] * 799
    rows = [["true", "''"] * 799 for _ in range(2)]
    rows[1][1500] = "false"
    for nullable in (True, False):
        assert missed(old_pg, natives, [[tuple(row)] for row in rows], nullable) == 0


@pytest.mark.parametrize("native", BINLOG | ONLY_ALIKE)
def test_between_mysqls(old_binlog: Database, native: str) -> None:
    assert missed(old_binlog, *of_one_type(old_binlog, native, (BINLOG | ONLY_ALIKE)[native], True)) == 0


@pytest.mark.parametrize("native", BESIDE_MYSQL)
def test_on_postgresql_beside_mysql(old_pg: Database, native: str) -> None:
    old, values = BESIDE_MYSQL[native]
    made = numbers(("mysql", "postgresql"), [(old, native), (old, native)])
    natives, wanted = of_one_type(old_pg, native, values, key=False)
    assert len(digests(old_pg, natives, made.target, wanted)) == len(wanted)


LONG = ["'" + "x" * 300 + end + "'" for end in ("a", "b", " ", "")]


HASH_OF_ONE = sha256(LONG[0].strip("'").encode())


@pytest.mark.parametrize("native", ["text", "bytea"])
@pytest.mark.parametrize("nullable", [True, False])
def test_of_long_values(old_pg: Database, old_binlog: Database, native: str, nullable: bool) -> None:
    """One value is the hash of another."""
    old = {"text": "longtext", "bytea": "longblob"}[native]
    made = numbers((old_binlog.kind, "postgresql"), [("int", "integer"), (old, native)], nullable)
    found = []
    for database, natives, select, binary in (
        (old_binlog, ["int", old], made.source, "X'{}'"),
        (old_pg, ["integer", native], made.target, r"'\x{}'"),
    ):
        hash_ = f"'{HASH_OF_ONE.hexdigest()}'" if native == "text" else binary.format(HASH_OF_ONE.hexdigest())
        found.append(digests(database, natives, select, [[("0", value)] for value in (*LONG, hash_)]))
    assert found[0] == found[1]
    assert len(found[0]) == len(LONG) + 1


@pytest.mark.parametrize("target", ["postgresql", "its own"])
def test_the_end_of_a_cell_in_a_text_agrees_with_nothing(
    old_pg: Database, old_binlog: Database, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the collation takes it for nothing, as MySQL's does."""
    new = old_pg if target == "postgresql" else old_binlog
    text = "text" if target == "postgresql" else "varchar(9)"
    columns = [("int", "integer" if new is old_pg else "int"), *[("varchar(9)", text)] * 2]
    old_natives, new_natives = (list(each) for each in zip(*columns, strict=True))

    moved = [("0", "'a'", "'b\x1fc'")], [("0", "'a\x1fb'", "'c'")]

    def both(one: Content, other: Content) -> list[set[Digest]]:
        made = numbers((old_binlog.kind, new.kind), columns, nullable=False)
        return [
            digests(old_binlog, old_natives, made.source, [one]),
            digests(new, new_natives, made.target, [other]),
        ]

    here, there = both(*moved)
    assert here != there
    here, there = both([("0", "'a'", "'b'")], [("0", "'a'", "'b'")])
    assert here == there, "of texts without it nothing is said"
    monkeypatch.setattr(text_hash, "_free", lambda *_: [])
    here, there = both(*moved)
    assert here == there, "the control: a target that doesn't look would agree"


def test_a_text_that_is_too_long_for_the_source_agrees_with_nothing(old_pg: Database) -> None:
    columns = [("int", "integer"), ("varchar(9)", "text")]
    wanted: list[Content] = [[("0", f"repeat('x', {n})")] for n in (9, 1020, 1021)]
    found = [
        digests(old_pg, ["integer", "text"], numbers(("mysql", "postgresql"), columns).target, wanted)
        for _ in range(2)
    ]
    assert len(found[0] & found[1]) == 2


def test_a_null_that_the_source_says_can_t_be_agrees_with_nothing(old_pg: Database) -> None:
    columns = [("int", "integer"), ("varchar(9)", "text"), ("int", "integer")]
    wanted: list[Content] = [[("0", "NULL", "1")], [("0", "NULL", "2")], [("0", "''", "1")]]
    once, again = (numbers(("mysql", "postgresql"), columns, nullable=False) for _ in range(2))
    natives = [new for _, new in columns]
    found = [digests(old_pg, natives, made.target, wanted) for made in (once, again)]
    assert len(found[0] & found[1]) == 1, "only the row without NULL has a hash that another side could have"


def test_a_text_that_is_cut_off_agrees_with_nothing(old_binlog: Database) -> None:
    old_binlog.execute("CREATE TABLE t (c0 int PRIMARY KEY, c1 varchar(64) NOT NULL)")
    old_binlog.execute(f"INSERT INTO t VALUES {', '.join(f'({n}, {n})' for n in range(1000))}")
    made = numbers((old_binlog.kind,) * 2, [("int", "int"), ("varchar(64)", "varchar(64)")], nullable=False)
    with old_binlog.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION group_concat_max_len = 100000")
        whole = mysql_chunks.digest(connection, f"SELECT {made.source} FROM t")
        cursor.execute("SET SESSION group_concat_max_len = 5000")
        cut = [mysql_chunks.digest(connection, f"SELECT {made.source} FROM t")]
        cursor.execute("UPDATE t SET c1 = 'y' WHERE c0 = 999")
        cut.append(mysql_chunks.digest(connection, f"SELECT {made.source} FROM t"))
    assert whole.agrees(whole)
    assert not any(each.agrees(each) for each in cut)
    assert cut[0].sums == cut[1].sums, "the control: unless warnings are looked at, the update is missed"


# -- digests that are more lenient than ours -----------------------------------------------------------------------

FOLDED = [
    ("bigint", row_hash._WORDS, "integer", "hashint8extended({0}, 1)", False),
    ("bigint", row_hash._APART, "integer", "hashint8extended({0}, {1})", True),
    ("numeric", row_hash._STEPS, "numeric", "hash_numeric_extended({0}, {1})", False),
    ("numeric", row_hash._STEPS, "numeric", "hash_numeric_extended({0}, {1})", True),
    ("double precision", row_hash._APART, "float8", "hashfloat8extended({0}, {1})", False),
    ("real", row_hash._APART, "float4", "hashfloat4extended({0}, {1})", True),
    ("timestamp without time zone", row_hash._STEPS, "timestamp", "timestamp_hash_extended({0}, {1})", False),
    ("timestamp with time zone", row_hash._STEPS, "timestamptz", "hash_record_extended(ROW({0}), {1})", True),
    ("interval", row_hash.__dict__, "_AS_OUTPUT", "interval_hash_extended({0}, {1})", False),
    ("bigint", row_hash.__dict__, "_SEED_BITS", 0, True),
]


@pytest.mark.parametrize(("native", "where", "name", "folded", "nullable"), FOLDED)
def test_what_a_type_s_own_hash_folds_would_be_missed(
    old_pg: Database,
    monkeypatch: pytest.MonkeyPatch,
    native: str,
    where: dict[str, object],
    name: str,
    folded: object,
    nullable: bool,
) -> None:
    monkeypatch.setitem(where, name, folded)
    assert missed(old_pg, *of_one_type(old_pg, native, POSTGRES[native], key=False), nullable) > 0


@pytest.mark.parametrize(
    ("name", "lenient"),
    [
        ("_FULL", ()),  # two words in one seed
        ("_STIR", "({0} # {1})"),  # a word that nothing stirs
    ],
)
def test_words_that_meet_would_be_missed(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, name: str, lenient: object
) -> None:
    natives, wanted = of_all_types()
    kept = [
        n
        for n, native in enumerate(natives)
        if native in ("integer", "bigint", "timestamp without time zone")
    ]
    few = {tuple(sorted(tuple(row[n] for n in kept) for row in content)) for content in wanted}
    natives, few_sorted = [natives[n] for n in kept], sorted(few)
    assert missed(old_pg, natives, few_sorted, nullable=False) == 0
    monkeypatch.setattr(row_hash, name, lenient)
    assert missed(old_pg, natives, few_sorted, nullable=False) > 0


def test_a_row_that_has_a_null_against_the_catalogue_s_word_is_not_lost(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    natives, wanted = of_one_type(old_pg, "text", POSTGRES["text"], key=True)
    monkeypatch.setattr(row_hash, "_chain", lambda *given: f"coalesce({chain(*given)}, 0)")
    assert missed(old_pg, natives, wanted, nullable=False) > 0
