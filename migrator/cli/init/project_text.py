"""The Python that ``migrator init`` writes for two schemas: a mapping, and a unit test for each function. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from migrator.model.table import TableSchema
from transforms.analysis.matched import Filled, Matched
from transforms.python_source import column_literal, identifier, key_literal, prose, skeleton, text_literal

_CALLS = {
    "": "F.col({name})",
    "flag": "flag({name})",
    "mysql_date": "mysql_date({name})",
    "mysql_datetime": "mysql_datetime({name})",
    "utc": 'instant(mysql_datetime({name}), "UTC")',
}
_IMPORTS = {"flag": ("flag",), "mysql_date": ("mysql_date",), "mysql_datetime": ("mysql_datetime",),
            "utc": ("instant", "mysql_datetime")}  # fmt: skip
_OURS = frozenset({"mapping", "F", "gap", "DataFrame", "Mapping", "__debug__"}.union(*_IMPORTS.values()))
"""Names that a function or parameter of the file must not take away."""
_SAMPLES = {
    "bool": ("True", "pa.bool_()"),
    "int8": ("1", "pa.int8()"),
    "int16": ("1", "pa.int16()"),
    "int32": ("1", "pa.int32()"),
    "int64": ("1", "pa.int64()"),
    "float32": ("1.5", "pa.float32()"),
    "float64": ("1.5", "pa.float64()"),
    "string": ('"text"', "pa.string()"),
    "binary": ('b"\\x01"', "pa.binary()"),
    "date": ("dt.date(2024, 2, 29)", "pa.date32()"),
    "timestamp": ("dt.datetime(2024, 2, 29, 12, 30)", 'pa.timestamp("us")'),
    "timestamptz": ("dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)", 'pa.timestamp("us", "UTC")'),
}
"""Per logical type a value, and the Arrow type, of a test's row."""
_CONVERTED = {
    "flag": ("1", "True"),
    "mysql_date": ('"2024-02-29"', "dt.date(2024, 2, 29)"),
    "mysql_datetime": ('"2024-02-29 12:30:00"', "dt.datetime(2024, 2, 29, 12, 30)"),
    "utc": ('"2024-02-29 12:30:00"', "dt.datetime(2024, 2, 29, 12, 30, tzinfo=dt.UTC)"),
}
"""Per conversion a value of the old column, and what becomes of it."""


def mapping_text(
    tables: Sequence[Matched],
    gaps: Mapping[str, str],
    unread: Sequence[TableSchema],
    unreadable: Mapping[str, str],
) -> str:
    """``mapping.py``: a function for each table, a line for each that has none, comments for old tables left over.

    Args:
        tables: new tables, each with the old one that fills it or may do so.
        gaps: new tables without a function, and why.
        unread: old tables that no function reads.
        unreadable: names of old tables that can't be captured, and why.
    """
    calls = {one.call for table in tables for one in table.columns if not one.gap}
    columns = sorted({name for call in calls for name in _IMPORTS.get(call, ())})
    with_gaps = any(one.gap for table in tables for one in table.columns)
    lines = [
        '"""How the new tables are made from the old ones. By `migrator init`, from names and types: read it."""',
        "",
        "from dbmigrator import Mapping",
        *([f"from dbmigrator.columns import {', '.join(columns)}"] if columns else []),
        *(["from dbmigrator.gaps import gap"] if with_gaps else []),
        *(["from pyspark.sql import DataFrame", "from pyspark.sql import functions as F"] if tables else []),
        "",
        "mapping = Mapping()",
        "",
    ]
    if gaps:
        lines.append("# GAPS: no run starts before each has a function, or its line is deleted.")
        lines += [f"mapping.gap({text_literal(name)}, {text_literal(why)})" for name, why in gaps.items()]
        lines.append("")
    names = _names(tables)
    for table in tables:
        lines += ["", *_function(table, names[table.target.id.name]), ""]
    if unread:
        listed = ", ".join(prose(table.id.name) for table in unread)
        lines += ["", f"# Old tables that nothing reads: {listed}", ""]
    for left in unread:
        lines += [*(f"# {line}" for line in _left_over(left)), ""]
    lines += [f"# {prose(name)} can't be captured: {prose(why)}" for name, why in unreadable.items()]
    return "\n".join(lines).rstrip() + "\n"


def _left_over(source: TableSchema) -> list[str]:
    """The skeleton of a function that takes an old table over as it is."""
    name = source.id.name
    parameter = identifier(name, _OURS)
    columns = [(one.name, one.source_type) for one in source.columns]
    return skeleton(name, source.key, (parameter, parameter), name, columns)


