"""Every function of the column library against exact arithmetic, over extreme and random values of what
sources have.

What it gives is what Python's integers, fractions and decimals give, or it is an error that names the value.
"""

from __future__ import annotations

import datetime as dt
import inspect
import json
import random
import struct
import sys
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from migrator.errors import MappingError
from tests.integration.transforms.test_transforms_columns import failure, values
from tests.servers import Database
from transforms import columns as C
from transforms import representations as R

pytestmark = pytest.mark.spark

RNG = random.Random(27)
LONG = (-(2**63), 2**63 - 1)
INTEGERS = [0, 1, -1, 2**31, -(2**31), 2**53 + 1, *LONG, 2**63, 2**64 - 1, 10**28 - 1, 1 - 10**28]
TEXTS = [
    "", " ", "a b", "NULL", "null", "nUll", "nul", '"', '""', "\\", '\\"', "{", "}", "{}", "a,b", ",", "'", "\t",
    "\n", "\r", "\x0b", "\x0c", "\x01", "\x7f", "\x85", "\xa0", "\u2003", "\u2028", "é", "İ", "ß", "😀", "a\n", "$1",
]  # fmt: skip
ELSEWHERE = {
    "uuid5", "uuid5_binary", "instant", "from_parts", "blank_to_null", "lower_ascii", "slug", "point_x", "point_y",
    "zero_date_to_null", "mysql_date", "mysql_datetime", "folded",
}  # fmt: skip
"""Compared with an oracle of their own in ``test_transforms_columns`` and ``test_transforms_representations``."""


def test_every_function_is_compared() -> None:
    found = {
        name
        for module in (C, R)
        for name, each in vars(module).items()
        if inspect.isfunction(each) and not name.startswith("_") and each.__module__.startswith("transforms")
    }
    helpers = {"as_column", "checked", "weights"}
    here = inspect.getsource(sys.modules[__name__])
    named = {name for name in found if f"C.{name}(" in here or f"R.{name}(" in here}
    assert found - helpers - ELSEWHERE - named == set()


def test_ratios_are_exact_fractions(spark: SparkSession) -> None:
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS]
    for _ in range(300):
        pairs.append(tuple(RNG.randint(-(10 ** RNG.randint(1, 28)), 10 ** RNG.randint(1, 28)) for _ in "ab"))  # type: ignore[arg-type]
    # halves: a / 2b with an odd a
    pairs += [(2 * RNG.randint(0, 10**17) + 1, 2 * 10 ** RNG.randint(0, 7)) for _ in range(100)]
    pairs = [(a, b) for a, b in pairs if max(abs(a), abs(b)) < 10**28]
    rows = [(Decimal(a), Decimal(b)) for a, b in pairs]
    digits = (0, 2, 4, 6)
    found = values(
        spark, "a decimal(38,0), b decimal(38,0)", rows, *(C.ratio("a", "b", each) for each in digits)
    )
    for (a, b), quotients in zip(pairs, found, strict=True):
        wanted = tuple(_rounded(a, b, each) for each in digits)
        assert tuple(None if q is None else Fraction(q) for q in quotients) == wanted, (a, b)


def _rounded(a: int, b: int, digits: int) -> Fraction | None:
    if b == 0:
        return None
    exact = abs(Fraction(a, b)) * 10**digits
    whole = int(exact + Fraction(1, 2))  # cut; exact halves go up
    return Fraction(whole if (a < 0) == (b < 0) else -whole, 10**digits)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("v decimal(38,0)", Decimal(10**28)),
        ("v decimal(20,2)", Decimal("1.50")),
        ("v decimal(38,30)", Decimal("1.000000000000000000000000000001")),
        ("v double", 0.5),
        ("v double", float("nan")),
    ],
)
def test_a_ratio_of_what_is_too_large_or_no_whole_number_fails(
    spark: SparkSession, schema: str, value: Any
) -> None:
    said = failure(spark, schema, value, C.ratio("v", F.lit(1), 2))
    assert any(word in said for word in (str(value), "NaN"))
    assert "ansi" not in said, "advice to change what is fixed"


def test_only_decimals_that_exist_can_be_asked_of_a_ratio() -> None:
    for digits in (-1, 7):
        with pytest.raises(MappingError, match="0 to 6"):
            C.ratio("a", "b", digits)


