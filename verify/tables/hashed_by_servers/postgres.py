"""Expressions of mappings in PostgreSQL's words; see ``verify.tables.hashed_by_servers.words``.

- Numbers are computed as ``numeric``, which doesn't overflow.
- Texts are compared under ``COLLATE "C"``.
- Infinite dates and times aren't known, nor any that Spark's times don't reach, nor a decimal that is no number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from verify.readers.postgres.chunks import quoted
from verify.tables.hashed_by_servers.spark_numbers import DECIMAL, WHOLE, is_number
from verify.tables.hashed_by_servers.sql_value import NoWords, SqlValue
from verify.tables.hashed_by_servers.words import Words

_TIMES = ("date", "timestamp_ntz", "timestamp")
_TEXTS = ("text", "character varying")
_NULLS = {
    "string": "NULL::text",
    "boolean": "NULL::boolean",
    "date": "NULL::date",
    "timestamp_ntz": "NULL::timestamp",
    "timestamp": "NULL::timestamptz",
}
_COMPARED_TEXTS = {"EqualTo": "=", "EqualNullSafe": "IS NOT DISTINCT FROM"}
_LAST = "'294247-01-01'"
"""Spark's times end a few days later, those of the server thirty years, its dates five million."""
_UNREACHED = f"coalesce(NOT isfinite({{0}}) OR {{0}} >= {_LAST}, false)"
_AS_TIME = f"(CASE WHEN {{0}} < {_LAST} THEN {{0}}::timestamp END)"
_TRIMS = {
    "StringTrim": "btrim({0}, ' ')",
    "StringTrimLeft": "ltrim({0}, ' ')",
    "StringTrimRight": "rtrim({0}, ' ')",
}
_CASES = {"Lower": 'lower({0} COLLATE "C")', "Upper": 'upper({0} COLLATE "C")'}
_CASTS = {
    ("timestamp_ntz", "timestamp"): "({0} AT TIME ZONE interval '0')",
    ("timestamp", "timestamp_ntz"): "({0} AT TIME ZONE interval '0')",
    ("timestamp_ntz", "date"): "{0}::date",
    ("timestamp", "date"): "({0} AT TIME ZONE interval '0')::date",
    ("date", "timestamp_ntz"): _AS_TIME,
    ("date", "timestamp"): f"({_AS_TIME} AT TIME ZONE interval '0')",
    ("boolean", "string"): "{0}::text",
}


def in_postgres(expression: Expression, columns: Sequence[Column]) -> SqlValue | None:
    """A column of a mapping over a table of PostgreSQL; None where there are no words for it.

    Args:
        expression: over the table's columns.
        columns: the table's, in the order of ``Expression.column``.
    """
    return _PostgresWords(columns).column(expression)


class _PostgresWords(Words):
    same = "IS NOT DISTINCT FROM"
    trims = _TRIMS
    cases = _CASES
    # A conversion takes longer than all the rest; asked for the encoding is once a query.
    not_ascii = (
        "coalesce(CASE WHEN (SELECT getdatabaseencoding() = 'UTF8') THEN octet_length({0})"
        " ELSE octet_length(convert_to({0}, 'UTF8')) END <> char_length({0}), false)"
    )
    characters = "char_length({0})"
    cut = "trunc({0}::numeric)"
    digits = "trim_scale({0}::numeric)::text"
    whole = "({0}::int)"
    replaced = 'replace({0} COLLATE "C", {1}, {2})'
    binary = ("bytea",)

    def _column(self, it: Expression) -> SqlValue:
        if it.column is None:
            raise NoWords
        column = self._columns[it.column]
        name, declared = quoted(column.name), self.declared(column)
        if it.type in _TIMES:
            return SqlValue(name, it.type, (_UNREACHED.format(name),))
        exact = (it.type in WHOLE and declared in ("smallint", "integer", "bigint")) or (
            (it.type == "boolean" and declared == "boolean")
            or (DECIMAL.fullmatch(it.type) is not None and declared == "numeric")
            or (it.type == "string" and declared in _TEXTS)
        )
        if not exact:
            raise NoWords
        return SqlValue(name, it.type, (f"coalesce({name} = 'NaN', false)",) if declared == "numeric" else ())

    def null(self, type_: str) -> str:
        if is_number(type_):
            return "NULL::numeric"
        if type_ not in _NULLS:
            raise NoWords
        return _NULLS[type_]

    def text(self, value: str) -> str:
        # Backslashes mean something where standard_conforming_strings is off, a brace or a percent sign to Python.
        if re.search(r"[\\{}%\x00]", value):
            raise NoWords
        return "'" + value.replace("'", "''") + "'::text"

    def exact(self, value: SqlValue) -> str:
        return f"{value.sql}::numeric"

    def constant(self, number: int) -> str:
        return f"{number}::numeric"

    def cut_off(self, value: SqlValue) -> str:
        # A whole number's zeros don't matter: what is written of it is without them.
        return value.sql if value.whole else super().cut_off(value)

    def equal_texts(self, kind: str, left: str, right: str) -> str:
        return f'({left} {_COMPARED_TEXTS[kind]} {right} COLLATE "C")'

    def blank(self, text: str) -> str:
        return f"({text}::bpchar = ''::bpchar COLLATE \"C\")"

    def translated(self, text: SqlValue, old: str, new: str) -> str:
        return f"translate({text.sql}, {self.text(old)}, {self.text(new)})"

    def digits_of_bytes(self, column: str) -> str:
        return f"upper(encode({quoted(column)}, 'hex'))"

    def together(self, texts: Sequence[str]) -> str:
        return f"({' || '.join(texts)})"

    def converted(self, value: SqlValue, wanted: str) -> SqlValue | None:
        words = _CASTS.get((value.type, wanted))
        if words is None:
            return None
        naive = value.sql if (value.type, wanted) == ("timestamp_ntz", "timestamp") else ""
        return SqlValue(words.format(value.sql), wanted, value.doubts(), naive=naive)
