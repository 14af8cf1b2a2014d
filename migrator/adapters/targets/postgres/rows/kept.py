"""Checks whether PostgreSQL would keep a value as it is. Without a word it rounds numbers and times, and cuts text.

Two answers. Some texts say by themselves that more is written than their type holds: digits behind the
microseconds, blanks beyond ``varchar(n)``, a long ``name``. For the rest the server compares what its type
makes of a text with and without the column's precision, by conditions over the staged rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.targets.postgres.structure import Storage

_LENGTH = re.compile(r"character varying\((\d+)\)")
_NAME_BYTES = 63
_SECONDS = frozenset({"time", "timetz", "interval", "timestamp", "timestamptz", "tsrange", "tstzrange"})
_MULTIRANGES = {"tsmultirange": "tsrange", "tstzmultirange": "tstzrange"}
_BY_VALUE = frozenset({"numeric", "bpchar"})
"""Types whose equal values may be printed in several ways."""
_SAID_ALOUD = frozenset({"bit", "varbit"})
"""Assigned to a column that is too short, these are an error."""
_BEYOND_MICROSECONDS = r"\.\d{6}\d*[1-9]"
_BEYOND_CENTS = r"\.\d{2}\d*[1-9]"
_ONE_BYTE = r"^(\\[0-7]{3}|[\x00-\x7f]?)$"
_MANY_DIGITS = r"(\d\.?){18}"


def check_text(storage: Storage, texts: pa.ChunkedArray) -> None:
    """Refuses texts of which a part would be lost. Raises ``pa.ArrowInvalid``."""
    for found, what in _TEXTS:
        lost = found(storage, texts)
        if lost is not None and pc.any(lost).as_py():
            raise pa.ArrowInvalid(what.replace("{}", storage.column.native_type))


def _blanks_beyond(storage: Storage, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    length = _LENGTH.fullmatch(storage.declared)
    if length is None or storage.base != "varchar":
        return None
    beyond = pc.greater(pc.utf8_length(texts), int(length[1]))
    return pc.and_(
        beyond, pc.less_equal(pc.utf8_length(pc.utf8_rtrim(texts, characters=" ")), int(length[1]))
    )


def _long_name(storage: Storage, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return pc.greater(pc.binary_length(texts), _NAME_BYTES) if storage.base == "name" else None


def _more_than_a_byte(storage: Storage, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return pc.invert(pc.match_substring_regex(texts, _ONE_BYTE)) if storage.base == "char" else None


def _more_than_cents(storage: Storage, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    return pc.match_substring_regex(texts, _BEYOND_CENTS) if _element(storage) == "money" else None


def _more_than_microseconds(storage: Storage, texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    element = _element(storage)
    if _MULTIRANGES.get(element, element) not in _SECONDS:
        return None
    return pc.match_substring_regex(texts, _BEYOND_MICROSECONDS)


_TEXTS: tuple[tuple[Callable[[Storage, pa.ChunkedArray], pa.ChunkedArray | None], str], ...] = (
    (_blanks_beyond, "blanks at the end that {} doesn't hold would be cut off"),
    (_long_name, f"a name of more than {_NAME_BYTES} bytes would be cut"),
    (_more_than_a_byte, 'of more than one byte "char" would keep the first'),
    (_more_than_cents, "digits beyond two behind the point would be rounded"),
    (_more_than_microseconds, "fractions of seconds beyond 6 digits would be rounded"),
)


def lost(storage: Storage, value: str) -> str:
    """SQL that is true of a staged value of which the column would keep less; empty where nothing can be lost.

    ``value``: SQL of the text. For columns that are staged as text.
    """
    element = _element(storage)
    if storage.nested:
        return _printed_otherwise(storage, value)
    if storage.base == "_float4":
        return (
            f"NOT (CAST({value} AS real[])::double precision[] OPERATOR(pg_catalog.=)"
            f" CAST({value} AS double precision[])) AND {_other_digits('real[]', value)}"
        )
    if storage.base == "_float8":
        return f"{value} ~ '{_MANY_DIGITS}' AND {_other_digits('double precision[]', value)}"
    if storage.declared == storage.plain or (element in _SAID_ALOUD and not storage.domain):
        return ""
    whole = f"CAST({value} AS {storage.plain})"
    kept = f"CAST({whole} AS {storage.declared})"
    if element in _BY_VALUE:
        return f"NOT ({kept} OPERATOR(pg_catalog.=) {whole})"
    return f'NOT ({kept}::text COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) {whole}::text)'


def _other_digits(kind: str, value: str) -> str:
    """An array of floats that, as the server prints them, are other numbers than the text says."""
    return f"NOT (CAST({value} AS {kind})::text::numeric[] OPERATOR(pg_catalog.=) CAST({value} AS numeric[]))"


def _printed_otherwise(storage: Storage, value: str) -> str:
    """A value with parts of limited precision that is printed with other parts than it was written with."""
    one, other = (_bare(text) for text in (f"CAST({value} AS {storage.cast})::text", value))
    return f'NOT ({one} COLLATE pg_catalog."C" OPERATOR(pg_catalog.=) {other})'


def _bare(text: str) -> str:
    """Returns SQL for a text without quotes, blanks between parts, and zeros behind the last digit that counts."""
    quotes = f"pg_catalog.regexp_replace({text}, '[\"\\\\]|\\s+(?=[,)}}])', '', 'g')"
    zeros = f"pg_catalog.regexp_replace({quotes}, '(\\.\\d*?)0+(?!\\d)', '\\1', 'g')"
    return f"pg_catalog.regexp_replace({zeros}, '\\.(?!\\d)', '', 'g')"


def _element(storage: Storage) -> str:
    return storage.base.removeprefix("_")