LAST_DIGIT = {
    "cents": lambda: C.cents("m"),
    "flag": lambda: C.flag("m"),
    "from_parts": lambda: C.from_parts(F.lit(2024), F.lit(1), F.lit(1), "m"),
    "ratio": lambda: C.ratio("m", F.lit(2), 6),
    "epoch": lambda: R.epoch("m"),
}


@pytest.mark.parametrize("name", LAST_DIGIT)
@pytest.mark.parametrize("value", [Decimal("1E-38"), Decimal("-4E-38"), Decimal("5E-38")])
def test_the_last_of_38_digits_is_heeded(spark: SparkSession, name: str, value: Decimal) -> None:
    """Compared with 0 as it is, up to four of it are rounded away. The control: nothing of it is right."""
    one = LAST_DIGIT[name]()
    assert "is no " in failure(spark, "m decimal(38,38)", value, one)
    assert values(spark, "m decimal(38,38)", [(Decimal(0),)], one) != []


def test_without_the_second_comparison_the_last_digit_would_be_rounded(spark: SparkSession) -> None:
    rest = F.col("m") % F.lit(1)
    found = values(spark, "m decimal(38,38)", [(Decimal("1E-38"),)], rest == 0, C.no_rest(rest))
    assert found == [(True, False)]


def test_cents_and_flags_are_exact(spark: SparkSession) -> None:
    amounts = [Decimal(n).scaleb(-2) for n in (*LONG, 0, -1, 2**53 + 1)]
    amounts += [Decimal(RNG.randint(*LONG)).scaleb(-2) for _ in range(100)]
    found = values(spark, "m decimal(38,18)", [(each,) for each in amounts], C.cents("m"))
    assert [one for (one,) in found] == [int(each * 100) for each in amounts]
    for schema, value in (
        ("m decimal(38,18)", Decimal("1E-18")),
        ("m decimal(38,2)", Decimal("92233720368547758.08")),
        ("m double", float("nan")),
        ("m string", "0.005"),
    ):
        assert failure(spark, schema, value, C.cents("m"))
    assert values(spark, "f decimal(20,0)", [(Decimal(1),), (None,)], C.flag("f")) == [(True,), (None,)]
    assert "value 18446744073709551615" in failure(spark, "f decimal(20,0)", Decimal(2**64 - 1), C.flag("f"))


def test_whole_numbers_are_never_rounded(spark: SparkSession) -> None:
    rows = [(Decimal(RNG.randint(*LONG)),) for _ in range(50)]
    assert values(spark, "v decimal(38,10)", rows, C.whole("v", "bigint")) == [(int(v),) for (v,) in rows]
    for schema, value in (("v decimal(3,1)", Decimal("0.5")), ("v double", 1e300), ("v double", 0.1)):
        assert failure(spark, schema, value, C.whole("v", "bigint"))
    assert "3.9" in failure(
        spark, "v decimal(3,1)", Decimal("3.9"), C.from_parts(F.lit(2024), F.lit(2), "v", F.lit(0))
    )


@pytest.mark.parametrize("text", ["2024-01-01\n", "2024-01-01\r\n", "2024-01-01 ", "٢٠٢٤-٠١-٠١"])
def test_a_date_with_something_behind_it_fails(spark: SparkSession, text: str) -> None:
    assert "no full date" in failure(spark, "t string", text, C.mysql_date("t"))
    assert "no full timestamp" in failure(
        spark, "t string", text.replace("1-01", "1-01 00:00:00"), C.mysql_datetime("t")
    )


def test_infinite_instants_stay_infinite(spark: SparkSession) -> None:
    moments = [(n,) for n in (*LONG, 0, 253402300799999999, -62135596800000000)]
    naive = F.timestamp_micros("n").cast("timestamp_ntz")
    for zone in ("Europe/Berlin", "America/New_York", "+05:30"):
        found = values(
            spark,
            "n long",
            moments,
            F.unix_micros(C.instant(naive, zone)),
            F.unix_micros(C.instant(naive, "UTC")),
        )
        assert [each[0] for each in found[:2]] == list(LONG)
        assert [each[1] for each in found] == [each[0] for each in moments]
    with pytest.raises(Exception, match="long overflow"):
        values(spark, "n long", [(LONG[1] - 1,)], F.unix_micros(C.instant(naive, "America/New_York")))


