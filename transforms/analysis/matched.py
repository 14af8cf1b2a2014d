"""The match of old columns to new ones by name and type. Pure.

A conversion is chosen only if it keeps every value, or if the engine's type has no other reading. A column is a gap
if one must know the data to fill it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import types as T

from migrator.model.table import Column, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from transforms.analysis.suggested import Suggestion, likeliest, suggestions
from transforms.casts import cast_problem
from transforms.frames import spark_schema

_WANTED: dict[str, T.DataType] = {
    "boolean": T.BooleanType(), "tinyint": T.ByteType(), "smallint": T.ShortType(), "int": T.IntegerType(),
    "bigint": T.LongType(), "float": T.FloatType(), "double": T.DoubleType(), "string": T.StringType(),
    "binary": T.BinaryType(), "date": T.DateType(), "timestamp_ntz": T.TimestampNTZType(),
    "timestamp": T.TimestampType(),
}  # fmt: skip
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, slots=True)
class Filled:
    """The source of one target column's values.

    Attributes:
        target: the column.
        source: the old column; None if no old column has the target column's name.
        call: the function of ``transforms.columns`` that converts it: ``flag``, ``mysql_date``, ``mysql_datetime``,
            ``utc`` (an instant from a TIMESTAMP of the MySQL family); empty for the column as it is.
        gap: the reason why nothing fills it; empty if something does.
    """

    target: TargetColumn
    source: Column | None
    call: str = ""
    gap: str = ""


@dataclass(frozen=True, slots=True)
class Matched:
    """A target table and what fills it.

    Attributes:
        target: the table.
        source: the old table of the same name, or the one that resembles it most.
        columns: one for every target column that needs a value.
        left: columns that the target fills by itself, and whose name no old column has.
        unread: old columns that nothing reads.
        guess: why nothing but the author can say that its rows come from there; empty for a table of the same name.
    """

    target: TargetTable
    source: TableSchema
    columns: tuple[Filled, ...]
    left: tuple[str, ...]
    unread: tuple[str, ...]
    guess: str = ""


def same_name(name: str, among: Sequence[str]) -> str | None:
    """Returns the name itself if it is ``among`` others, or the only one that differs in case alone."""
    folded = [other for other in among if other.lower() == name.lower()]
    return name if name in among else folded[0] if len(folded) == 1 else None


def matched(source: TableSchema, target: TargetTable, texts_of_times: bool, guess: str = "") -> Matched:
    """Fills a target table from the old one of its name; ``texts_of_times``: whether the source's dates and times
    travel as text. ``guess``: see ``Matched``."""
    old: Mapping[str, Column] = {column.name: column for column in source.columns}
    filled, left, read = [], [], set()
    hints = _hints(source, target, texts_of_times)
    for column in target.columns:
        if column.generated:
            continue
        name = same_name(column.name, list(old))
        # One that may be NULL as well is asked about: catalogs call NULL a default too.
        if name is None and column.has_default and not column.nullable and column.name not in target.key:
            left.append(column.name)
            continue
        read.add(name)
        if name:
            filled.append(_filled(column, old[name], source, texts_of_times))
        else:
            filled.append(_open(column, source, hints.get(column.name)))
    unread = tuple(name for name in old if name not in read)
    return Matched(target, source, tuple(filled), tuple(left), unread, guess)


def guessed(
    tables: Mapping[str, TableSchema], unread: Collection[str], target: TargetTable, texts: bool
) -> Matched:
    """Fills a target table from the old one that resembles it most, for its author to look at.

    Args:
        tables: the old tables by name, at least one.
        unread: names of those that no target table has.
        target: the table.
        texts: whether the source's dates and times travel as text.
    """
    name = likeliest(target, tables, unread)
    return matched(tables[name], target, texts, f"no old table has its name; from {name}?")


def _hints(source: TableSchema, target: TargetTable, texts_of_times: bool) -> dict[str, Suggestion]:
    """Suggestions for the columns whose names no old column has."""
    names = source.names()
    wanted = [one for one in target.columns if not one.generated and same_name(one.name, names) is None]
    used = {same_name(one.name, names) for one in target.columns}
    free = [name for name in names if name not in used]

    def fits(new: TargetColumn, old: Column) -> bool:
        return not _filled(new, old, source, texts_of_times).gap

    return suggestions(target, wanted, source, free, fits)


def _open(target: TargetColumn, source: TableSchema, hint: Suggestion | None) -> Filled:
    """A column of the target that no old column has the name of."""
    default = "; delete the line to leave it to the target's default" if target.has_default else ""
    perhaps = f" <- {hint.text()}" if hint else ""
    why = f"{source.id.name} has no column of that name; {target.native_type}{perhaps}{default}"
    return Filled(target, None, gap=why)


def _filled(target: TargetColumn, column: Column, source: TableSchema, texts_of_times: bool) -> Filled:
    index = source.names().index(column.name)
    found, wanted = spark_schema(source).fields[index].dataType, _wanted(target.spark_type)
    problem = cast_problem(found, wanted)
    if problem is None:
        return Filled(target, column)
    call = _conversion(column, found, wanted, texts_of_times)
    types = f"{column.source_type} does not become {target.native_type} by itself"
    hint = problem.partition("; ")[2]
    return Filled(target, column, call, "" if call else f"{column.name}: {types}; {hint}")


def _conversion(column: Column, found: T.DataType, wanted: T.DataType, texts_of_times: bool) -> str:
    declared = column.source_type.lower()
    if isinstance(wanted, T.BooleanType) and isinstance(found, T.IntegralType):
        return "flag"
    if not texts_of_times:
        return ""
    if isinstance(wanted, T.DateType) and declared == "date":
        return "mysql_date"
    if isinstance(wanted, T.TimestampNTZType) and declared.startswith("datetime"):
        return "mysql_datetime"
    if isinstance(wanted, T.TimestampType) and declared.startswith("timestamp"):
        return "utc"
    return ""


def _wanted(text: str) -> T.DataType:
    found = _DECIMAL.fullmatch(text)
    return T.DecimalType(int(found[1]), int(found[2])) if found else _WANTED[text]
