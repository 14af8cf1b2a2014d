"""Columns of every type of PostgreSQL, their extreme values, and random ones, as the text that the server reads."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from random import Random

TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'it''s ok', 'häppy')",
    "CREATE DOMAIN cents AS numeric(12,2) CHECK (VALUE >= 0)",
    "CREATE DOMAIN code AS char(4)",
    "CREATE DOMAIN nested AS cents",
    "CREATE TYPE pair AS (a int, b text)",
    "CREATE TYPE many AS (at timestamptz, long interval, raw bytea, within pair, list float8[])",
    "CREATE TYPE moods AS RANGE (subtype = mood)",
)
CASES = {
    "bool": ["true", "false"],
    "int2": ["-32768", "32767", "0"],
    "int4": ["-2147483648", "2147483647"],
    "int8": ["-9223372036854775808", "9223372036854775807", "9007199254740993"],
    "numeric(38,0)": ["99999999999999999999999999999999999999", "-99999999999999999999999999999999999999"],
    "numeric(38,38)": [
        "0.99999999999999999999999999999999999999",
        "-0.00000000000000000000000000000000000001",
    ],
    "numeric(12,2)": ["1.10", "-0.05", "0"],
    "numeric": ["1.10", "1.1000", "NaN", "Infinity", "-Infinity", "1e-20", "1e40"],
    "numeric(60,10)": ["12345678901234567890123456789012345678901234567890.0123456789"],
    "numeric(5,-2)": ["12345"],
    "float4": ["NaN", "Infinity", "-Infinity", "-0.0", "1.4e-45", "3.4028235e38", "0.1"],
    "float8": ["NaN", "Infinity", "-Infinity", "-0.0", "5e-324", "1.7976931348623157e308", "0.1", "1e23"],
    "text": [
        "",
        " trailing ",
        "quote ' \" \\ back",
        "line\nand\ttab\rret",
        "𝄞 Zoë e\u0301",
        "\\N",
        "\\x41",
        "t",
    ],
    "varchar(10)": ["", "abc  "],
    "char(5)": ["", "ab", "ab   "],
    "name": ["a name"],
    '"char"': ["c"],
    "bytea": ["", "\\x00", "\\x00ff5c27", "\\xdeadbeef"],
    "date": [
        "infinity",
        "-infinity",
        "4714-11-24 BC",
        "0001-12-31 BC",
        "9999-12-31",
        "5874897-12-31",
        "1969-12-31",
    ],
    "timestamp": [
        "infinity",
        "-infinity",
        "4714-11-24 00:00:00 BC",
        "1999-12-31 23:59:59.999999",
        "1969-12-31 23:59:59.999999",
        "290000-01-01 00:00:00.000001",
        "0044-03-15 12:00:00 BC",
    ],
    "timestamp(0)": ["2020-02-29 12:34:56"],
    "timestamptz": [
        "infinity",
        "-infinity",
        "4714-11-24 00:00:00+00 BC",
        "2021-03-28 02:30:00+02",
        "1883-11-18 12:03:58-04:56:02",
        "290000-01-01 00:00:00.000001+00",
    ],
    "time": ["24:00:00", "00:00:00.000001"],
    "timetz": ["23:59:59.5+02"],
    "interval": ["1 year 2 mons -3 days +04:05:06.000001", "-00:00:01", "178000000 years"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "json": ['{"b": 1,   "a": [1, 2.50], "b": null}', "null", '"text"'],
    "jsonb": ['{"b": 1, "a": [1, 2.50], "b": null}', "12345678901234567890.10"],
    "int4[]": ["{}", "{1,NULL,-3}", "[0:1]={7,8}", "{{1,2},{3,4}}"],
    "text[]": ['{"a,b","q\\"uote",NULL,"NULL",""}'],
    "float8[]": ["{0.1,NaN,-0}"],
    "timestamptz[]": ['{"2020-01-01 00:00:00+02",infinity}'],
    "bytea[]": ['{"\\\\x00ff"}'],
    "mood": ["sad", "it's ok", "häppy"],
    "mood[]": ['{sad,"it\'s ok"}'],
    "cents": ["12.30"],
    "nested": ["12.30"],
    "code": ["ab"],
    "pair": ['(1,"a ""b""")'],
    "inet": ["1.2.3.4", "10.0.0.0/8", "::1", "::ffff:1.2.3.4/100", "0.0.0.0/0"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "bit(4)": ["0101"],
    "varbit": ["", "10101"],
    "int4range": ["empty", "[1,5)", "(,)"],
    "tstzrange": ['["2020-01-01 00:00:00+02",)'],
    "int4multirange": ["{[1,3),[5,9)}"],
    "money": ["-12.34"],
    "point": ["(0.1,-0)"],
    "box": ["(1,1),(0,0)"],
    "tsvector": ["a:1A b:2"],
    "pg_lsn": ["16/B374D848"],
    "oid": ["4294967295"],
    "jsonpath": ["$.a[*]"],
    "bpchar": ["", "a  "],
    "bit varying(70)": ["", "1" * 70],
    "cid": ["4294967295"],
    "xid": ["3"],
    "xid8": ["18446744073709551615"],
    "tid": ["(4294967295,65535)"],
    "oidvector": ["1 2 3", ""],
    "int2vector": ["-1 2"],
    "circle": ["<(0.1,-0),1e-300>"],
    "line": ["{1,-1,0.1}"],
    "lseg": ["[(0,0),(1e300,1)]"],
    "path": ["((0,0),(1,1))", "[(0,0),(NaN,Infinity)]"],
    "polygon": ["((0,0),(1,1),(0.1,2))"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "refcursor": ["a cursor"],
    "pg_snapshot": ["10:20:10,14,15"],
    "txid_snapshot": ["10:20:10,14,15"],
    "tsquery": ["'fat' & ( 'rat' | !'cat':*B )"],
    "xml": [],  # the embedded server is built without it, so that only NULL can be stored
    "daterange": ["[2020-01-01,infinity)", "(,)", "empty"],
    "numrange": ["(0.10,NaN]", "[1.50,1.50]"],
    "int8range": ["[-9223372036854775808,9223372036854775807)"],
    "tsrange": ['[-infinity,"0044-03-15 12:00:00 BC"]'],
    "datemultirange": ["{[2020-01-01,2020-01-03),(2021-01-01,)}", "{}"],
    "int8multirange": ["{[1,3),[5,9)}"],
    "nummultirange": ["{[1.10,3),(5,9.00)}"],
    "tsmultirange": ['{["2020-01-01 00:00:00.000001","2021-01-01 00:00:00")}'],
    "tstzmultirange": ['{["2020-01-01 00:00:00+02",infinity)}'],
    "moods": ['["it\'s ok","it\'s ok"]'],
    "pair[]": ['{"(1,a)","(,)"}'],
    "code[]": ["{ab,NULL}"],
    "many": ['("2021-03-28 02:30:00+02","-1 day","\\\\xdead","(1,""a,b"")","{0.1,-0,NaN}")', "(,,,,)"],
    "interval[]": ['{"1 year -1 day","-00:00:00.5"}'],
    "date[]": ["{infinity,0001-12-31 BC}"],
}
MADE = {
    "pg_node_tree": "SELECT adbin FROM pg_attrdef WHERE adrelid = 'made'::regclass",
    "pg_ndistinct": "SELECT stxdndistinct FROM pg_statistic_ext_data",
    "pg_dependencies": "SELECT stxddependencies FROM pg_statistic_ext_data",
    "pg_mcv_list": "SELECT stxdmcv FROM pg_statistic_ext_data",
}
"""Types without an input function: values that the server made."""
NEVER_STORED = {
    "gtsvector": "exists in indexes only",
    "pg_brin_bloom_summary": "exists in indexes only",
    "pg_brin_minmax_multi_summary": "exists in indexes only",
}
REFUSED = {
    *(
        "aclitem",
        "regclass",
        "regcollation",
        "regconfig",
        "regdictionary",
        "regnamespace",
        "regoper",
        "regoperator",
    ),
    *("regproc", "regprocedure", "regrole", "regtype"),
}
"""Their text follows the catalog: a rename changes it, and no row."""

Draw = Callable[[Random], str]


def _whole(bits: int) -> Draw:
    return lambda random: str(random.getrandbits(random.randint(1, bits - 1)) * random.choice((1, -1)))


def _float(code: str, special: bool = True) -> Draw:
    def draw(random: Random) -> str:
        (number,) = struct.unpack(code, random.randbytes(struct.calcsize(code)))
        return repr(number) if special or number == number else "0"

    return draw


def _decimal(precision: int, scale: int) -> Draw:
    def draw(random: Random) -> str:
        digits = str(random.randrange(10 ** random.randint(1, precision))).rjust(scale + 1, "0")
        return f"{random.choice(('', '-'))}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"

    return draw


def _text(random: Random) -> str:
    ends = (0x80, 0x800, 0xD800, 0x11_0000)
    points = (random.randrange(1, random.choice(ends)) for _ in range(random.choice((0, 1, 5, 200))))
    return "".join(chr(point) for point in points if not 0xD800 <= point < 0xE000)


def _bytea(random: Random) -> str:
    return "\\x" + random.randbytes(random.choice((0, 1, 5, 3000))).hex()


def _date(random: Random) -> str:
    year = random.choice((random.randint(1, 4712), random.randint(1, 9999), random.randint(10000, 290_000)))
    era = " BC" if year < 4713 and random.random() < 0.3 else ""
    return f"{year:04d}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}{era}"


def _clock(random: Random) -> str:
    fraction = f".{random.randrange(10**6):06d}" if random.random() < 0.7 else ""
    return f"{random.randrange(24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}{fraction}"


def _moment(zone: Callable[[Random], str]) -> Draw:
    def draw(random: Random) -> str:
        day, _, era = _date(random).partition(" ")
        return f"{day} {_clock(random)}{zone(random)}{' BC' if era else ''}"

    return draw


def _zone(random: Random) -> str:
    return f"{random.choice('+-')}{random.randrange(15):02d}:{random.choice((0, 30, 45)):02d}"


def _interval(random: Random) -> str:
    months, days = (random.randint(-(10**6), 10**6) if random.random() < 0.7 else 0 for _ in range(2))
    return f"{months} months {days} days {random.choice('+-')}{_clock(random)}"


def _document(random: Random, depth: int = 3) -> object:
    scalars: list[object] = [
        None,
        True,
        random.getrandbits(70),
        -random.random(),
        'é😀"\\\n',
        random.random() * 1e200,
    ]
    if not depth or random.random() < 0.4:
        return random.choice(scalars)
    members = [_document(random, depth - 1) for _ in range(random.randrange(4))]
    return members if random.random() < 0.5 else {f"k{random.randrange(99)}é": member for member in members}


def _json(random: Random) -> str:
    return json.dumps(_document(random), ensure_ascii=random.random() < 0.5)


def _array(element: Draw) -> Draw:
    def quoted(random: Random) -> str:
        text = element(random).replace("\\", "\\\\").replace('"', '\\"')
        return "NULL" if random.random() < 0.1 else f'"{text}"'

    return lambda random: f"{{{','.join(quoted(random) for _ in range(random.randrange(5)))}}}"


def _bits(least: int, most: int) -> Draw:
    return lambda random: "".join(random.choice("01") for _ in range(random.randint(least, most)))


DRAW: dict[str, Draw] = {
    "bool": lambda random: random.choice(("true", "false")),
    "int2": _whole(16),
    "int4": _whole(32),
    "int8": _whole(64),
    "numeric(38,0)": _decimal(38, 0),
    "numeric(38,38)": _decimal(38, 38),
    "numeric(12,2)": _decimal(12, 2),
    "numeric": _decimal(400, 30),
    "numeric(60,10)": _decimal(60, 10),
    "float4": _float("<f"),
    "float8": _float("<d"),
    "text": _text,
    "varchar(10)": lambda random: _text(random)[:10],
    "char(5)": lambda random: _text(random)[:5],
    "bytea": _bytea,
    "date": _date,
    "timestamp": _moment(lambda _: ""),
    "timestamptz": _moment(_zone),
    "time": _clock,
    "timetz": lambda random: _clock(random) + _zone(random),
    "interval": _interval,
    "uuid": lambda random: random.randbytes(16).hex(),
    "json": _json,
    "jsonb": _json,
    "int4[]": _array(_whole(32)),
    "text[]": _array(_text),
    "float8[]": _array(_float("<d")),
    "timestamptz[]": _array(_moment(_zone)),
    "bytea[]": _array(_bytea),
    "interval[]": _array(_interval),
    "date[]": _array(_date),
    "inet": lambda random: (
        f"{'.'.join(str(random.randrange(256)) for _ in range(4))}/{random.randint(0, 32)}"
    ),
    "macaddr": lambda random: random.randbytes(6).hex(),
    "macaddr8": lambda random: random.randbytes(8).hex(),
    "bit(4)": _bits(4, 4),
    "varbit": _bits(0, 100),
    "money": _decimal(18, 2),
    "point": lambda random: f"({_float('<d')(random)},{_float('<d')(random)})",
    "oid": lambda random: str(random.getrandbits(32)),
    "pg_lsn": lambda random: f"{random.getrandbits(32):X}/{random.getrandbits(32):X}",
    "cents": lambda random: _decimal(10, 2)(random).lstrip("-"),
}
"""Types of which random values are worth it; the others have their extreme values."""