def test_bits_uuids_and_hexadecimal_text_are_bytes(spark: SparkSession) -> None:
    blobs = [RNG.randbytes(16) for _ in range(50)] + [b"\0" * 16, b"\xff" * 16]
    swapped = R.uuid_text("b", swapped=True)
    for (one, other, back), blob in zip(
        values(
            spark,
            "b binary",
            [(b,) for b in blobs],
            R.uuid_text("b"),
            swapped,
            R.uuid_bytes(R.uuid_text("b")),
        ),
        blobs,
        strict=True,
    ):
        digits = blob.hex()
        assert (one, back) == (str(uuid.UUID(bytes=blob)), blob)
        assert other.replace("-", "") == digits[8:16] + digits[4:8] + digits[:4] + digits[16:]
    sizes = [RNG.randbytes(n) for n in range(40)]
    assert values(
        spark, "b binary", [(b,) for b in sizes], R.hex_text("b"), R.hex_bytes(R.hex_text("b"))
    ) == [(b.hex(), b) for b in sizes]
    bits = [RNG.randbytes(1 + n % 8) for n in range(60)] + [b"\xff" * 8, b"\0"]
    assert values(spark, "b binary", [(b,) for b in bits], R.bit_number("b")) == [
        (Decimal(int.from_bytes(b, "big")),) for b in bits
    ]
    assert values(spark, "b binary", [(b"\0",), (b"\1",)], R.bit_flag("b")) == [(False,), (True,)]


@pytest.mark.parametrize("text", ["ab\n", "0x\n", "a", "0xg0", "0x0x", "ａｂ"])
def test_text_that_is_no_hexadecimal_fails_instead_of_becoming_null(spark: SparkSession, text: str) -> None:
    assert "no hexadecimal text" in failure(spark, "t string", text, R.hex_bytes("t"))
    assert "no UUID" in failure(spark, "t string", "0" * 32 + text, R.uuid_bytes("t"))


def test_geometries_are_cut_where_their_head_ends(spark: SparkSession) -> None:
    shapes = [(n, RNG.randbytes(5 + RNG.randint(0, 40))) for n in (0, 4326, 2**31, 2**32 - 1)]
    rows = [(struct.pack("<I", n) + body,) for n, body in shapes]
    assert values(spark, "g binary", rows, R.srid("g"), R.wkb("g")) == shapes
    for made in (R.srid("g"), R.wkb("g")):
        assert "is no geometry" in failure(spark, "g binary", b"\1\2\3", made)


def test_epochs_are_exact(spark: SparkSession) -> None:
    micros = [
        0,
        -1,
        1,
        253402300799999999,
        -62135596800000000,
        *(RNG.randint(-(10**17), 10**17) for _ in range(99)),
    ]
    rows = [(each, Decimal(each), Decimal(each).scaleb(-6)) for each in micros]
    made = (
        R.epoch("l", "microseconds"),
        R.epoch("d", "microseconds"),
        R.epoch("s"),
        R.epoch(F.col("l") % 10**12, "milliseconds"),
    )
    schema = "l long, d decimal(20,0), s decimal(30,6)"
    for each, found in zip(micros, values(spark, schema, rows, *map(F.unix_micros, made)), strict=True):
        cut = int(Decimal(each) % 10**12)
        assert found == (each, each, each, cut * 1000)
    for unit, schema, value in (
        ("seconds", "v double", 0.1),
        ("seconds", "v double", float("nan")),
        ("seconds", "v double", float("inf")),
        ("seconds", "v decimal(20,7)", Decimal("0.0000001")),
        ("seconds", "v bigint", 2**63 - 1),
        ("milliseconds", "v decimal(20,0)", Decimal(2**64 - 1)),
        ("microseconds", "v double", 0.5),
    ):
        assert failure(spark, schema, value, R.epoch("v", unit))  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.integration
def test_money_is_what_the_server_prints(spark: SparkSession, new_pg: Database) -> None:
    cents = [*LONG, 0, 1, -1, 99, -100, 99999, 100000, *(RNG.randint(*LONG) for _ in range(50))]
    listed = ", ".join(f"('{Decimal(n).scaleb(-2)}'::numeric::money::text)" for n in cents)
    texts = [(str(text),) for (text,) in new_pg.query(f"SELECT * FROM (VALUES {listed}) t")]
    assert [m for (m,) in values(spark, "m string", texts, R.money("m"))] == [
        Decimal(n).scaleb(-2) for n in cents
    ]
    for text in ("$1,2,3.45", "$,.00", "$1.00\n", "1.00", "$12345.00", "($1.00)", "$1.000"):
        assert "no amount in dollars" in failure(spark, "m string", text, R.money("m"))


