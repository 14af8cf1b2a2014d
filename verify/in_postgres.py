"""Expressions of mappings in PostgreSQL's words, where they mean the same there; for digests (``verify.digest``).

A digest may be too strict, never too lenient. So a function is put into SQL only where its value is the same for
every row, or where a condition tells the rows of which that isn't known (``Made.unknown``): they count as different,
and the mapping itself decides. What isn't listed here has no words: then the rows are read, as ever.

- Numbers are computed as ``numeric``, which doesn't overflow; what Spark's type couldn't hold isn't known.
- Texts are compared by their bytes (``COLLATE "C"``), as Spark does. Case is a matter of ASCII only: Java and a
  server's locale differ in the rest (a dotted capital I, a final sigma).
- A row that the mapping refuses (``raise_error``) isn't known.
- Infinite dates and times aren't, nor any that Spark's times don't reach, nor a decimal that is no number.
- Spark's session is in UTC.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from migrator.model.table import Column
from transforms.expressions import Expression
from verify.expression_facts import is_empty, nullable, of_a_row
from verify.postgres_chunks import quoted
from verify.spark_numbers import DECIMAL, WHOLE, digits, is_number, result_type, sure_digits

_SQL_MAX = 20_000
"""Characters: an expression that is used twice is written twice."""
_TIMES = ("date", "timestamp_ntz", "timestamp")
_TEXTS = ("text", "character varying")
_NULLS = {
    "string": "NULL::text",
    "boolean": "NULL::boolean",
    "date": "NULL::date",
    "timestamp_ntz": "NULL::timestamp",
    "timestamp": "NULL::timestamptz",
}
_UTC = ("UTC", "Z", "GMT", "+00:00")
_COMPARED = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "EqualNullSafe": "IS NOT DISTINCT FROM",
}
_OF_EQUALITY = ("EqualTo", "EqualNullSafe")
_COMPUTED = {"Add": "+", "Subtract": "-", "Multiply": "*"}
_OF_TEXT = {
    "StringTrim": "btrim({}, ' ')",
    "StringTrimLeft": "ltrim({}, ' ')",
    "StringTrimRight": "rtrim({}, ' ')",
}
_OF_ASCII = {"Lower": 'lower({} COLLATE "C")', "Upper": 'upper({} COLLATE "C")'}
_NOT_ASCII = (
    "coalesce(CASE WHEN (SELECT getdatabaseencoding() = 'UTF8') THEN octet_length({0})"
    " ELSE octet_length(convert_to({0}, 'UTF8')) END <> char_length({0}), false)"
)
"""A conversion takes longer than all the rest; asked for the encoding is once a query."""
_LAST = "'294247-01-01'"
"""Spark's times end a few days later, those of the server thirty years, its dates five million."""
_UNREACHED = f"coalesce(NOT isfinite({{0}}) OR {{0}} >= {_LAST}, false)"
_AS_TIME = f"(CASE WHEN {{0}} < {_LAST} THEN {{0}}::timestamp END)"
_CASTS = {
    ("timestamp_ntz", "timestamp"): "({0} AT TIME ZONE interval '0')",
    ("timestamp", "timestamp_ntz"): "({0} AT TIME ZONE interval '0')",
    ("timestamp_ntz", "date"): "{0}::date",
    ("timestamp", "date"): "({0} AT TIME ZONE interval '0')::date",
    ("date", "timestamp_ntz"): _AS_TIME,
    ("date", "timestamp"): f"({_AS_TIME} AT TIME ZONE interval '0')",
    ("boolean", "string"): "{0}::text",
}


@dataclass(frozen=True, slots=True)
class Made:
    """A value in SQL.

    Attributes:
        sql: in parentheses, or a name.
        type: Spark's, as in ``Expression.type``; ``void`` is NULL's.
        unknown: conditions, never NULL, under which Spark's value may be another.
        digits: of a number, how many it has before the point at most; None is as many as its type allows.
        nullable: whether NULL is to be expected; only what is quicker depends on it.
    """

    sql: str
    type: str
    unknown: tuple[str, ...] = ()
    digits: int | None = None
    nullable: bool = True

    def before_point(self) -> int:
        """Digits before the point at most."""
        return digits(self.type)[0] if self.digits is None else self.digits


class _NoWords(Exception):
    """It isn't known how to say that."""


