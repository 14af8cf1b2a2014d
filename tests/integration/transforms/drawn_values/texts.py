"""Functions of texts."""

from __future__ import annotations

import datetime as dt
import math
import re
import uuid
from collections.abc import Mapping
from decimal import Decimal

from hypothesis import strategies as st

from tests.integration.transforms.drawn_values.cases import (
    ANY_TEXT,
    ASCII_LOWER,
    CODES,
    INTEGERS,
    SPACE,
    SPECIAL,
    TEXT,
    Case,
    Refused,
    decimals,
    of_values,
    rows,
)
from transforms import columns as C
from transforms import representations as R


def right_slug(text: str) -> str:
    return re.sub("[^a-z0-9]+", "-", text.translate(ASCII_LOWER)).strip("-")


def right_code(text: str) -> int:
    if text == "":
        return 0
    if text not in CODES:
        raise Refused
    return CODES[text]


def right_array(members: list[str | None]) -> str:
    """As array_out of PostgreSQL writes texts."""

    def written(member: str | None) -> str:
        if member is None:
            return "NULL"
        if member == "" or member.upper() == "NULL" or re.search(r'[{}",\\ \t\n\r\x0b\x0c]', member):
            return '"' + re.sub(r'(["\\])', r"\\\1", member) + '"'
        return member

    return "{" + ",".join(map(written, members)) + "}"


LATIN1 = {
    bytes([byte]).decode("cp1252") if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D) else chr(byte): byte
    for byte in range(256)
}
"""MySQL's latin1: cp1252, whose holes are the characters of their number."""


def right_undoubled(text: str) -> str:
    if text.isascii() or any(one not in LATIN1 for one in text):
        return text
    try:
        return bytes(LATIN1[one] for one in text).decode()
    except UnicodeDecodeError:
        return text


def doubled(text: str) -> str:
    """As a program leaves it that takes UTF-8 for MySQL's latin1."""
    back = {byte: one for one, byte in LATIN1.items()}
    return "".join(back[byte] for byte in text.encode())


def right_money(text: str) -> Decimal:
    if not re.fullmatch(r"-?\$[0-9]{1,3}(,[0-9]{3})*\.[0-9]{2}", text):
        raise Refused
    return Decimal(re.sub("[$,]", "", text))


def printed_money(cents: int) -> str:
    """As PostgreSQL prints a number of cents."""
    return f"{'-' if cents < 0 else ''}${abs(cents) // 100:,}.{abs(cents) % 100:02}"


FOLDED = str.maketrans(
    {**{one: one.upper() for one in "abcdefghijklmnopqrstuvwxyz"}, **dict.fromkeys("éèêëÉÈÊË", "E"), "ß": "S"}
)
"""By utf8mb4_general_ci, of the letters that are drawn."""


def right_double(value: float | None) -> dict[str, float | None]:
    """JSON has no word for what isn't a finite number."""
    if value is not None and not math.isfinite(value):
        raise Refused
    return {"a": value}


SPACES = st.text(st.sampled_from(" \t\n\u00a0"), max_size=3)
TEXTS: Mapping[str, list[Case]] = {
    "blank_to_null": [
        Case(
            "a string",
            lambda: C.blank_to_null("a"),
            rows(st.one_of(SPACES, ANY_TEXT)),
            of_values(lambda t: t if t.strip(" ") else None),
        )
    ],
    "lower_ascii": [
        Case(
            "a string",
            lambda: C.lower_ascii("a"),
            rows(ANY_TEXT),
            of_values(lambda t: t.translate(ASCII_LOWER)),
        )
    ],
    "slug": [Case("a string", lambda: C.slug("a"), rows(ANY_TEXT), of_values(right_slug))],
    "code_of": [
        Case(
            "a string",
            lambda: R.code_of("a", CODES, invalid=0),
            rows(st.one_of(st.sampled_from(["", "low ", "high", "e\u0301", *CODES, *CODES]), SPECIAL)),
            of_values(right_code),
        )
    ],
    "members": [
        Case(
            "a string", lambda: R.members("a"), rows(ANY_TEXT), of_values(lambda t: t.split(",") if t else [])
        )
    ],
    "pg_array": [
        Case(
            "a array<string>",
            lambda: R.pg_array("a"),
            rows(st.lists(st.one_of(ANY_TEXT, st.none(), st.sampled_from(["NULL", "null", ""])), max_size=5)),
            of_values(right_array),
        )
    ],
    "undoubled": [
        Case(
            "a string",
            lambda: R.undoubled("a"),
            rows(
                st.one_of(
                    TEXT,
                    TEXT.map(doubled),
                    SPECIAL.map(doubled),
                    st.text(st.characters(max_codepoint=0xFF), max_size=6),
                    st.text(st.sampled_from(list(LATIN1)), max_size=4),
                    st.binary(max_size=6).map(lambda b: b.decode("latin-1")),
                )
            ),
            of_values(right_undoubled),
        )
    ],
    "money": [
        Case(
            "a string",
            lambda: R.money("a"),
            rows(st.one_of(INTEGERS.map(printed_money), st.text(st.sampled_from("-$1,.20"), max_size=9))),
            of_values(right_money),
        )
    ],
    "folded": [
        Case(
            "a string",
            lambda: R.folded("a", "utf8mb4_general_ci"),
            rows(st.text(st.sampled_from("abzABZ019 éèËÉß_\t"), max_size=9)),
            of_values(lambda t: t.rstrip(" ").translate(FOLDED)),
        )
    ],
    "json_object": [
        Case(
            "a string, b decimal(38,18), c timestamp_ntz, d long, e date, f boolean",
            lambda: R.json_object(a="a", b="b", c="c", d="d", e="e", f="f"),
            st.tuples(
                st.one_of(ANY_TEXT, st.none()),
                st.one_of(decimals(38, 18), st.none()),
                st.one_of(st.datetimes(dt.datetime(1, 1, 1)), st.none()),
                st.one_of(INTEGERS, st.none()),
                st.one_of(st.dates(), st.none()),
                st.one_of(st.booleans(), st.none()),
            ),
            lambda *values: dict(zip("abcdef", values, strict=True)),
        ),
        Case(
            "a double",
            lambda: R.json_object(a="a"),
            st.tuples(st.one_of(st.floats(), st.none())),
            right_double,
        ),
    ],
    "uuid5": [
        Case(
            "a string, b long, c decimal(38,18), d date",
            lambda: C.uuid5(SPACE, "a", "b", "c", "d"),
            rows(ANY_TEXT, INTEGERS, decimals(38, 18), st.dates(dt.date(1, 1, 1))),
            of_values(lambda a, b, c, d: str(uuid.uuid5(uuid.UUID(SPACE), f"{a}|{b}|{c:f}|{d.isoformat()}"))),
        )
    ],
    "uuid5_binary": [
        Case(
            "a string",
            lambda: C.uuid5_binary(SPACE, "a"),
            rows(ANY_TEXT),
            of_values(lambda a: uuid.uuid5(uuid.UUID(SPACE), a).bytes),
        )
    ],
}
