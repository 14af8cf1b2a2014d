"""Expressions of mappings in the words of MySQL and MariaDB; see ``verify.tables.hashed_by_servers.words``.

- Numbers are decimals of 65 digits at most. A number that could be larger isn't translated: the server would fail.
- Texts are UTF-8 under one collation, so that any two can meet; they are compared as bytes.
- *Dates and times* are texts to a mapping, for they may be impossible (``0000-00-00``, ``2024-05-00``). So what it
  does with such a text is translated for the date itself: ``transforms.columns`` makes a date of a whole one, and
  refuses the row of any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from transforms.columns import FULL_DATE, FULL_DATETIME, ZERO_PART
from verify.readers.mysql.session import quoted
from verify.tables.hashed_by_servers.spark_numbers import DECIMAL, WHOLE, digits
from verify.tables.hashed_by_servers.sql_value import NoWords, SqlValue
from verify.tables.hashed_by_servers.words import Words

_WHOLE_NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "year")
_TEXTS = ("varchar", "char", "tinytext", "text", "mediumtext", "longtext", "enum", "set")
_BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
_TRIMS = {"StringTrim": "TRIM({0})", "StringTrimLeft": "LTRIM({0})", "StringTrimRight": "RTRIM({0})"}
_CASES = {"Lower": "LOWER({0})", "Upper": "UPPER({0})"}
_FULL = {
    "date": (FULL_DATE, "date"),
    "datetime": (FULL_DATETIME, "timestamp_ntz"),
    "timestamp": (FULL_DATETIME, "timestamp_ntz"),
}
"""The form of a calendar value's text, and the type that it is cast to, by declared type."""
_NO_DATE = "0000-00-00"
# To compare with 0 would ask for the time too; of a text or another number servers warn, and make different things.
_NO_DAY = "(YEAR({0}) = 0 AND MONTH({0}) = 0 AND DAY({0}) = 0)"
_IMPOSSIBLE = (
    "coalesce(YEAR({0}) = 0 OR MONTH({0}) = 0 OR DAY({0}) = 0 OR DAY({0}) > DAY(LAST_DAY({0})),"
    " {0} IS NOT NULL)"
)
_DIGITS_MAX, _DECIMALS_MAX = 65, 30
_CHARACTERS = "COLLATE utf8mb4_bin"


def in_mysql(expression: Expression, columns: Sequence[Column], strict_times: bool) -> SqlValue | None:
    """A column of a mapping over a table of MySQL or MariaDB; None where there are no words for it.

    Args:
        expression: over the table's columns.
        columns: the table's, in the order of ``Expression.column``.
        strict_times: whether the target has no times but those of the calendar.
    """
    value = _MySQLWords(columns).column(expression)
    if value is None or strict_times:
        return value and replace(value, unprinted=())
    return replace(value, unknown=value.doubts(), unprinted=())


