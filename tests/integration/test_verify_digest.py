"""Digests of different rows differ, on real servers: by value, column and row, whatever a type's own hash folds."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from itertools import combinations, permutations, product

import pytest

from migrator.model.table import Column
from tests.servers import Database
from verify import mysql_chunks, postgres_chunks, row_hash, text_hash
from verify.chunk_keys import INTEGER, KeyColumn
from verify.chunk_reader import Digest
from verify.digest import Pair, Pushed, pushed
from verify.snapshot import TargetColumnText

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
FLOATING = {
    "double": [
        *(
            "NULL",
            "0",
            "1",
            "-1",
            "0.1",
            "0.10000000000000002",
            "1e15",
            "123456789012345678",
            "1e16",
            "1e-5",
            "-1e-15",
        ),
        *(
            "5e-324",
            "2.2250738585072014e-308",
            "1.7976931348623157e308",
            "9007199254740992",
            "9007199254740993",
        ),
    ],
    "float": [
        "NULL",
        "0",
        "1",
        "-1",
        "0.1",
        "16777216",
        "16777217",
        "16777218",
        "1e-45",
        "3.40282e38",
        "1e6",
        "1e-6",
    ],
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
PRINTED = {
    ("char(36)", "uuid"): [
        "'0e984725-c51c-4bf4-9960-e1c80e27aba0'",
        "'0E984725-C51C-4BF4-9960-E1C80E27ABA1'",  # the same one as PostgreSQL prints it, in small letters
        "'0E984725C51C4BF49960e1c80e27aba2'",
    ],
    ("enum('a', 'b c', 'é')", "mood"): ["'a'", "'b c'", "'é'"],
    ("varchar(20) character set latin1", "mood"): ["'a'", "'é'"],
    ("set('a','b c')", "text"): ["''", "'a'", "'a,b c'"],
    ("set('a','b c')", "character varying(9)"): ["''", "'a'", "'a,b c'"],
    ("longtext", "json"): ['\'{"b":1, "a": [1.50, "é"]}\'', "'[]'", f"'\"{'x' * 300}\"'"],
    ("varchar(20)", "inet"): ["'192.0.2.1'", "'192.0.2.0/24'"],
    ("char(2)", "character(2)"): ["'de'", "'d'", "''"],
    ("year", "smallint"): ["0", "1901", "2024"],
    ("time", "time without time zone"): ["'00:00:00'", "'23:59:59'", "'10:00:00'"],
    ("time(6)", "time without time zone"): ["'00:00:00'", "'23:59:59.999999'", "'12:00:00.5'"],
    ("datetime(6)", "text"): ["'2024-02-29 12:00:00.500000'", "'1000-01-01 00:00:00.000000'"],
    ("date", "character varying(10)"): ["'2024-02-29'"],
}
"""By types of the source and of PostgreSQL, values that are the same on both, however they are written."""
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


def contents(values: list[str], key: bool) -> list[list[tuple[str, str, str]]]:
    """Different contents of a table ``(k, a, b)``; without a key, of ``(a, b)``."""
    made = [[("0", value, value)] for value in values]
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


@pytest.mark.parametrize("native", FLOATING)
def test_floating_point_is_the_same_bits_on_both_engines(
    old_pg: Database, old_binlog: Database, native: str
) -> None:
    """Very large and very small ones too, which the servers write in different ways."""
    new = {"double": "double precision", "float": "real"}[native]
    made = numbers((old_binlog.kind, "postgresql"), [("int", "integer"), (native, new)])
    for value in FLOATING[native]:
        content: list[Content] = [[("0", value)]]
        old = digests(old_binlog, ["int", native], made.source, content)
        assert old == digests(old_pg, ["integer", new], made.target, content), value
    every: list[Content] = [[("0", value)] for value in FLOATING[native]]
    different = digests(old_pg, ["integer", new], made.target, every)
    assert len(different) == len(every) - 1  # 2^53 + 1 and 2^24 + 1 are nobody's numbers


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(("old", "new"), PRINTED)
def test_what_is_handed_on_as_a_text_agrees_if_it_is_printed_alike(
    old_pg: Database, old_binlog: Database, old: str, new: str, nullable: bool
) -> None:
    old_pg.execute("CREATE TYPE mood AS ENUM ('a', 'b c', 'é')")
    values = [*PRINTED[old, new], *(["NULL"] if nullable else [])]
    made = numbers((old_binlog.kind, "postgresql"), [("int", "integer"), (old, new)], nullable)
    for value in values:
        content: list[Content] = [[("0", value)]]
        found = digests(old_binlog, ["int", old], made.source, content)
        assert found == digests(old_pg, ["integer", new], made.target, content), value
    every: list[Content] = [[("0", value)] for value in values]
    assert len(digests(old_pg, ["integer", new], made.target, every)) == len(values)


def test_a_uuid_with_dashes_elsewhere_agrees_with_none(old_pg: Database) -> None:
    """No server reads it, so to the judge it is another text."""
    made = numbers(("postgresql", "postgresql"), [("integer", "integer"), ("text", "uuid")])
    odd: list[Content] = [
        [("0", "'0e98-4725c51c-4bf4-9960e-1c80e27aba0'")],
        [("0", "'-0e984725c51c4bf49960e1c80e27aba0'")],
    ]
    plain: list[Content] = [[("0", "'0e984725c51c4bf49960e1c80e27aba0'")]]
    found = digests(old_pg, ["integer", "uuid"], made.target, plain)
    assert found == digests(old_pg, ["integer", "text"], made.source, plain)
    assert not found & digests(old_pg, ["integer", "text"], made.source, odd)


def test_mysql_s_json_agrees_with_jsonb(old_pg: Database, old_mysql: Database) -> None:
    """Both put keys into one order, with one blank behind each comma."""
    made = numbers(("mysql", "postgresql"), [("int", "integer"), ("json", "jsonb")])
    written = '{"bb":1,"a":[true,null,"é"],   "b":{"x":-1.5}}'
    for value in ("NULL", "'null'", "'{}'", f"'{written}'", "'18446744073709551615'"):
        content: list[Content] = [[("0", value)]]
        old = digests(old_mysql, ["int", "json"], made.source, content)
        assert old == digests(old_pg, ["integer", "jsonb"], made.target, content), value


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("mood", "text", ["NULL", "'a'", "'b c'"]),
        ("text", "mood", ["NULL", "'a'", "'b c'"]),
        ("mood", "feeling", ["NULL", "'a'"]),
        ("character(8)", "text", ["NULL", "'a       '"]),
        ("inet", "character varying(9)", ["NULL", "'::1'"]),
        ("integer[]", "text", ["NULL", "'{1,2}'", "'{}'"]),
        (
            "text",
            "uuid",
            ["NULL", "'0e984725-c51c-4bf4-9960-e1c80e27aba0'", "'0E984725C51C4BF49960E1C80E27ABA1'"],
        ),
        ("text", "character(2)", ["NULL", "'ab'", "'a'"]),
        ("interval", "text", ["NULL", "'01:00:00'"]),
        ("json", "text", ["NULL", "'[1, 2]'"]),
    ],
)
def test_between_postgresqls_of_other_types(old_pg: Database, old: str, new: str, same: list[str]) -> None:
    old_pg.execute("CREATE TYPE mood AS ENUM ('a', 'b c')", "CREATE TYPE feeling AS ENUM ('b c', 'a')")
    for nullable in (True, False):
        made = numbers(("postgresql", "postgresql"), [("integer", "integer"), (old, new)], nullable)
        every: list[Content] = [[("0", value)] for value in same]
        found = digests(old_pg, ["integer", old], made.source, every)
        assert found == digests(old_pg, ["integer", new], made.target, every)
        assert len(found) == len(same)


def test_the_sign_of_zero_that_mysql_keeps_is_seen(old_pg: Database, old_mysql: Database) -> None:
    made = numbers(("mysql", "postgresql"), [("int", "integer"), ("double", "double precision")])
    both: list[Content] = [[("0", "-0e0")], [("0", "0e0")]]
    found = [
        digests(old_mysql, ["int", "double"], made.source, both),
        digests(old_pg, ["integer", "double precision"], made.target, [[("0", "'-0'")], [("0", "0")]]),
    ]
    assert found[0] == found[1]
    assert len(found[0]) == 2


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
