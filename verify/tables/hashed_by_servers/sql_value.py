"""Values in a server's SQL that stand for what a mapping computes: see
``verify.tables.hashed_by_servers.words``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from verify.tables.hashed_by_servers.spark_numbers import digits, is_number


@dataclass(frozen=True, slots=True)
class SqlValue:
    """A value in SQL.

    Attributes:
        sql: in parentheses, or a name.
        type: Spark's, as in ``Expression.type``; ``void`` is NULL's.
        unknown: conditions, never NULL, under which Spark's value may be another.
        unprinted: conditions, never NULL, under which the mapping refuses the row, and the value's text is
            none that PostgreSQL prints for any value of that type; only for values that are passed on unchanged.
        digits: of a number, its digits before the point at most; None for as many as its type allows.
        nullable: whether NULL is to be expected; only speed depends on it.
        whole_seconds: of a time, whether it has no fraction.
        whole: of a decimal, whether there are only zeros behind its point.
        naive: of an instant that was made of the time on a clock in UTC, that time.
        only_if: a condition and a value, if this value is the latter where the condition holds, and NULL elsewhere.
    """

    sql: str
    type: str
    unknown: tuple[str, ...] = ()
    unprinted: tuple[str, ...] = ()
    digits: int | None = None
    nullable: bool = True
    whole_seconds: bool = False
    whole: bool = False
    naive: str = ""
    only_if: tuple[str, str] | None = None

    def before_point(self) -> int:
        """Digits before the point at most."""
        return digits(self.type)[0] if self.digits is None else self.digits

    def doubts(self) -> tuple[str, ...]:
        """Conditions under which results computed from the value aren't known."""
        return (*self.unknown, *self.unprinted)


class NoWords(Exception):
    """An expression that has no translation to the server's SQL."""


def typed(type_: str, *found: SqlValue) -> None:
    """Raises ``NoWords`` unless all values are of a type."""
    if any(value.type != type_ for value in found):
        raise NoWords


def same_type(found: Sequence[SqlValue], null: Callable[[str], str]) -> list[SqlValue]:
    """Returns the values as values of one type; an untyped NULL becomes NULL of that type. Raises ``NoWords``."""
    types = {value.type for value in found} - {"void"}
    if len(types) != 1:
        raise NoWords
    (type_,) = types
    return [
        SqlValue(null(type_), type_, whole_seconds=True) if value.type == "void" else value for value in found
    ]


def digits_of(values: Sequence[SqlValue]) -> int | None:
    """Returns the most digits before the point of some values of one type; None if they aren't numbers."""
    return max(value.before_point() for value in values) if is_number(values[0].type) else None


def case_of(conditions: Sequence[SqlValue], values: Sequence[str]) -> str:
    """The value of the first condition that holds; the last value is the one where none does."""
    if conditions[0].sql == "true":
        return values[0]
    cases = " ".join(f"WHEN {c.sql} THEN {v}" for c, v in zip(conditions, values, strict=False))
    return f"(CASE {cases} ELSE {values[-1]} END)"
