"""PostgreSQL's conditions that are true of rows whose value may not fit a target column (see ``model.fit``)."""

from __future__ import annotations

from collections.abc import Callable

from migrator.adapters.sources.postgres.chunks.text_sets import missing_letters
from migrator.model.fit import Limit, Rule
from migrator.model.table import Column

_SHORT, _LONG = r"\u{:04x}", r"\U{:08x}"
_UUID = "^[{]?[0-9a-fA-F]{4}(-?[0-9a-fA-F]{4}){7}[}]?$"

_TIME = "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"


def _time(value: str, column: Column, rule: Rule) -> str:
    digits = int(rule.bounds[0])
    shape = f"{_TIME}([.][0-9]{{1,{digits}}})?$" if digits else f"{_TIME}$"
    return f"{value}::text !~ {_literal(shape)}"


def condition(column: Column, rule: Rule) -> str:
    """SQL over the columns of ``source_row``; empty where the server can't be asked."""
    condition_of = _CONDITIONS.get(rule.limit)
    return condition_of(f"source_row.{_identifier(column.name)}", column, rule) if condition_of else ""


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: object) -> str:
    return "'" + str(text).replace("'", "''") + "'"


def _octets(value: str, column: Column) -> str:
    """Blanks at the end of ``char(n)`` are counted, which a cast to text would cut."""
    if column.type == "binary" or column.source_type.startswith("character("):
        return f"pg_catalog.octet_length({value})"
    return f"pg_catalog.octet_length({value}::text)"


def _characters(value: str, column: Column, rule: Rule) -> str:
    padded = column.source_type.startswith("character(")
    return (
        f"{_octets(value, column) if padded else f'pg_catalog.char_length({value}::text)'} > {rule.bounds[0]}"
    )


def _number(value: str, column: Column) -> str:
    """All digits that a float is printed with, of which a cast to numeric keeps fifteen."""
    return f"{value}::text::numeric" if column.type.startswith("float") else f"{value}::numeric"


def _range(value: str, column: Column, rule: Rule) -> str:
    least, most = rule.bounds
    return f"{_number(value, column)} NOT BETWEEN {least} AND {most}"


def _scale(value: str, column: Column, rule: Rule) -> str:
    number = _number(value, column)
    return f"{number} <> pg_catalog.round({number}, {rule.bounds[0]})"


def _digits(value: str, _: Column, rule: Rule) -> str:
    return f"pg_catalog.char_length(pg_catalog.translate({value}::text, '-.', '')) > {rule.bounds[0]}"


def _bits(value: str, _: Column, rule: Rule) -> str:
    least, most = rule.bounds
    return f"({value}::text !~ '^[01]*$' OR pg_catalog.char_length({value}::text) NOT BETWEEN {least} AND {most})"


def _seconds(value: str, _: Column, rule: Rule) -> str:
    unit = 10 ** (6 - int(rule.bounds[0]))
    return f"pg_catalog.mod(pg_catalog.date_part('microseconds', {value})::bigint, {unit}) <> 0"


def _moments(value: str, column: Column, rule: Rule) -> str:
    first, last = (f"{_literal(bound)}::timestamp" for bound in rule.bounds)
    if column.type == "timestamptz":
        value = f"({value} AT TIME ZONE 'UTC')"
    return f"{value} NOT BETWEEN {first} AND {last}"


def _members(value: str, _: Column, rule: Rule) -> str:
    return f"{value}::text NOT IN ({', '.join(map(_literal, rule.bounds))})"


def _letters(value: str, _: Column, rule: Rule) -> str:
    return f"{value}::text ~ {_literal(missing_letters(str(rule.bounds[0]), _SHORT, _LONG))}"


_CONDITIONS: dict[Limit, Callable[[str, Column, Rule], str]] = {
    Limit.NO_NULL: lambda value, column, rule: f"{value} IS NULL",
    Limit.CHARACTERS: _characters,
    Limit.BITS: _bits,
    Limit.OCTETS: lambda value, column, rule: f"{_octets(value, column)} > {rule.bounds[0]}",
    Limit.WIDTH: lambda value, column, rule: f"{_octets(value, column)} <> {rule.bounds[0]}",
    Limit.RANGE: _range,
    Limit.SCALE: _scale,
    Limit.DIGITS: _digits,
    Limit.FINITE: lambda value, column, rule: f"{value}::text IN ('NaN', 'Infinity', '-Infinity')",
    Limit.SECONDS: _seconds,
    Limit.MOMENTS: _moments,
    Limit.MEMBERS: _members,
    Limit.LETTERS: _letters,
    Limit.TIME: _time,
    Limit.UUID: lambda value, column, rule: f"{value}::text !~ {_literal(_UUID)}",
}
"""U+0000 can't be in its texts, and whether a text is JSON it can be asked since version 16 only."""
