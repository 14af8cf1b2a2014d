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
            none that
            PostgreSQL prints for any value of that type; only ever of what is handed on as it is.
        digits: of a number, how many it has before the point at most; None is as many as its type allows.
        nullable: whether NULL is to be expected; only what is quicker depends on it.
        whole_seconds: of a time, whether it has no fraction.
        whole: of a decimal, whether there is nothing but zeros behind its point.
        naive: of an instant, the time that a clock in UTC shows then, where that is what it was made of.
        only_if: a condition and a value, where it is that value if the condition holds, and NULL else.
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
        """Conditions under which what is made of the value isn't known."""
        return (*self.unknown, *self.unprinted)


class NoWords(Exception):
    """An expression for which no words of the server are known."""


def typed(type_: str, *found: SqlValue) -> None:
    """Raises ``NoWords`` unless all values are of a type."""
    if any(value.type != type_ for value in found):
        raise NoWords


def same_type(found: Sequence[SqlValue], null: Callable[[str], str]) -> list[SqlValue]:
    """Values of one type, those of none being NULL of that type."""
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