def _names(tables: Sequence[Matched]) -> dict[str, str]:
    """A function's name for each target table, no two the same."""
    found: dict[str, str] = {}
    for table in tables:
        name = word = identifier(table.target.id.name, _OURS)
        number = 1
        while word in found.values():
            number += 1
            word = f"{name}_{number}"
        found[table.target.id.name] = word
    return found


def _function(table: Matched, word: str) -> list[str]:
    name, source = table.target.id.name, table.source.id.name
    parameter = identifier(source, _OURS)
    options = "" if parameter == source else f", sources=[{text_literal(source)}]"
    types = {column.name: column.source_type for column in table.source.columns}
    notes = [f"    # {prose(column)} is left to the target's default" for column in table.left]
    notes += [
        f"    # {prose(f'{column} {types[column]}')} of {prose(source)} is read by nothing"
        for column in table.unread
    ]
    # The function may be right as it stands: only its author knows, so the line stands beside it.
    gap = f"mapping.gap({text_literal(name)}, {text_literal(table.guess)})"
    guess = [f"{gap}  # a guess: correct it, then delete this line"]
    return [
        *(guess if table.guess else []),
        f"@mapping.target({text_literal(name)}, key={key_literal(table.target.key)}{options})",
        f"def {word}({parameter}: DataFrame) -> DataFrame:",
        f'    """One row of {prose(name)} for each of {prose(source)}{"?" if table.guess else "."}"""',
        *notes,
        f"    return {parameter}.select(",
        *(f"        {_expression(name, one)},  # {_types(one)}" for one in table.columns),
        "    )",
    ]


def _types(one: Filled) -> str:
    """The types of both sides, as the servers name them."""
    old = "" if one.source is None else f"{one.source.source_type} -> "
    return prose(f"{old}{one.target.native_type}{'' if one.target.nullable else ' not null'}")


def _expression(table: str, one: Filled) -> str:
    column = one.target.name
    if one.gap or one.source is None:
        return f"gap({text_literal(table)}, {text_literal(column)}, {text_literal(one.gap)})"
    call = _CALLS[one.call].replace("{name}", column_literal(one.source.name))
    plain = one.call == "" and one.source.name == column
    return call if plain else f"{call}.alias({text_literal(column)})"


def tests_text(tables: Sequence[Matched]) -> str:
    """``tests/test_mapping.py``: one row through each function."""
    names = _names(tables)
    bodies = [line for table in tables for line in ("", "", *_test(table, names[table.target.id.name]))]
    body = "\n".join(bodies)
    lines = [
        '"""One row through each function, without servers. Put in values that your rows really have."""',
        "",
        *(["import datetime as dt"] if "dt." in body else []),
        *(["from decimal import Decimal"] if "Decimal(" in body else []),
        "from pathlib import Path",
        "",
        *(["import pyarrow as pa"] if tables else []),
        "from dbmigrator import load_mapping",
        *(["from dbmigrator.testing import run"] if tables else []),
        "",
        'MAPPING = load_mapping(Path(__file__).parents[1] / "mapping.py")',
        body,
    ]
    return "\n".join(lines).rstrip() + "\n"


def _test(table: Matched, word: str) -> list[str]:
    used = {one.source.name: one for one in table.columns if one.source is not None}
    arrays, wanted = [], []
    for column in table.source.columns:
        one = used.get(column.name)
        value, kind = _sample(column.type)
        if one is not None and one.call:
            value = _CONVERTED[one.call][0]
        arrays.append(f"            {text_literal(column.name)}: pa.array([{value}], {kind}),")
    for one in table.columns:
        if one.source is not None and not one.gap:
            value = _CONVERTED[one.call][1] if one.call else _sample(one.source.type)[0]
            wanted.append(f"        {text_literal(one.target.name)}: {value},")
    gaps = [one.target.name for one in table.columns if one.gap]
    target, source = text_literal(table.target.id.name), text_literal(table.source.id.name)
    note = [f"    # fails until the gaps are closed: {prose(', '.join(gaps))}"] if gaps else []
    return [
        f"def test_{word}() -> None:",
        *note,
        "    old = pa.table(",
        "        {",
        *arrays,
        "        }",
        "    )",
        f"    [row] = run(MAPPING, {target}, **{{{source}: old}})",
        "    wanted = {",
        *wanted,
        "    }",
        "    assert {name: row[name] for name in wanted} == wanted",
    ]


def _sample(logical: str) -> tuple[str, str]:
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", logical)
    if found:
        digits, scale = int(found[1]), int(found[2])
        value = "1" if digits > scale else "0"
        return (
            f'Decimal("{value}.{"0" * scale}")' if scale else f'Decimal("{value}")',
            f"pa.decimal128({digits}, {scale})",
        )
    return _SAMPLES[logical]