def in_postgres(expression: Expression, columns: Sequence[Column]) -> Made | None:
    """A column of a mapping over a table of PostgreSQL; None where there are no words for it.

    Args:
        expression: over the table's columns.
        columns: the table's, in the order of ``Expression.column``.
    """
    try:
        made = _Words(columns).of(expression)
    except _NoWords:
        return None
    if made.type == "void":
        return None
    return replace(made, nullable=nullable(expression, columns))


class _Words:
    """Translates over one table's columns. Methods raise ``_NoWords``."""

    def __init__(self, columns: Sequence[Column]):
        self._columns = columns
        self._known: Mapping[str, Callable[[Expression], Made]] = {
            "AttributeReference": self._column,
            "Literal": lambda it: _literal(it.type, it.value),
            "Cast": self._cast,
            "RaiseError": lambda _: Made("NULL", "void", ("true",)),
            "CaseWhen": lambda it: self._case(it.children),
            "If": lambda it: self._case(it.children),
            "Coalesce": self._coalesce,
            "NullIf": self._null_if,
            "Not": lambda it: self._of_boolean("(NOT {})", it),
            "And": lambda it: self._of_boolean("({} AND {})", it),
            "Or": self._or,
            "IsNull": lambda it: self._is_null("({} IS NULL)", it),
            "IsNotNull": lambda it: self._is_null("({} IS NOT NULL)", it),
            "In": self._in,
            "Concat": self._concat,
            "Length": lambda it: self._of_text("char_length({})", it, "integer"),
            "StringTranslate": self._translate,
            "ToUTCTimestamp": self._in_zone,
            "FromUTCTimestamp": self._in_zone,
            **dict.fromkeys(_COMPARED, self._compared),
            **dict.fromkeys(_COMPUTED, self._computed),
            **dict.fromkeys(_OF_TEXT, lambda it: self._of_text(_OF_TEXT[it.kind], it, "string")),
            **dict.fromkeys(_OF_ASCII, self._of_ascii),
        }

    def of(self, expression: Expression) -> Made:
        """A value."""
        known = self._known.get(expression.kind)
        if known is None:
            raise _NoWords
        made = known(expression)
        if len(made.sql) + sum(map(len, made.unknown)) > _SQL_MAX:
            raise _NoWords
        return made

    def _all(self, expressions: Sequence[Expression]) -> tuple[list[Made], tuple[str, ...]]:
        found = [self.of(each) for each in expressions]
        return found, tuple(dict.fromkeys(part for each in found for part in each.unknown))

    def _column(self, it: Expression) -> Made:
        if it.column is None:
            raise _NoWords
        column = self._columns[it.column]
        name, declared = quoted(column.name), column.source_type.lower().partition("(")[0].strip()
        if it.type in _TIMES:
            return Made(name, it.type, (_UNREACHED.format(name),))
        exact = (it.type in WHOLE and declared in ("smallint", "integer", "bigint")) or (
            (it.type == "boolean" and declared == "boolean")
            or (DECIMAL.fullmatch(it.type) is not None and declared == "numeric")
            or (it.type == "string" and declared in _TEXTS)
        )
        if not exact:
            raise _NoWords
        return Made(name, it.type, (f"coalesce({name} = 'NaN', false)",) if declared == "numeric" else ())

    def _cast(self, it: Expression) -> Made:
        (child,) = it.children
        value = self.of(child)
        if child.kind == "Literal" and child.value is not None and is_number(it.type):
            if not re.fullmatch(rf"-?\d{{1,{sure_digits(it.type)}}}", child.value):
                raise _NoWords
            return Made(value.sql, it.type, digits=value.digits)
        if value.type == "void":
            return Made(_null(it.type), it.type, value.unknown)
        if value.type == it.type:
            return value
        if is_number(value.type) and is_number(it.type):
            return _as_number(value, it.type)
        if (value.type, it.type) in _CASTS:
            return Made(_CASTS[value.type, it.type].format(value.sql), it.type, value.unknown)
        if value.type in WHOLE and it.type == "string":
            return Made(f"trim_scale({value.sql}::numeric)::text", it.type, value.unknown)
        if value.type in WHOLE and it.type == "boolean":
            return Made(f"({value.sql} <> 0)", it.type, value.unknown)
        if value.type == "boolean" and it.type in WHOLE:
            return Made(f"({value.sql}::int)", it.type, value.unknown)
        raise _NoWords

    def _case(self, parts: Sequence[Expression]) -> Made:
        """Conditions and values in turn, perhaps with what holds else at the end."""
        found, _ = self._all(parts)
        conditions, values = found[: len(found) // 2 * 2 : 2], found[1::2]
        other = found[-1] if len(found) % 2 else Made("NULL", "void")
        _typed("boolean", *conditions)
        made = _same_type([*values, other])
        unknown = [part for each in conditions for part in each.unknown]
        if any(each.unknown for each in (*values, other)):
            doubts = [" OR ".join(each.unknown) or "false" for each in (*values, other)]
            unknown.append(_case_of(conditions, doubts))
        sql = _case_of(conditions, [each.sql for each in made])
        if len(values) == 1 and "true" in other.unknown:  # no need to ask for the condition again
            sql = made[0].sql
        return Made(sql, made[0].type, tuple(dict.fromkeys(unknown)), _digits_of(made))

    def _coalesce(self, it: Expression) -> Made:
        found, unknown = self._all(it.children)
        made = _same_type(found)
        sql = f"coalesce({', '.join(each.sql for each in made)})"
        return Made(sql, made[0].type, unknown, _digits_of(made))

    def _null_if(self, it: Expression) -> Made:
        equal = self._compared(Expression("EqualTo", it.children))
        value = self.of(it.children[0])
        sql = f"(CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END)"
        return Made(sql, value.type, equal.unknown)

    def _of_boolean(self, words: str, it: Expression) -> Made:
        found, unknown = self._all(it.children)
        _typed("boolean", *found)
        return Made(words.format(*(each.sql for each in found)), "boolean", unknown)

    def _or(self, it: Expression) -> Made:
        made = self._of_boolean("({} OR {})", it)
        # As checked values ask whether they are what they were cast to, where that is what they were.
        for one, other in (it.children, it.children[::-1]):
            if (one.kind, other.kind) == ("IsNull", "EqualTo"):
                asked = {self.of(each).sql for each in (*one.children, *other.children)}
                if len(asked) == 1:
                    return Made("true", "boolean", made.unknown)
        return made

    def _is_null(self, words: str, it: Expression) -> Made:
        value = self.of(it.children[0])
        return Made(words.format(value.sql), "boolean", value.unknown)

    def _compared(self, it: Expression) -> Made:
        (left, right), unknown = self._all(it.children)
        text, other = it.children
        if it.kind == "EqualTo" and text.kind in _OF_TEXT and len(text.children) == 1 and is_empty(other):
            # What is of blanks alone; none is taken away for that.
            value = self.of(text.children[0])
            _typed("string", value)
            return Made(f"({value.sql}::bpchar = ''::bpchar COLLATE \"C\")", "boolean", unknown)
        return Made(_comparison(it.kind, left, right), "boolean", unknown)

    def _in(self, it: Expression) -> Made:
        (value, *options), unknown = self._all(it.children)
        if not options:
            raise _NoWords
        any_of = " OR ".join(_comparison("EqualTo", value, each) for each in options)
        return Made(f"({any_of})", "boolean", unknown)

    def _computed(self, it: Expression) -> Made:
        if not of_a_row(it):  # the server would compute it beforehand, and fail before it asks any condition
            raise _NoWords
        (left, right), unknown = self._all(it.children)
        wanted = result_type(it.kind, left.type, right.type)
        if wanted is None:
            raise _NoWords
        sql = f"({left.sql}::numeric {_COMPUTED[it.kind]} {right.sql}::numeric)"
        sizes = (left.before_point(), right.before_point())
        size = sum(sizes) if it.kind == "Multiply" else max(sizes) + 1
        # A decimal's type has room for whatever comes of two others.
        held = wanted not in WHOLE or size <= sure_digits(wanted)
        return Made(
            sql, wanted, unknown if held else (*unknown, _beyond(sql, wanted)), size if held else None
        )

    def _concat(self, it: Expression) -> Made:
        found, unknown = self._all(it.children)
        if not found:
            raise _NoWords
        _typed("string", *found)
        return Made(f"({' || '.join(each.sql for each in found)})", "string", unknown)

    def _of_text(self, words: str, it: Expression, type_: str) -> Made:
        if len(it.children) != 1:  # to trim other characters than spaces
            raise _NoWords
        value = self.of(it.children[0])
        _typed("string", value)
        return Made(words.format(value.sql), type_, value.unknown)

    def _of_ascii(self, it: Expression) -> Made:
        made = self._of_text(_OF_ASCII[it.kind], it, "string")
        value = self.of(it.children[0])
        return Made(made.sql, made.type, (*made.unknown, _NOT_ASCII.format(value.sql)))

    def _translate(self, it: Expression) -> Made:
        (value, old, new), unknown = self._all(it.children)
        _typed("string", value)
        texts = [each.value for each in it.children[1:] if each.kind == "Literal" and each.value is not None]
        if len(texts) != 2 or len(texts[0]) != len(texts[1]) or len(set(texts[0])) != len(texts[0]):
            raise _NoWords
        return Made(f"translate({value.sql}, {old.sql}, {new.sql})", "string", unknown)

    def _in_zone(self, it: Expression) -> Made:
        value, zone = it.children
        if zone.kind != "Literal" or zone.value not in _UTC:
            raise _NoWords
        made = self.of(value)
        _typed("timestamp", made)
        return made


def _literal(type_: str, value: str | None) -> Made:
    if type_ == "void" or (value is None and type_ == ""):
        return Made("NULL", "void")
    if value is None:
        return Made(_null(type_), type_)
    if type_ == "boolean" and value in ("true", "false"):
        return Made(value, type_)
    if is_number(type_) and re.fullmatch(r"-?\d+(\.\d+)?", value):
        return Made(f"({value})", type_, digits=len(value.lstrip("-").partition(".")[0]))
    # Backslashes mean something where standard_conforming_strings is off, and a brace or a percent sign to Python.
    if type_ == "string" and not re.search(r"[\\{}%\x00]", value):
        return Made("'" + value.replace("'", "''") + "'::text", type_)
    raise _NoWords


def _null(type_: str) -> str:
    if is_number(type_):
        return "NULL::numeric"
    if type_ not in _NULLS:
        raise _NoWords
    return _NULLS[type_]


def _as_number(value: Made, wanted: str) -> Made:
    """A number as another type of number: cut to a whole number, or with at least as many decimals."""
    sql = value.sql
    if wanted in WHOLE:
        sql = f"trunc({sql}::numeric)" if value.type not in WHOLE else sql
    elif digits(wanted)[1] < digits(value.type)[1]:
        raise _NoWords
    size = value.before_point()
    held = size <= sure_digits(wanted)
    if wanted in WHOLE and value.type in WHOLE:
        held = held or WHOLE[value.type] <= WHOLE[wanted]
    if held:
        return Made(sql, wanted, value.unknown, size)
    return Made(sql, wanted, (*value.unknown, _beyond(sql, wanted)))


def _beyond(sql: str, type_: str) -> str:
    """Whether a number isn't one that a type of Spark's holds."""
    if type_ in WHOLE:
        size = WHOLE[type_]
        return f"coalesce({sql} NOT BETWEEN {-size}::numeric AND {size - 1}::numeric, false)"
    return f"coalesce(abs({sql}) >= 1e{digits(type_)[0]}::numeric, false)"


def _comparison(kind: str, left: Made, right: Made) -> str:
    if left.type != right.type and not (is_number(left.type) and is_number(right.type)):
        raise _NoWords
    if left.type == "string":
        if kind not in _OF_EQUALITY:
            raise _NoWords
        return f'({left.sql} {_COMPARED[kind]} {right.sql} COLLATE "C")'
    return f"({left.sql} {_COMPARED[kind]} {right.sql})"


def _typed(type_: str, *found: Made) -> None:
    if any(each.type != type_ for each in found):
        raise _NoWords


def _same_type(found: Sequence[Made]) -> list[Made]:
    """Values of one type, those of none being NULL of that type."""
    types = {each.type for each in found} - {"void"}
    if len(types) != 1:
        raise _NoWords
    (type_,) = types
    return [Made(_null(type_), type_) if each.type == "void" else each for each in found]


def _digits_of(made: Sequence[Made]) -> int | None:
    """Of any of some values of one type."""
    return max(each.before_point() for each in made) if is_number(made[0].type) else None


def _case_of(conditions: Sequence[Made], values: Sequence[str]) -> str:
    if conditions[0].sql == "true":
        return values[0]
    cases = " ".join(f"WHEN {c.sql} THEN {v}" for c, v in zip(conditions, values, strict=False))
    return f"(CASE {cases} ELSE {values[-1]} END)"
