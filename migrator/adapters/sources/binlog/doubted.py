"""MySQL's and MariaDB's conditions, true of rows whose value may not fit a target column (see ``model.fit``)."""

from __future__ import annotations

from collections.abc import Callable

from migrator.model.fit import Limit, Rule
from migrator.model.table import Column

_UUID = "^[{]?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}[}]?$"

_TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def _time(value: str, column: Column, rule: Rule) -> str:
    digits = int(rule.bounds[0])
    shape = f"{_TIME}([.][0-9]{{1,{digits}}})?$" if digits else f"{_TIME}$"
    return f"NOT {_utf8(value)} REGEXP {_literal(shape)}"


def condition(column: Column, rule: Rule) -> str:
    """SQL over the table's columns; empty where the server can't be asked."""
    condition_of = _CONDITIONS.get(rule.limit)
    return condition_of("`" + column.name.replace("`", "``") + "`", column, rule) if condition_of else ""


def _literal(text: object) -> str:
    """Returns a literal in hexadecimal digits: the meaning of a backslash depends on the session."""
    return f"_utf8mb4 0x{str(text).encode().hex()}" if str(text) else "''"


def _utf8(value: str) -> str:
    return f"CONVERT({value} USING utf8mb4)"


def _octets(value: str, column: Column) -> str:
    return f"LENGTH({value})" if column.type == "binary" else f"LENGTH({_utf8(value)})"


def _bits(value: str, _: Column, rule: Rule) -> str:
    least, most = rule.bounds
    return f"(NOT {_utf8(value)} REGEXP '^[01]*$' OR CHAR_LENGTH({value}) NOT BETWEEN {least} AND {most})"


def _seconds(value: str, _: Column, rule: Rule) -> str:
    return f"MICROSECOND({value}) % {10 ** (6 - int(rule.bounds[0]))} <> 0"


def _members(value: str, _: Column, rule: Rule) -> str:
    members = ", ".join(_literal(member) for member in rule.bounds)
    return f"{_utf8(value)} COLLATE utf8mb4_bin NOT IN ({members})"


def _letters(value: str, _: Column, rule: Rule) -> str:
    """Asks the server's own tables: a letter that a character set lacks becomes a question mark."""
    there = f"CONVERT(CONVERT({value} USING {rule.bounds[0]}) USING utf8mb4)"
    return f"CAST({there} AS BINARY) <> CAST({_utf8(value)} AS BINARY)"


_CONDITIONS: dict[Limit, Callable[[str, Column, Rule], str]] = {
    Limit.NO_NULL: lambda value, column, rule: f"{value} IS NULL",
    Limit.CHARACTERS: lambda value, column, rule: f"CHAR_LENGTH({value}) > {rule.bounds[0]}",
    Limit.BITS: _bits,
    Limit.OCTETS: lambda value, column, rule: f"{_octets(value, column)} > {rule.bounds[0]}",
    Limit.WIDTH: lambda value, column, rule: f"{_octets(value, column)} <> {rule.bounds[0]}",
    Limit.RANGE: lambda value, column, rule: f"{value} NOT BETWEEN {rule.bounds[0]} AND {rule.bounds[1]}",
    Limit.SCALE: lambda value, column, rule: f"{value} <> ROUND({value}, {rule.bounds[0]})",
    Limit.DIGITS: lambda value, column, rule: (
        f"CHAR_LENGTH(REPLACE(ABS({value}), '.', '')) > {rule.bounds[0]}"
    ),
    Limit.SECONDS: _seconds,
    Limit.MOMENTS: lambda value, column, rule: (
        f"{value} NOT BETWEEN '{rule.bounds[0]}' AND '{rule.bounds[1]}'"
    ),
    Limit.MEMBERS: _members,
    Limit.LETTERS: _letters,
    Limit.NO_ZERO: lambda value, column, rule: f"INSTR(CAST({_utf8(value)} AS BINARY), CHAR(0)) > 0",
    Limit.JSON: lambda value, column, rule: f"NOT JSON_VALID({value})",
    Limit.TIME: _time,
    Limit.UUID: lambda value, column, rule: f"NOT {_utf8(value)} REGEXP {_literal(_UUID)}",
}
"""Numbers are always finite."""
