"""Spellings that a column takes for one, by type and family of collations, and histories of rows with such keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import psycopg
import pyarrow as pa
import pytest
from hypothesis import strategies as st

from tests.servers import Database

Groups = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Kind:
    """A kind of key: its declaration, what has to be there first, and groups of spellings that are one each.

    ``arrow``: how a spelling is mapped. ``shown``: SQL that prints a stored key exactly.
    """

    name: str
    declared: str
    groups: Groups
    setup: tuple[str, ...] = ()
    index: str = ""
    arrow: Callable[[str], object] = str
    arrow_type: pa.DataType = field(default_factory=pa.string)
    shown: str = "{0}::text"
    printed: Callable[[str], str] = str


def set_up(database: Database, kind: Kind) -> None:
    """Makes what a kind needs, unless another test of the same database did; skips where the server can't."""
    try:
        database.execute(*kind.setup)
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"{error} (Debian's servers have it)")
    except (psycopg.errors.DuplicateObject, psycopg.errors.DuplicateFunction):
        return


def _icu(name: str, locale: str) -> str:
    return f"CREATE COLLATION {name} (provider = icu, locale = '{locale}', deterministic = false)"


CASES = (("tool", "Tool", "TOOL"), ("toy", "TOY"), ("ärger", "ÄRGER"), ("x",))
ACCENTS = (("resume", "résumé", "Résume"), ("toy", "TOY"), ("uber", "über"), ("x",))
NUMBERS = (("1", "1.0", "1.00"), ("0", "0.000"), ("-12.5", "-12.50"), ("7",))


def _float(text: str) -> str:
    return str(float(text)).removesuffix(".0")


def _unpadded(text: str) -> str:
    return text.rstrip(" ")


PADDED = (("a", "a ", "a   "), ("", " "), ("bc", "bc "), ("d",))
FLOATS = (("0.0", "-0.0"), ("1.5",), ("2.0",), ("-3.0",))