@pytest.mark.slow
@pytest.mark.integration
def test_arrays_are_written_as_the_server_prints_them(spark: SparkSession, new_pg: Database) -> None:
    lists: list[list[str | None]] = [[], [None], [""], ["NULL", None]]
    lists += [[text] for text in TEXTS]
    lists += [[RNG.choice([*TEXTS, None]) for _ in range(RNG.randint(1, 6))] for _ in range(300)]
    made = [
        text for (text,) in values(spark, "v array<string>", [(each,) for each in lists], R.pg_array("v"))
    ]
    new_pg.execute("CREATE TABLE a (id int, v text[])")
    for number, (text, each) in enumerate(zip(made, lists, strict=True)):
        new_pg.execute(f"INSERT INTO a VALUES ({number}, {_literal(text)})")
        members = ", ".join("NULL" if one is None else _literal(one) for one in each)
        new_pg.execute(f"INSERT INTO a VALUES ({number}, ARRAY[{members}]::text[])")
    printed = new_pg.query("SELECT v::text FROM a ORDER BY id")
    assert [text for (text,) in printed[::2]] == made
    assert [text for (text,) in printed[1::2]] == made, "and each member is what it was"


def _literal(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def test_members_and_codes(spark: SparkSession) -> None:
    rows = [("",), ("a",), ("a b,c",), ("é,ß",), (None,)]
    made = values(spark, "s string", rows, R.members("s"))
    assert made == [([],), (["a"],), (["a b", "c"],), (["é", "ß"],), (None,)]
    found = values(
        spark, "s string", [("",), ("a",), ("A",), (None,)], R.code_of("s", {"a": 1, "A": 2}, invalid=0)
    )
    assert found == [(0,), (1,), (2,), (None,)]
    assert "is none of" in failure(spark, "s string", "a ", R.code_of("s", {"a": 1}))


NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "1.10",
    "100",
    "0.1",
    "-12.5",
    "9007199254740993",
    "18446744073709551615",
    "1" * 38,
]
NUMBERS += [
    "0." + "1" * 37,
    "1e3",
    "1.5E-2",
    "1" * 39,
    "0." + "1" * 40,
    "12345678901234567890e0",
    "1e-400",
    "1e400",
]
NUMBERS += ["1" + "0" * 40 + "e-40", "0.1" + "0" * 40 + "1", "1e99", "5e-324", "1.23456", "255", "1e0"]
KINDS = ("tinyint", "int", "bigint", "decimal(5,2)", "decimal(38,0)", "decimal(38,18)", "decimal(38,38)")


@pytest.mark.slow
@pytest.mark.parametrize("quoted", [False, True])
def test_a_number_out_of_json_is_exact_or_fails(spark: SparkSession, quoted: bool) -> None:
    for kind in KINDS:
        made = R.json_value("d", "$.a[1]", kind)
        fit = [text for text in NUMBERS if _fits(text, kind) and "e" not in text.lower()]
        # Text may be refused that has an exponent, or a point where a whole number is wanted.
        fit = [text for text in fit if not (quoted and "." in text and "(" not in kind)]
        rows = [(_document(text, quoted),) for text in fit]
        assert [found for (found,) in values(spark, "d string", rows, made)] == [
            Decimal(text) for text in fit
        ]
        others = [text for text in NUMBERS if text not in fit]
        for text in RNG.sample(others, 2):
            found = _value_or_failure(spark, _document(text, quoted), made)
            assert isinstance(found, str) or (_fits(text, kind) and found == Decimal(text)), (
                text,
                kind,
                found,
            )


def _document(number: str, quoted: bool) -> str:
    return json.dumps({"a": [None, number]}) if quoted else f'{{"a": [null, {number}]}}'


def _fits(text: str, kind: str) -> bool:
    """Whether a type has room for the number, all of it."""
    number = Fraction(Decimal(text))
    if "(" not in kind:
        bits = {"tinyint": 7, "int": 31, "bigint": 63}[kind]
        return number.denominator == 1 and -(2**bits) <= number < 2**bits
    digits, scale = map(int, kind[8:-1].split(","))
    return bool((number * 10**scale).denominator == 1) and abs(number * 10**scale) < 10**digits