class _MySQLWords(Words):
    same = "<=>"
    trims = _TRIMS
    cases = _CASES
    not_ascii = "coalesce(LENGTH({0}) <> CHAR_LENGTH({0}), false)"
    characters = "CHAR_LENGTH({0})"
    cut = "TRUNCATE({0}, 0)"
    digits = f"(CAST({{0}} AS CHAR CHARACTER SET utf8mb4) {_CHARACTERS})"
    whole = "({0} + 0)"
    replaced = "REPLACE({0}, {1}, {2})"
    binary = _BINARY

    def _column(self, it: Expression) -> SqlValue:
        if it.column is None:
            raise NoWords
        column = self._columns[it.column]
        name, declared = quoted(column.name), self.declared(column)
        if it.type == "string" and declared in _TEXTS:
            return SqlValue(self._text_of(name, declared, column.collation), it.type)
        number = it.type in WHOLE or DECIMAL.fullmatch(it.type) is not None
        if not (number and (declared in _WHOLE_NUMBERS or declared == "decimal")):
            raise NoWords
        # No zeros that a display width adds.
        plain = (
            name if declared != "year" and "zerofill" not in column.source_type.lower() else f"({name} + 0)"
        )
        return SqlValue(plain, it.type)

    def declared(self, column: Column) -> str:
        return super().declared(column).split(" ")[0]

    def of(self, expression: Expression) -> SqlValue:
        value = self._of_calendar(expression)
        return super().of(expression) if value is None else value

    def null(self, type_: str) -> str:
        return "NULL"

    def text(self, value: str) -> str:
        return f"(_utf8mb4 X'{value.encode().hex()}' {_CHARACTERS})"

    def exact(self, value: SqlValue) -> str:
        if value.type in WHOLE:
            return f"CAST({value.sql} AS DECIMAL(20,0))"
        return value.sql

    def constant(self, number: int) -> str:
        return str(number)

    def equal_texts(self, kind: str, left: str, right: str) -> str:
        sign = "=" if kind == "EqualTo" else self.same
        return f"(CAST({left} AS BINARY) {sign} CAST({right} AS BINARY))"

    def blank(self, text: str) -> str:
        return f"({text} = '')"  # the collation takes blanks at the end for nothing

    def translated(self, text: SqlValue, old: str, new: str) -> str:
        """Replaces one character after the other, so no new character may be one that is replaced later."""
        if set(old) & set(new):
            raise NoWords
        sql = text.sql
        for one, other in zip(old, new, strict=True):
            sql = f"REPLACE({sql}, {self.text(one)}, {self.text(other)})"
        if all("A" <= one <= "Z" and one.lower() == other for one, other in zip(old, new, strict=True)):
            plain = f"LENGTH({text.sql}) = CHAR_LENGTH({text.sql})"
            return f"(CASE WHEN {plain} THEN LOWER({text.sql}) ELSE {sql} END)" if len(old) == 26 else sql
        return sql

    def digits_of_bytes(self, column: str) -> str:
        return f"(CONVERT(HEX({quoted(column)}) USING utf8mb4) {_CHARACTERS})"

    def together(self, texts: Sequence[str]) -> str:
        return f"CONCAT({', '.join(texts)})"

    def converted(self, value: SqlValue, wanted: str) -> SqlValue | None:
        if (value.type, wanted) in (("timestamp_ntz", "timestamp"), ("timestamp", "timestamp_ntz")):
            return replace(value, type=wanted)  # the session is in UTC, as Spark's is
        if value.type == "date" and wanted in ("timestamp_ntz", "timestamp"):
            sql = f"CAST({value.sql} AS DATETIME)"
            return SqlValue(sql, wanted, value.doubts(), whole_seconds=True)
        # A fraction of a second would be rounded to a day.
        if value.type in ("timestamp_ntz", "timestamp") and wanted == "date" and value.whole_seconds:
            return SqlValue(f"DATE({value.sql})", wanted, value.doubts(), whole_seconds=True)
        if (value.type, wanted) == ("boolean", "string"):
            true, false = self.text("true"), self.text("false")
            sql = f"(CASE WHEN {value.sql} THEN {true} WHEN NOT {value.sql} THEN {false} END)"
            return SqlValue(sql, wanted, value.doubts())
        return None

    def bounded(self, value: SqlValue) -> SqlValue:
        """Bounds a number as all servers do, and to NULL beyond: no result may exceed the server's numbers."""
        bounded = super().bounded(value)
        sql = f"(CASE WHEN NOT {bounded.unknown[-1]} THEN {bounded.sql} END)"
        return replace(bounded, sql=sql, only_if=None)

    def _computed(self, it: Expression) -> SqlValue:
        computed = super()._computed(it)
        before, behind = computed.before_point(), digits(computed.type)[1]
        if before + behind > _DIGITS_MAX or behind > _DECIMALS_MAX:
            raise NoWords
        return computed

    def _of_calendar(self, it: Expression) -> SqlValue | None:
        """Translates what a mapping does with the text of a date or time; None where the expression isn't about
        one."""
        if it.kind in ("IsNull", "IsNotNull"):
            found = self._calendar(it.children[0])
            return found and SqlValue(f"({found[0]} IS {'NOT ' * (it.kind == 'IsNotNull')}NULL)", "boolean")
        if it.kind == "StartsWith" and _is_text(it.children[1], _NO_DATE):
            found = self._calendar(it.children[0])
            return found and SqlValue(_NO_DAY.format(found[0]), "boolean")
        return self._whole_day(it)

    def _whole_day(self, it: Expression) -> SqlValue | None:
        """Translates a text to the date or time that it shows if that is a whole one, else to a refused row."""
        match it:
            case Expression(
                "CaseWhen",
                (
                    Expression(
                        "Or",
                        (
                            Expression("IsNull", (null,)),
                            Expression(
                                "And",
                                (
                                    Expression("RLike", (full, pattern)),
                                    Expression("Not", (Expression("RLike", (partial, zero)),)),
                                ),
                            ),
                        ),
                    ),
                    Expression("Cast", (value,)) as cast,
                    Expression("Cast", (Expression("RaiseError"),)),
                ),
            ):
                found = self._calendar(value)
                if found is None or not (null == full == partial == value) or not _is_text(zero, ZERO_PART):
                    return None
                name, declared, whole_seconds = found
                looks, wanted = _FULL[declared]
                if cast.type != wanted or not _is_text(pattern, looks):
                    return None
                odd = (_IMPOSSIBLE.format(name),)
                return SqlValue(name, wanted, unprinted=odd, whole_seconds=whole_seconds)
        return None

    def _calendar(self, it: Expression) -> tuple[str, str, bool] | None:
        """Name and declared type of a column of dates or times, and whether they have whole seconds only."""
        if it.column is None or it.type != "string":
            return None
        column = self._columns[it.column]
        declared = self.declared(column)
        if declared not in _FULL:
            return None
        return quoted(column.name), declared, "(" not in column.source_type

    @staticmethod
    def _text_of(name: str, declared: str, collation: str) -> str:
        utf8 = collation.startswith("utf8mb4") and declared not in ("enum", "set")
        return f"({name if utf8 else f'CONVERT({name} USING utf8mb4)'} {_CHARACTERS})"


def _is_text(it: Expression, value: str) -> bool:
    return it.kind == "Literal" and it.type == "string" and it.value == value