POSTGRES = (
    Kind("case", "text COLLATE ndci", CASES, (_icu("ndci", "und-u-ks-level2"),)),
    Kind("varchar", "varchar(20) COLLATE ndv", CASES, (_icu("ndv", "und-u-ks-level2"),)),
    Kind("accents", "text COLLATE ndai", ACCENTS, (_icu("ndai", "und-u-ks-level1"),)),
    Kind(
        "punctuation", "text COLLATE ndpu",
        (("a-b", "ab", "a b"), ("cd", "c.d"), ("e",)), (_icu("ndpu", "und-u-ka-shifted"),),
    ),
    Kind("digits", "text COLLATE ndkn", (("a1", "a01", "a001"), ("b2", "b02"), ("c",)), (_icu("ndkn", "und-u-kn"),)),
    Kind(
        "case, not accents", "text COLLATE ndca",
        (("resume", "RESUME", "Resume"), ("résumé", "RÉSUMÉ", "re\u0301sume\u0301"), ("toy", "Toy")),
        (_icu("ndca", "und-u-ks-level2"),),
    ),
    Kind(
        "punctuation and case", "varchar(20) COLLATE ndpc",
        (("a-b", "AB", "A b", "a.B"), ("á-b", "ÁB"), ("cd", "C D"), ("e",)),
        (_icu("ndpc", "und-u-ka-shifted-ks-level2"),),
    ),
    Kind(
        "digits and case", "text COLLATE ndkc", (("a1", "A01", "a001"), ("a10", "A010"), ("b2", "B02"), ("c",)),
        (_icu("ndkc", "und-u-kn-ks-level2"),),
    ),
    Kind(
        "forms", "text COLLATE ndnf", (("é", "e\u0301"), ("Å", "A\u030a", "\u212b"), ("x",)),
        (_icu("ndnf", "und"),),
    ),
    Kind(
        "domain", "named", CASES,
        (_icu("nddo", "und-u-ks-level2"), "CREATE DOMAIN named AS text COLLATE nddo CHECK (VALUE <> '')"),
    ),
    Kind(
        "index", 'text COLLATE "C" NOT NULL', CASES, (_icu("ndix", "und-u-ks-level2"),),
        "CREATE UNIQUE INDEX ON {table} (k COLLATE ndix)",
    ),
    Kind(
        "finer index", "text COLLATE ndfi NOT NULL", tuple((one,) for group in CASES for one in group),
        (_icu("ndfi", "und-u-ks-level2"),), 'CREATE UNIQUE INDEX ON {table} (k COLLATE "C")',
    ),
    Kind("array", "text[] COLLATE ndar", (("{a,b}", "{A,b}"), ("{c}", "{C}")), (_icu("ndar", "und-u-ks-level2"),)),
    Kind("numeric", "numeric", NUMBERS),
    Kind("numerics", "numeric[]", (("{1,2}", "{1.0,2.00}"), ("{3}",))),
    Kind("ranges", "numrange", (("[1,2)", "[1.0,2.00)"), ("[3,4]", "[3.00,4]"))),
    Kind("padded", "char(8)", (("a",), ("A",), ("bc",)), printed=_unpadded),
    Kind("padded by case", "char(8) COLLATE ndpa", CASES, (_icu("ndpa", "und-u-ks-level2"),), printed=_unpadded),
    Kind("double", "double precision", FLOATS, arrow=float, arrow_type=pa.float64(), printed=_float),
    Kind("real", "real", FLOATS, arrow=float, arrow_type=pa.float32(), printed=_float),
    Kind("interval", "interval", (("1 mon", "30 days", "720:00:00"), ("1 day", "24:00:00"), ("00:00:01",))),
    Kind("jsonb", "jsonb", (('{"a": 1}', '{"a": 1.0}'), ("2", "2.00"), ('"x"',))),
    Kind("row", "pair", (("(1,a)", "(1.0,a)"), ("(2,b)", "(2.00,b)")), ("CREATE TYPE pair AS (n numeric, t text)",)),
    Kind(
        "own operator class", "varchar(20) NOT NULL", (("tool", "Tool"), ("toy", "TOY"), ("x",)),
        (
            "CREATE FUNCTION ci_cmp(text, text) RETURNS int IMMUTABLE LANGUAGE sql AS"
            " $$ SELECT btcmp.c FROM (SELECT bttextcmp(lower($1), lower($2)) c) btcmp $$",
            *(
                f"CREATE FUNCTION ci_{name}(text, text) RETURNS bool IMMUTABLE LANGUAGE sql AS"
                f" $$ SELECT lower($1) {sign} lower($2) $$"
                for name, sign in (("lt", "<"), ("le", "<="), ("eq", "="), ("ge", ">="), ("gt", ">"))
            ),
            *(
                f"CREATE OPERATOR {sign} (LEFTARG = text, RIGHTARG = text, FUNCTION = ci_{name})"
                for name, sign in (("lt", "<#"), ("le", "<=#"), ("eq", "=#"), ("ge", ">=#"), ("gt", ">#"))
            ),
            "CREATE OPERATOR CLASS ci_ops FOR TYPE text USING btree AS OPERATOR 1 <#, OPERATOR 2 <=#,"
            " OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 ci_cmp(text, text)",
        ),
        "CREATE UNIQUE INDEX ON {table} (k ci_ops)",
    ),
    Kind(
        "shadowed operator", "varchar(20)", (("tool",), ("Tool",), ("toy",), ("x",)),
        (
            "CREATE FUNCTION never(varchar, varchar) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT false'",
            "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = never)",
        ),
    ),
)  # fmt: skip
POSTGRES_EXTENSIONS = (Kind("citext", "citext", CASES, ("CREATE EXTENSION citext",)),)


def _binlog(collations: dict[str, Groups]) -> tuple[Kind, ...]:
    texts = [
        Kind(
            collation, f"varchar(20) CHARACTER SET {collation.partition('_')[0]} COLLATE {collation}", groups,
            shown="CAST({0} AS CHAR)",
        )
        for collation, groups in collations.items()
    ]  # fmt: skip
    return (
        *texts,
        Kind(
            "double",
            "double",
            FLOATS[1:],
            arrow=float,
            arrow_type=pa.float64(),
            shown="CAST({0} AS CHAR)",
            printed=_float,
        ),
    )