def _value_or_failure(spark: SparkSession, document: str, made: Column) -> Any:
    try:
        [(found,)] = values(spark, "d string", [(document,)], made)
    except (PySparkException, Py4JError) as error:
        return str(error) or "failed"
    return None if found is None else Decimal(found)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ('{"a": 1} x', "int"), ('1] ', "int"), ("1} ", "int"), ("1, 2", "int"), ("", "int"), ("{'a': 1}", "int"),
        ('{"a": 1, "a": 2}', "int"), ('{"a": 1e400}', "double"), ('{"a": "1e400"}', "double"),
        ('{"a": 1e39}', "float"),
        ('{"a": 2}', "boolean"), ('{"a": "2024-01-01 00:00:01"}', "date"), ('{"a": 1}', "timestamp"),
        ('{"a": "2024-01-01 00:00:00.1234567"}', "timestamp_ntz"),
        ('{"a": "2024-01-01 00:00:00+01:00"}', "timestamp_ntz"),
        ('{"a": [1, {"b": 0.1000000000000000000000000000000000000001}]}', "string"),
    ],
)  # fmt: skip
def test_what_json_has_no_such_value_of_fails(spark: SparkSession, document: str, kind: str) -> None:
    said = failure(spark, "d string", document, R.json_value("d", "$.a", kind))
    assert "is no JSON" in said or "has no exact" in said


def test_other_values_out_of_json(spark: SparkSession) -> None:
    cases: Sequence[tuple[str, str, Any]] = (
        ('{"a": true}', "boolean", True), ('{"a": "x\\"y"}', "string", 'x"y'), ('{"a": null}', "string", None),
        ('{"b": 1}', "int", None), ('{"a": {"b": [1.50, null]}}', "string", '{"b":[1.5,null]}'),
        ('{"a": "2024-02-29"}', "date", dt.date(2024, 2, 29)), ('{"a": 0.1}', "double", 0.1),
        ('{"a": "0001-01-01T00:00:00.000001"}', "timestamp_ntz", dt.datetime(1, 1, 1, microsecond=1)),
        ('{"a": "9999-12-31 23:59:59.999999+02:00"}', "timestamp",
         dt.datetime(9999, 12, 31, 21, 59, 59, 999999, tzinfo=dt.UTC)),
    )  # fmt: skip
    for document, kind, wanted in cases:
        assert values(spark, "d string", [(document,)], R.json_value("d", "$.a", kind)) == [(wanted,)]
    for kind in ("binary", "array<int>", "interval"):
        with pytest.raises(MappingError, match="can't be had"):
            R.json_value("d", "$.a", kind)


def test_json_objects_hold_every_digit(spark: SparkSession) -> None:
    rows: list[tuple[Any, ...]] = [
        (text, dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.date(1, 1, 1), Decimal("1E-18"), 2**63 - 1)
        for text in TEXTS
    ]
    made = R.json_object(t="t", m="m", d="d", n="n", l="l", s=F.col("m").cast("timestamp"))
    for (found,), (text, moment, day, number, long) in zip(
        values(spark, "t string, m timestamp_ntz, d date, n decimal(38,18), l long", rows, made),
        rows,
        strict=True,
    ):
        read = json.loads(found, parse_float=Decimal)
        assert (read["t"], read["n"], read["l"]) == (text, number, long)
        assert (
            dt.datetime.fromisoformat(read["m"])
            == moment
            == dt.datetime.fromisoformat(read["s"]).replace(tzinfo=None)
        )
        assert dt.date.fromisoformat(read["d"]) == day
    assert values(spark, "t string", [(None,)], R.json_object(t="t")) == [('{"t":null}',)]
    for end in LONG:
        time: Callable[[], Column] = lambda: F.timestamp_micros("n").cast("timestamp_ntz")  # noqa: E731
        assert "m is infinity" in failure(spark, "n long", end, R.json_object(m=time()))


def test_text_that_was_encoded_twice_is_told_from_other_text(spark: SparkSession) -> None:
    def twice(text: str) -> str:
        return "".join(
            bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte)
            for byte in text.encode()
        )

    meant = [text for text in [*TEXTS, "Café", "日本", "€", "Œuvre"] if not text.isascii()]
    found = values(spark, "t string", [(twice(text),) for text in meant], R.undoubled("t"))
    assert [text for (text,) in found] == meant
    never = ("5iß\x8a", "Ú\x9f")  # latin1 has other characters for these bytes
    ended = ("é\u2028", "Ã©\u2029", "Ã©\u2028\n")  # a pattern's $ takes a separator of lines for no text
    plain = [(text,) for text in (*TEXTS, "Café", "日本 é", *never, *ended)]
    assert values(spark, "t string", plain, R.undoubled("t")) == plain
