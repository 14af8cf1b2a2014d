"""The Python that ``migrator init`` writes for two schemas: a mapping, and a unit test for each function. Pure."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from transforms.analysis.matched import Filled, Matched

_CALLS = {
    "": "F.col({name})",
    "flag": "flag({name})",
    "mysql_date": "mysql_date({name})",
    "mysql_datetime": "mysql_datetime({name})",
    "utc": 'instant(mysql_datetime({name}), "UTC")',
}
_IMPORTS = {"flag": ("flag",), "mysql_date": ("mysql_date",), "mysql_datetime": ("mysql_datetime",),
            "utc": ("instant", "mysql_datetime")}  # fmt: skip
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


def mapping_text(tables: Sequence[Matched], gaps: Mapping[str, str], unread: Sequence[str]) -> str:
    """``mapping.py``: a function for each table, a line for each that has none."""
    calls = {one.call for table in tables for one in table.columns if not one.gap}
    columns = sorted({name for call in calls for name in _IMPORTS.get(call, ())})
    with_gaps = any(one.gap for table in tables for one in table.columns)
    lines = [
        '"""How the new tables are made from the old ones. By `migrator init`, from names and types: read it."""',
        "",
        *(
            ["from pyspark.sql import DataFrame", "from pyspark.sql import functions as F", ""]
            if tables
            else []
        ),
        "from transforms import Mapping",
        *([f"from transforms.columns import {', '.join(columns)}"] if columns else []),
        *(["from transforms.gaps import gap"] if with_gaps else []),
        "",
        "mapping = Mapping()",
        "",
    ]
    if gaps:
        lines.append("# GAPS: no run starts before each has a function, or its line is deleted.")
        lines += [f"mapping.gap({_text(name)}, {_text(why)})" for name, why in gaps.items()]
        lines.append("")
    for table in tables:
        lines += ["", *_function(table), ""]
    if unread:
        lines += ["", f"# Old tables that nothing reads: {', '.join(unread)}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _function(table: Matched) -> list[str]:
    name, source = table.target.id.name, table.source.id.name
    key = [_text(column) for column in table.target.key]
    parameter = identifier(source)
    options = "" if parameter == source else f", sources=[{_text(source)}]"
    shown = key[0] if len(key) == 1 else f"({', '.join(key)})"
    notes = [f"    # {column} is left to the target's default" for column in table.left]
    notes += [f"    # {column} of {source} is read by nothing" for column in table.unread]
    return [
        f"@mapping.target({_text(name)}, key={shown}{options})",
        f"def {identifier(name)}({parameter}: DataFrame) -> DataFrame:",
        f'    """One row of {_prose(name)} for each of {_prose(source)}."""',
        *notes,
        f"    return {parameter}.select(",
        *(f"        {_expression(name, one)}," for one in table.columns),
        "    )",
    ]


def _expression(table: str, one: Filled) -> str:
    column = one.target.name
    if one.gap or one.source is None:
        return f"gap({_text(table)}, {_text(column)}, {_text(one.gap)})"
    call = _CALLS[one.call].format(name=_text(one.source.name))
    plain = one.call == "" and one.source.name == column
    return call if plain else f"{call}.alias({_text(column)})"


def tests_text(tables: Sequence[Matched]) -> str:
    """``tests/test_mapping.py``: one row through each function."""
    bodies = [line for table in tables for line in ("", "", *_test(table))]
    body = "\n".join(bodies)
    lines = [
        '"""One row through each function, without servers. Put in values that your rows really have."""',
        "",
        *(["import datetime as dt"] if "dt." in body else []),
        *(["from decimal import Decimal"] if "Decimal(" in body else []),
        "from pathlib import Path",
        "",
        *(["import pyarrow as pa", ""] if tables else []),
        "from transforms import load_mapping",
        *(["from transforms.testing import run"] if tables else []),
        "",
        'MAPPING = load_mapping(Path(__file__).parents[1] / "mapping.py")',
        body,
    ]
    return "\n".join(lines).rstrip() + "\n"


def _test(table: Matched) -> list[str]:
    used = {one.source.name: one for one in table.columns if one.source is not None}
    arrays, wanted = [], []
    for column in table.source.columns:
        one = used.get(column.name)
        value, kind = _sample(column.type)
        if one is not None and one.call:
            value = _CONVERTED[one.call][0]
        arrays.append(f"            {_text(column.name)}: pa.array([{value}], {kind}),")
    for one in table.columns:
        if one.source is not None and not one.gap:
            value = _CONVERTED[one.call][1] if one.call else _sample(one.source.type)[0]
            wanted.append(f"        {_text(one.target.name)}: {value},")
    gaps = [one.target.name for one in table.columns if one.gap]
    note = [f"    # fails until the gaps are closed: {', '.join(gaps)}"] if gaps else []
    return [
        f"def test_{identifier(table.target.id.name)}() -> None:",
        *note,
        "    old = pa.table(",
        "        {",
        *arrays,
        "        }",
        "    )",
        f"    [row] = run(MAPPING, {_text(table.target.id.name)}, **{{{_text(table.source.id.name)}: old}})",
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


def identifier(name: str) -> str:
    """A Python name for a table's name."""
    word = re.sub(r"\W", "_", name)
    word = f"t_{word}" if not word or word[0].isdigit() else word
    return f"{word}_" if keyword.iskeyword(word) or word in ("mapping", "F", "gap") else word


def _text(value: str) -> str:
    """A Python literal with double quotes."""
    shown = repr(value)
    return f'"{shown[1:-1]}"' if shown.startswith("'") and '"' not in shown else shown


def _prose(name: str) -> str:
    return re.sub(r'[\\"\n\r]', "_", name)
