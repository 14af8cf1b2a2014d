"""Columns of every type of MySQL and MariaDB, their extreme values, and random ones as SQL literals."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Callable
from random import Random

from tests.servers import has_mysql

Columns = dict[str, tuple[str, list[str]]]
"""Column name -> its declaration and its extreme values."""
Draw = Callable[[Random, list[int], str], str]
"""A random value as SQL, from the sizes in parentheses and the whole declaration."""

MOMENTS = ["'2024-02-29 12:34:56.123456'", "'0000-00-00 00:00:00'"]
COLUMNS: Columns = {
    "tiny": ("tinyint", ["-128", "127", "0"]),
    "tiny_u": ("tinyint unsigned", ["0", "255"]),
    "small": ("smallint", ["-32768", "32767"]),
    "small_u": ("smallint unsigned", ["65535"]),
    "medium": ("mediumint", ["-8388608", "8388607", "-1"]),
    "medium_u": ("mediumint unsigned", ["16777215"]),
    "plain": ("int", ["-2147483648", "2147483647"]),
    "years": ("year", ["1901", "2155", "0", "1970"]),
    "big": ("bigint", ["-9223372036854775808", "9223372036854775807", "9007199254740993"]),
    "big_u": ("bigint unsigned", ["18446744073709551615"]),
    "plain_u": ("int unsigned", ["4294967295"]),
    "filled": ("int(5) zerofill", ["5", "123456"]),
    "filled_decimal": ("decimal(8,2) zerofill", ["1.5"]),
    "filled_float": ("float zerofill", ["2.5"]),
    "widest": (
        "decimal(65,30)",
        [
            "-99999999999999999999999999999999999.999999999999999999999999999999",
            f"0.{'0' * 29}1",
            "-0.5",
            "0",
        ],
    ),
    "money": ("decimal(12,2)", ["-0.01", "9999999999.99", "-9999999999.99", "100"]),
    "whole38": ("decimal(38,0)", ["-" + "9" * 38, "1"]),
    "fraction": ("decimal(9,9)", ["0.000000001", "-0.999999999"]),
    "whole5": ("decimal(5,0)", ["-99999", "0"]),
    "even": ("decimal(18,9)", ["123456789.000000001", "-1.1"]),
    "single": ("float", ["0.1", "-3.4028235e38", "1.17549435e-38", "16777217", "0"]),
    "single_fixed": ("float(7,2)", ["12345.67"]),
    "exact": ("double", ["0.1", "1.7976931348623157e308", "5e-324", "1e15", "123456789012345678", "-1e-15"]),
    "exact_long": (
        "double",
        ["1234567890123456.7", "1601411422831431.4", "-5704310632670461e1", "1e22", "0.0001"],
    ),
    "exact_fixed": ("double(10,3)", ["1.5", "-1234567.891"]),
    "bit1": ("bit(1)", ["b'1'", "b'0'"]),
    "bit10": ("bit(10)", ["b'1010101010'"]),
    "bit64": ("bit(64)", ["x'ffffffffffffffff'", "x'01'"]),
    "labels": ("enum('a','b,c','','é','it''s')", ["'b,c'", "'é'", "''", "'it''s'"]),
    "labels_latin": ("enum('a','ü€') character set latin1", ["'ü€'"]),
    "flags": ("set('x','y','é')", ["''", "'x,é'", "'x,y,é'"]),
    "char10": ("char(10)", ["'abc'", "'tr  '", "''", "'日本'"]),
    "char_long": ("char(200) character set utf8mb4", ["repeat('€', 200)"]),
    "text_utf8": (
        "varchar(300)",
        ["'a  '", "repeat('😀', 300)", "''", r"'a\0b'", "'e\u0301'", "'\u00e9'", r"'\\ \' \n'"],
    ),
    "latin": ("varchar(50) character set latin1", ["x'8180a0ffe98d8f909d'", "'é'"]),
    "latin2": ("varchar(20) character set latin2", ["x'b1e6'"]),
    "cyrillic": ("varchar(20) character set koi8r", ["x'c1c2a0'"]),
    "ucs2": ("varchar(20) character set ucs2", ["'é日'"]),
    "utf16": ("varchar(20) character set utf16", ["'é😀'"]),
    "utf16le": ("varchar(20) character set utf16le", ["'é😀'"]),
    "utf32": ("varchar(20) character set utf32", ["'é😀'"]),
    "utf8mb3": ("varchar(20) character set utf8mb3", ["'é日'"]),
    "ascii_text": ("varchar(20) character set ascii", ["'abc'"]),
    "binary6": ("binary(6)", ["x'610000'", "x'000000000000'"]),
    "binary255": ("binary(255)", ["x'01'"]),
    "varbinary300": ("varbinary(300)", ["x'0061ff00'", "''"]),
    "tinyblobs": ("tinyblob", ["''", "x'00ff'"]),
    "blobs": ("blob", ["repeat(x'00ff', 1000)"]),
    "mediumblobs": ("mediumblob", ["repeat('x', 70000)"]),
    "longblobs": ("longblob", ["x'02'"]),
    "mediumtexts": ("mediumtext", ["''"]),
    "tinytexts": ("tinytext", ["''", "'é'"]),
    "texts": ("text", ["repeat('é', 1000)"]),
    "longtexts": ("longtext", ["repeat('z', 70000)"]),
    "documents": ("json", ["""'{"b": [1, null, "é"], "a": {}}'"""]),
    "days": (
        "date",
        [f"'{day}'" for day in ("0000-00-00", "2024-02-29", "2024-02-31", "2024-00-00", "9999-12-31")],
    ),
    "moments": (
        "datetime",
        ["'0000-00-00 00:00:00'", "'2024-02-31 23:59:59'", "'2024-00-10 01:02:03'", "'9999-12-31 23:59:59'"],
    ),
    **{f"moments{n}": (f"datetime({n})", MOMENTS) for n in range(1, 7)},
    "instants": (
        "timestamp null",
        ["'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "'0000-00-00 00:00:00'"],
    ),
    **{f"instants{n}": (f"timestamp({n}) null", [*MOMENTS, "'1970-01-01 00:00:01.1'"]) for n in range(1, 7)},
    "clock": ("time", ["'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'"]),
    **{
        f"clock{n}": (
            f"time({n})",
            ["'-838:59:58.999999'", "'-00:00:00.5'", "'12:34:56.000001'", "'838:59:59.999999'"],
        )
        for n in range(1, 7)
    },
    "shape": ("geometry", ["st_geomfromtext('POINT(1 2)', 4326)", "st_geomfromtext('LINESTRING(0 0,1 1)')"]),
    "place": ("point", ["point(1, 2)"]),
    "way": ("linestring", []),
    "field": ("polygon", []),
    "places": ("multipoint", []),
    "ways": ("multilinestring", []),
    "fields": ("multipolygon", []),
    "together": ("geometrycollection", []),
}
MULTI_BYTE = ("big5", "cp932", "eucjpms", "euckr", "gb2312", "gbk", "sjis", "ujis")
NATIONAL: Columns = {
    charset: (f"varchar(60) character set {charset}", ["''", "'a~'"]) for charset in MULTI_BYTE
}
OWN_COLUMNS: dict[str, Columns] = {
    "mysql": {
        **({"moods": ("vector(3)", ["to_vector('[1,-2.5,3e38]')"])} if has_mysql(9, 0) else {}),
        "shapes": (
            "geomcollection",
            ["st_geomfromtext('GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))')"],
        ),
        "gb18030": ("varchar(60) character set gb18030", ["'é𝄞'"]),
    },
    "mariadb": {
        "uid": ("uuid", [f"'{'0' * 8}-0000-0000-0000-{'0' * 12}'", f"'{'f' * 8}-ffff-5fff-bfff-{'f' * 12}'"]),
        "ip4": ("inet4", ["'0.0.0.0'", "'255.255.255.255'", "'1.0.0.0'"]),
        "ip6": ("inet6", ["'::'", "'::1'", "'::1:0'", "'::ffff:1.2.3.4'", "'1:2:3:0:5:6:7:8'", "'1::'"]),
        "packed_text": ("varchar(900) compressed", ["''", "'é'", "repeat('é', 900)"]),
        "packed_short": ("varchar(60) compressed character set latin1", ["repeat('€', 60)"]),
        "packed_bytes": ("varbinary(3000) compressed", ["''", "repeat(x'00', 3000)"]),
        "packed_tiny": ("tinytext compressed", ["repeat('a', 250)"]),
        "packed_blob": ("blob compressed", ["''", "repeat('ab', 30000)"]),
        "packed_longtext": ("longtext compressed character set ucs2", ["repeat('é', 70000)"]),
    },
}


def columns_of(kind: str) -> Columns:
    """All columns for an engine."""
    return COLUMNS | NATIONAL | OWN_COLUMNS[kind]


def literal(declared: str, random: Random) -> str:
    """A random value of a type, as SQL."""
    base, _, arguments = declared.replace(" ", "(", 1).replace("((", "(").partition("(")
    sizes = [int(word) for word in arguments.split(")")[0].split(",") if word.strip().isdigit()]
    if "character set" in declared and declared.split()[-1] in (*MULTI_BYTE, "gb18030"):
        return _national(declared.split()[-1], random)
    return _DRAW[base](random, sizes, declared)


def _whole(bits: int) -> Draw:
    def draw(random: Random, _: list[int], declared: str) -> str:
        size = random.randint(0, bits - (declared.find("unsigned") < 0))
        number = random.getrandbits(size) if size else 0
        return str(number if "unsigned" in declared or random.random() < 0.5 else -number)

    return draw


def _decimal(random: Random, sizes: list[int], declared: str) -> str:
    precision, scale = sizes
    digits = str(random.randrange(10 ** random.randint(1, precision))).rjust(scale + 1, "0")
    sign = "-" if random.random() < 0.5 and "zerofill" not in declared else ""
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}"


def _float(code: str) -> Draw:
    def draw(random: Random, sizes: list[int], declared: str) -> str:
        if sizes or "zerofill" in declared:
            return repr(round(random.uniform(0, 9999), 2))
        while True:
            (number,) = struct.unpack(code, random.randbytes(struct.calcsize(code)))
            if math.isfinite(number):
                return repr(number)

    return draw


def _text(most: int) -> Draw:
    def draw(random: Random, sizes: list[int], declared: str) -> str:
        length = min(random.choice((0, 1, 5, 60, 300)), *(sizes[:1] or [most]))
        charset = declared.split("character set ")[1] if "character set" in declared else "utf8mb4"
        end = {"ascii": 0x80, "latin1": 0x100, "utf8mb3": 0xD800, "ucs2": 0xD800}.get(charset, 0x11_0000)
        if charset in ("latin2", "koi8r", "ascii", "latin1"):
            raw = bytes(random.randrange(min(end, 0x100)) for _ in range(length))
            return f"_{charset} x'{raw.hex()}'"
        points = (random.choice((0x80, 0x800, 0xD800, end)) for _ in range(length))
        text = "".join(chr(random.randrange(min(point, end))) for point in points)
        return f"_utf8mb4 x'{text.encode('utf-8', 'ignore').hex()}'"

    return draw


def _national(charset: str, random: Random) -> str:
    """Characters of the two-byte planes that all these sets have, among plain ones."""
    leads, trails = (
        ((0x88, 0x97), (0x80, 0xFC)) if charset in ("sjis", "cp932") else ((0xB0, 0xC6), (0xA1, 0xFE))
    )
    raw = b"".join(
        bytes((random.randint(*leads), random.randint(*trails))) if random.random() < 0.7 else b"x"
        for _ in range(random.randint(0, 50))
    )
    return f"_{charset} x'{raw.hex()}'"


def _bytes(most: int) -> Draw:
    def draw(random: Random, sizes: list[int], _: str) -> str:
        length = min(random.choice((0, 1, 10, 300, most)), *(sizes[:1] or [most]))
        raw = random.randbytes(length) if random.random() < 0.6 else bytes(length)
        return f"x'{raw.hex()}'"

    return draw


def _moment(random: Random, sizes: list[int], declared: str) -> str:
    year = random.randint(1971, 2037) if "timestamp" in declared else random.randint(0, 9999)
    day = random.randint(1, 28) if "timestamp" in declared else random.randint(0, 31)
    month = random.randint(1 if day else 0, 12)
    fraction = f".{random.randrange(10**6):06d}"[: sizes[0] + 1] if sizes else ""
    clock = f"{random.randrange(24):02d}:{random.randrange(60):02d}:{random.randrange(60):02d}{fraction}"
    return f"'{year:04d}-{month:02d}-{day:02d} {clock}'"


def _clock(random: Random, sizes: list[int], _: str) -> str:
    fraction = f".{random.randrange(10**6):06d}"[: sizes[0] + 1] if sizes else ""
    hours = random.choice((0, 23, 24, 838)) if random.random() < 0.3 else random.randrange(839)
    return f"'{random.choice(('', '-'))}{hours:02d}:{random.randrange(60):02d}:{random.randrange(59):02d}{fraction}'"


def _points(random: Random, count: int) -> str:
    return ",".join(f"{random.uniform(-80, 80)!r} {random.uniform(-80, 80)!r}" for _ in range(count))


def _ring(random: Random) -> str:
    x, y, size = random.uniform(-50, 50), random.uniform(-50, 50), random.uniform(1, 9)
    corners = ((x, y), (x + size, y), (x + size, y + size), (x, y))
    return f"({','.join(f'{a!r} {b!r}' for a, b in corners)})"


def _shape(random: Random, _: list[int], declared: str) -> str:
    kinds = {
        "point": lambda: f"POINT({_points(random, 1)})",
        "linestring": lambda: f"LINESTRING({_points(random, random.randint(2, 9))})",
        "polygon": lambda: f"POLYGON({_ring(random)})",
        "multipoint": lambda: f"MULTIPOINT({_points(random, 3)})",
        "multilinestring": lambda: f"MULTILINESTRING(({_points(random, 2)}),({_points(random, 3)}))",
        "multipolygon": lambda: f"MULTIPOLYGON(({_ring(random)}),({_ring(random)}))",
        "geometrycollection": lambda: (
            f"GEOMETRYCOLLECTION(POINT({_points(random, 1)}),LINESTRING({_points(random, 2)}))"
        ),
    }
    declared = declared.replace("geomcollection", "geometrycollection")
    text = kinds[random.choice(list(kinds)) if declared == "geometry" else declared]()
    return f"st_geomfromtext('{text}', {random.choice((0, 4326))})"


def _document(random: Random, depth: int = 3) -> object:
    scalars: list[object] = [
        None,
        True,
        random.getrandbits(60),
        -random.random(),
        'é😀"\\\n',
        random.random() * 1e20,
    ]
    if not depth or random.random() < 0.4:
        return random.choice(scalars)
    members = [_document(random, depth - 1) for _ in range(random.randrange(4))]
    return members if random.random() < 0.5 else {f"k{random.randrange(99)}é": member for member in members}


def _json(random: Random, _: list[int], __: str) -> str:
    return f"convert(x'{json.dumps(_document(random), ensure_ascii=False).encode().hex()}' using utf8mb4)"


def _inet6(random: Random, _: list[int], __: str) -> str:
    words = [random.choice((0, 0, 0xFFFF, random.getrandbits(16))) for _ in range(8)]
    return f"'{':'.join(f'{word:x}' for word in words)}'"


def _uuid(random: Random, _: list[int], __: str) -> str:
    digits = list(random.randbytes(16 if random.random() < 0.7 else 10).ljust(16, b"\0").hex())
    digits[12], digits[16] = random.choice("012345678f"), random.choice("89abcdef")
    return f"'{''.join(digits)}'"


_DRAW: dict[str, Draw] = {
    **{
        name: _whole(bits)
        for name, bits in (("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("int", 32), ("bigint", 64))
    },
    "decimal": _decimal,
    "float": _float("<f"),
    "double": _float("<d"),
    "bit": lambda random, sizes, _: f"b'{random.getrandbits(sizes[0]):b}'",
    "year": lambda random, _, __: str(random.choice((0, random.randint(1901, 2155)))),
    "enum": lambda random, _, __: str(random.randint(1, 2)),
    "set": lambda random, _, __: str(random.randrange(8)),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _text(60)),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes(255)),
    "json": _json,
    **dict.fromkeys(("date", "datetime", "timestamp"), _moment),
    "time": _clock,
    **dict.fromkeys(
        (
            *("geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon"),
            *("geometrycollection", "geomcollection"),
        ),
        _shape,
    ),
    "vector": lambda random, sizes, _: (
        f"to_vector('[{','.join(repr(random.uniform(-9, 9)) for _ in range(sizes[0]))}]')"
    ),
    "uuid": _uuid,
    "inet4": lambda random, _, __: (
        f"'{'.'.join(str(random.choice((0, 255, random.randrange(256)))) for _ in range(4))}'"
    ),
    "inet6": _inet6,
}