_BINLOG: dict[str, Groups] = {
    "utf8mb4_general_ci": (("tool", "Tool", "TOOL"), ("uber", "Über"), ("a", "a "), ("x",)),
    "utf8mb4_unicode_ci": (("resume", "Résumé"), ("strasse", "Straße"), ("a", "A  ")),
    "utf8mb4_bin": PADDED,
    "latin1_swedish_ci": (("tool", "TOOL"), ("y", "ü"), ("a", "a ")),
    "utf8mb4_czech_ci": (("chata", "CHATA"), ("x",)),
}
MYSQL = _binlog(
    {
        **_BINLOG,
        "utf8mb4_0900_ai_ci": (("resume", "Résumé"), ("strasse", "Straße"), ("a",), ("a ",)),
        "utf8mb4_0900_as_cs": (("tool",), ("Tool",), ("a",), ("a ",)),
        "utf8mb4_0900_bin": (("a",), ("a ",), ("A",)),
    }
)
MARIADB = _binlog(
    {
        **_BINLOG,
        "utf8mb4_nopad_bin": (("a",), ("a ",), ("A",)),
        "utf8mb4_unicode_nopad_ci": (("é", "E"), ("a",), ("a ",)),
    }
)


@dataclass(frozen=True)
class Batch:
    """What one batch does to a source whose keys are spellings; values are numbers."""

    chunk: dict[str, int]
    before: tuple[tuple[str, int], ...]
    after: dict[str, int]
    delivered: dict[str, int]
    done: bool


@st.composite
def histories(draw: st.DrawFn, groups: Groups, most: int = 6) -> list[Batch]:
    """Batches of a table that is dumped while it is written. The source tells all spellings apart."""
    spellings = [one for group in groups for one in group]
    value = iter(range(1000))
    source = {one: next(value) for one in draw(st.lists(st.sampled_from(spellings), unique=True, max_size=3))}
    waiting = set(source)
    delivered: dict[str, int] = {}
    dumped = False
    batches: list[Batch] = []
    for _ in range(most):
        strict = dumped
        chunk = {one: source[one] for one in sorted(waiting) if dumped is False and draw(st.booleans())}
        waiting -= set(chunk)
        delivered |= chunk
        first: dict[str, int | None] = {}
        images: list[tuple[str, int]] = []
        for _ in range(draw(st.integers(0, 3))):
            one = draw(st.sampled_from(spellings))
            other = draw(st.sampled_from([one, *spellings]))
            old = source.get(one)
            if old is None:
                first.setdefault(one, None)
                source[one] = delivered[one] = next(value)
            elif other != one and other not in source:
                first.setdefault(one, old)
                first.setdefault(other, None)
                images.append((one, source.pop(one)))
                delivered.pop(one, None)
                source[other] = delivered[other] = next(value)
            elif draw(st.booleans()):
                first.setdefault(one, old)
                images.append((one, old))
                source[one] = delivered[one] = next(value)
            else:
                first.setdefault(one, old)
                images.append((one, source.pop(one)))
                delivered.pop(one, None)
            waiting -= {one, other} & set(first)
        net = [(one, old) for one, old in first.items() if old is not None]
        after = {one: source[one] for one in first if one in source}
        dumped = dumped or not waiting
        batches.append(Batch(chunk, tuple(images if chunk else net), after, dict(delivered), done=strict))
    return batches


def one_key_twice(delivered: dict[str, int], groups: Groups) -> bool:
    """Whether the target can't hold all these rows."""
    return any(sum(one in delivered for one in group) > 1 for group in groups)


@dataclass(frozen=True)
class Repair:
    """Source and target that differ, and what a repair of the keys that ``verify`` names dumps and doubts."""

    source: dict[str, int]
    target: dict[str, int]
    chunk: dict[str, int]
    doubted: tuple[str, ...]


@st.composite
def repairs(draw: st.DrawFn, groups: Groups, otherwise: Groups) -> Repair:
    """Keys are paired as text: of a row that is spelled otherwise one is missing and one too many.

    ``otherwise``: groups of which the source has one spelling, and the target another; one of them, if there
    are any.
    """
    value = st.integers(0, 2)
    source, target = (
        {draw(st.sampled_from(group)): draw(value) for group in groups if draw(st.booleans())}
        for _ in range(2)
    )
    if otherwise:
        group = draw(st.sampled_from(otherwise))
        for side, one in zip((source, target), draw(st.permutations(list(group))), strict=False):
            for spelling in group:
                side.pop(spelling, None)
            side[one] = draw(value)
    differ = sorted(key for key in {*source, *target} if source.get(key) != target.get(key))
    also = [key for key in sorted(source) if draw(st.booleans())]
    chunk = {key: source[key] for key in source if key in differ or key in also}
    doubted = tuple(key for key in sorted(target) if key in differ or draw(st.booleans()))
    # a repair dumps each row that may map to a doubted key
    return Repair(
        source, target, {**chunk, **{key: source[key] for key in doubted if key in source}}, doubted
    )
