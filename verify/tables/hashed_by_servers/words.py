"""Translation of a mapping's expressions to a server's SQL where they mean the same; for digests
(``verify.tables.hashed_by_servers.digest``).

A digest may be too strict, never too lenient. So a function is translated only where its value is the same for
every row, or where a condition finds the rows for which that isn't known (``SqlValue.unknown``): they count as
different, and the mapping itself decides. Expressions that aren't listed have no translation: the rows are read.

- Numbers are computed as decimals; a number that Spark's type couldn't hold isn't known.
- Texts are compared by their bytes, as Spark does. Case is a matter of ASCII only: Java and a server differ in the
  rest (a dotted capital I, a final sigma).
- A row that the mapping refuses (``raise_error``) isn't known.
- Spark's session is in UTC.

This module has the rules that all servers share; ``in_postgres`` and ``in_mysql`` add those of an engine.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from verify.tables.hashed_by_servers.spark_numbers import (
    WHOLE,
    digits,
    is_number,
    result_type,
    sure_digits,
)
from verify.tables.hashed_by_servers.sql_value import (
    NoWords,
    SqlValue,
    case_of,
    digits_of,
    same_type,
    typed,
)
from verify.tables.hashed_by_servers.text_words import TRIMS, TextWords

_SQL_MAX = 20_000
"""Characters of a translation at most: an expression that is used twice is written twice."""
_UTC = ("UTC", "Z", "GMT", "+00:00")
_COMPARED = {
    "EqualTo": "=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_OF_EQUALITY = ("EqualTo", "EqualNullSafe")
_COMPUTED = {"Add": "+", "Subtract": "-", "Multiply": "*"}
_OTHER_NAMES = ("Nvl", "Nvl2", "StringTrimBoth")
"""Expressions that Spark replaces by the expression below them."""


class Words(TextWords):
    """Translates over one table's columns. Methods raise ``NoWords``.

    Class attributes are words of the server; ``{0}`` stands for the value, ``{1}`` for another one.

    Attributes:
        same: whether two values, perhaps NULL, are the same.
        cut: a decimal without the digits behind its point.
        digits: a whole number's text.
        whole: a boolean as a number.
    """

    same: str
    cut: str
    digits: str
    whole: str

    def __init__(self, columns: Sequence[Column]):
        super().__init__(columns)
        self._known: Mapping[str, Callable[[Expression], SqlValue]] = {
            "AttributeReference": self._column,
            "Literal": lambda it: self._literal(it.type, it.value),
            "Cast": self._cast,
            "RaiseError": lambda _: SqlValue("NULL", "void", ("true",)),
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
            "ToUTCTimestamp": self._in_zone,
            "FromUTCTimestamp": self._in_zone,
            **dict.fromkeys(_OTHER_NAMES, lambda it: self.of(it.children[0])),
            **dict.fromkeys((*_COMPARED, "EqualNullSafe"), self._compared),
            **dict.fromkeys(_COMPUTED, self._computed),
            **self.of_texts(),
        }

    def column(self, expression: Expression) -> SqlValue | None:
        """A column of a mapping; None where there are no words for it.

        Args:
            expression: over the table's columns, in the order of ``Expression.column``.
        """
        try:
            value = self.of(expression)
        except NoWords:
            return None
        if value.type == "void":
            return None
        return replace(value, nullable=_nullable(expression, self._columns))

    def of(self, expression: Expression) -> SqlValue:
        """Translates an expression to a value."""
        known = self._known.get(expression.kind)
        if known is None:
            raise NoWords
        value = known(expression)
        if len(value.sql) + sum(map(len, value.doubts())) > _SQL_MAX:
            raise NoWords
        return value

    @abstractmethod
    def null(self, type_: str) -> str:
        """NULL of a type."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A constant text."""

    @abstractmethod
    def exact(self, value: SqlValue) -> str:
        """A number as one that doesn't overflow when it is added to another."""

    @abstractmethod
    def constant(self, number: int) -> str:
        """A constant of any size, as an exact number."""

    @abstractmethod
    def equal_texts(self, kind: str, left: str, right: str) -> str:
        """Writes whether texts are equal byte by byte: ``EqualTo``, ``EqualNullSafe``."""

    @abstractmethod
    def blank(self, text: str) -> str:
        """Writes whether a text is of blanks alone; NULL for NULL."""

    @abstractmethod
    def converted(self, value: SqlValue, wanted: str) -> SqlValue | None:
        """A value as one of another type, where neither is a number; None where there are no words."""

    @abstractmethod
    def _column(self, it: Expression) -> SqlValue:
        """A column of the table."""

    def cut_off(self, value: SqlValue) -> str:
        """A decimal without the digits behind its point."""
        return self.cut.format(value.sql)

    def _cast(self, it: Expression) -> SqlValue:
        (child,) = it.children
        value = self.of(child)
        if child.kind == "Literal" and child.value is not None and is_number(it.type):
            if not re.fullmatch(rf"-?\d{{1,{sure_digits(it.type)}}}", child.value):
                raise NoWords
            return SqlValue(value.sql, it.type, digits=value.digits)
        if value.type == "void":
            return SqlValue(self.null(it.type), it.type, value.doubts(), whole_seconds=True)
        if value.type == it.type:
            return value
        if is_number(value.type) and is_number(it.type):
            return self._as_number(value, it.type)
        if value.type in WHOLE and it.type == "string":
            return SqlValue(self.digits.format(value.sql), it.type, value.doubts())
        if value.type in WHOLE and it.type == "boolean":
            return SqlValue(f"({value.sql} <> 0)", it.type, value.doubts())
        if value.type == "boolean" and it.type in WHOLE:
            return SqlValue(self.whole.format(value.sql), it.type, value.doubts())
        converted = self.converted(value, it.type)
        if converted is None:
            raise NoWords
        return converted

    def _case(self, parts: Sequence[Expression]) -> SqlValue:
        """Translates CASE: conditions and values in turn, perhaps with the value of ELSE at the end."""
        found = [self.of(part) for part in parts]
        conditions, values = found[: len(found) // 2 * 2 : 2], found[1::2]
        other = found[-1] if len(found) % 2 else SqlValue("NULL", "void")
        typed("boolean", *conditions)
        branches = same_type([*values, other], self.null)
        unknown = [doubt for condition in conditions for doubt in condition.doubts()]
        unknown += _of_values(conditions, [value.unknown for value in (*values, other)])
        sql, only_if = case_of(conditions, [branch.sql for branch in branches]), None
        if len(values) == 1 and "true" in other.unknown:  # no need to ask for the condition again
            sql = branches[0].sql
        elif len(values) == 1 and other.type == "void":
            only_if = (conditions[0].sql, branches[0].sql)
        return SqlValue(
            sql,
            branches[0].type,
            tuple(dict.fromkeys(unknown)),
            tuple(_of_values(conditions, [value.unprinted for value in (*values, other)])),
            digits_of(branches),
            whole_seconds=all(branch.whole_seconds for branch in branches),
            only_if=only_if,
        )

    def _coalesce(self, it: Expression) -> SqlValue:
        found, unknown = self._all(it.children)
        values = same_type(found, self.null)
        sql = f"coalesce({', '.join(value.sql for value in values)})"
        whole = all(value.whole_seconds for value in values)
        return SqlValue(sql, values[0].type, unknown, digits=digits_of(values), whole_seconds=whole)

    def _null_if(self, it: Expression) -> SqlValue:
        equal = self._compared(Expression("EqualTo", it.children))
        value = self.of(it.children[0])
        sql = f"(CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END)"
        return SqlValue(sql, value.type, equal.unknown, whole_seconds=value.whole_seconds)

    def _of_boolean(self, words: str, it: Expression) -> SqlValue:
        found, unknown = self._all(it.children)
        typed("boolean", *found)
        return SqlValue(words.format(*(value.sql for value in found)), "boolean", unknown)

    def _or(self, it: Expression) -> SqlValue:
        # NULL is rare, so its test comes last: the server evaluates one condition after the other.
        first, second = it.children if it.children[0].kind != "IsNull" else it.children[::-1]
        condition = self._of_boolean("({} OR {})", Expression(it.kind, (first, second)))
        # A checked value compares itself with its cast. Where nothing is cast, both are one value, and equal.
        for one, other in (it.children, it.children[::-1]):
            if (one.kind, other.kind) == ("IsNull", "EqualTo"):
                asked = {self.of(operand).sql for operand in (*one.children, *other.children)}
                if len(asked) == 1:
                    return SqlValue("true", "boolean", condition.unknown)
        return condition

    def _is_null(self, words: str, it: Expression) -> SqlValue:
        value = self.of(it.children[0])
        return SqlValue(words.format(value.sql), "boolean", value.doubts())

    def _compared(self, it: Expression) -> SqlValue:
        (left, right), unknown = self._all(it.children)
        text, other = it.children
        if it.kind == "EqualTo" and text.kind in TRIMS and len(text.children) == 1 and _is_empty(other):
            # A trimmed text is empty if it has blanks alone, and the server can find that without a trim.
            value = self.of(text.children[0])
            typed("string", value)
            return SqlValue(self.blank(value.sql), "boolean", unknown)
        return SqlValue(self._comparison(it.kind, left, right), "boolean", unknown)

    def _comparison(self, kind: str, left: SqlValue, right: SqlValue) -> str:
        if left.type != right.type and not (is_number(left.type) and is_number(right.type)):
            raise NoWords
        if left.type == "string":
            if kind not in _OF_EQUALITY:
                raise NoWords
            return self.equal_texts(kind, left.sql, right.sql)
        return f"({left.sql} {_COMPARED.get(kind, self.same)} {right.sql})"

    def _in(self, it: Expression) -> SqlValue:
        (value, *options), unknown = self._all(it.children)
        if not options:
            raise NoWords
        any_of = " OR ".join(self._comparison("EqualTo", value, option) for option in options)
        return SqlValue(f"({any_of})", "boolean", unknown)

    def _computed(self, it: Expression) -> SqlValue:
        # A server computes constants first, and would fail before it evaluates any condition.
        if not _of_a_row(it):
            raise NoWords
        (left, right), unknown = self._all(it.children)
        wanted = result_type(it.kind, left.type, right.type)
        if wanted is None:
            raise NoWords
        sql = f"({self.exact(left)} {_COMPUTED[it.kind]} {self.exact(right)})"
        sizes = (left.before_point(), right.before_point())
        size = sum(sizes) if it.kind == "Multiply" else max(sizes) + 1
        # The type of a decimal result has room for any result.
        if wanted not in WHOLE or size <= sure_digits(wanted):
            return SqlValue(sql, wanted, unknown, digits=size, whole=_is_whole(it, left, right))
        return self.bounded(SqlValue(sql, wanted, unknown))

    def bounded(self, value: SqlValue) -> SqlValue:
        """A number that counts as unknown where its type can't hold it."""
        return replace(value, unknown=(*value.unknown, self._beyond(value.sql, value.type)))

    def _in_zone(self, it: Expression) -> SqlValue:
        value, zone = it.children
        if zone.kind != "Literal" or zone.value not in _UTC:
            raise NoWords
        moment = self.of(value)
        typed("timestamp", moment)
        return moment

    def _literal(self, type_: str, value: str | None) -> SqlValue:
        if type_ == "void" or (value is None and type_ == ""):
            return SqlValue("NULL", "void")
        if value is None:
            return SqlValue(self.null(type_), type_, whole_seconds=True)
        if type_ == "boolean" and value in ("true", "false"):
            return SqlValue(value, type_)
        if is_number(type_) and re.fullmatch(r"-?\d+(\.\d+)?", value):
            return SqlValue(f"({value})", type_, digits=len(value.lstrip("-").partition(".")[0]))
        if type_ == "string":
            return SqlValue(self.text(value), type_)
        raise NoWords

    def _as_number(self, value: SqlValue, wanted: str) -> SqlValue:
        """A number as another type of number: cut to a whole number, or with at least as many decimals."""
        sql = value.sql
        if wanted in WHOLE:
            sql = self.cut_off(value) if value.type not in WHOLE else sql
        elif digits(wanted)[1] < digits(value.type)[1]:
            raise NoWords
        size = value.before_point()
        held = size <= sure_digits(wanted)
        if wanted in WHOLE and value.type in WHOLE:
            held = held or WHOLE[value.type] <= WHOLE[wanted]
        if held:
            return SqlValue(sql, wanted, value.doubts(), digits=size)
        return self.bounded(SqlValue(sql, wanted, value.doubts()))

    def _beyond(self, sql: str, type_: str) -> str:
        """Writes whether a number is outside the range of one of Spark's types."""
        if type_ in WHOLE:
            size = WHOLE[type_]
            return f"coalesce({sql} NOT BETWEEN {self.constant(-size)} AND {self.constant(size - 1)}, false)"
        return f"coalesce(abs({sql}) >= {self.constant(10 ** digits(type_)[0])}, false)"


def _is_whole(it: Expression, left: SqlValue, right: SqlValue) -> bool:
    """Returns whether a product is a decimal times a number that takes its point to the end: so amounts become
    cents."""
    if it.kind != "Multiply":
        return False
    for value, factor in ((left, it.children[1]), (right, it.children[0])):
        while factor.kind == "Cast":
            (factor,) = factor.children
        number = factor.value if factor.kind == "Literal" else None
        if number is not None and re.fullmatch(r"-?\d+", number):
            return int(number) % int(10 ** digits(value.type)[1]) == 0
    return False


def _of_values(conditions: Sequence[SqlValue], doubts: Sequence[tuple[str, ...]]) -> list[str]:
    """Writes whether any doubt holds about the value that the conditions choose."""
    if not any(doubts):
        return []
    values = [" OR ".join(value_doubts) or "false" for value_doubts in doubts]
    any_of = case_of(conditions, values)
    if any_of == "false":
        return []
    return [f"({conditions[0].sql} IS NOT TRUE)" if values == ["false", "true"] else any_of]


def _nullable(it: Expression, columns: Sequence[Column]) -> bool:
    """Returns whether NULL is to be expected. The answer isn't certain: the text of a refused row is NULL too."""
    if it.column is not None:
        return columns[it.column].nullable
    if it.kind in ("Literal", "RaiseError"):
        return it.kind == "Literal" and it.value is None
    if it.kind == "CaseWhen" and len(it.children) % 2 == 0:
        return True
    children = it.children[1::2] + it.children[-1:] if it.kind == "CaseWhen" else it.children
    return it.kind == "NullIf" or any(_nullable(child, columns) for child in children)


def _is_empty(it: Expression) -> bool:
    """Returns whether an expression is the empty text."""
    return it.kind == "Literal" and it.type == "string" and it.value == ""


def _of_a_row(it: Expression) -> bool:
    """Returns whether an expression holds any column, so that it isn't one value for all rows."""
    return it.kind == "AttributeReference" or any(map(_of_a_row, it.children))
