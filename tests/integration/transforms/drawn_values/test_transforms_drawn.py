"""Every public function of the column library over drawn inputs: the exact value, or an error."""

from __future__ import annotations

import datetime as dt
import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.drawn import MANY, drawn
from tests.integration.transforms.drawn_values.cases import Case, Refused
from tests.integration.transforms.drawn_values.json_numbers import JSON
from tests.integration.transforms.drawn_values.numbers import NUMBERS
from tests.integration.transforms.drawn_values.stored import BYTES, MOMENTS
from tests.integration.transforms.drawn_values.texts import TEXTS
from tests.integration.transforms.test_transforms_columns import values
from transforms import columns as C
from transforms import representations as R

pytestmark = pytest.mark.spark

CASES = {**NUMBERS, **TEXTS, **BYTES, **MOMENTS, **JSON}
NO_FUNCTIONS_OF_VALUES = {"as_column", "checked", "no_rest", "whole", "weights"}
"""What the library itself is written with."""
FEW = 60
ALONE = {FEW: 4, MANY: 60}
"""How many inputs that must fail are tried, each by itself: the first that fails ends a job of Spark's."""


def public_functions(*modules: Any) -> set[str]:
    return {
        name
        for module in modules
        for name, found in vars(module).items()
        if inspect.isfunction(found)
        and not name.startswith("_")
        and found.__module__.startswith("transforms")
    }


def missing(functions: set[str]) -> set[str]:
    return functions - NO_FUNCTIONS_OF_VALUES - CASES.keys()


def test_every_public_function_is_drawn_for() -> None:
    assert missing(public_functions(C, R)) == set()
    assert set(CASES) <= public_functions(C, R)


def test_a_function_without_inputs_is_noticed() -> None:
    """The control: one more function in a module of the library."""
    module = ModuleType("transforms.representations")
    exec("def shouted(text): return text", vars(module))
    assert missing(public_functions(C, R, module)) == {"shouted"}


def read_back(document: str, right: dict[str, Any]) -> dict[str, Any]:
    """What JSON text holds, as values of the types that it was made of."""
    found: dict[str, Any] = json.loads(document, parse_float=Decimal)
    readers: dict[type, Callable[[Any], Any]] = {
        dt.datetime: dt.datetime.fromisoformat,
        dt.date: dt.date.fromisoformat,
        Decimal: Decimal,
        float: float,
    }
    return {name: readers.get(type(right.get(name)), lambda v: v)(value) for name, value in found.items()}


def wrong(spark: SparkSession, name: str, case: Case, many: int) -> list[str]:
    """What isn't the exact value, or should have failed and didn't; the first few."""
    good: list[tuple[tuple[Any, ...], Any]] = []
    bad: list[tuple[Any, ...]] = []
    for row in drawn(case.inputs, many):
        try:
            good.append((row, case.right(*row)))
        except Refused:
            bad.append(row)
    found: list[str] = []
    if good:
        made = values(spark, case.schema, [row for row, _ in good], case.made())
        for (row, right), (one,) in zip(good, made, strict=True):
            if name == "json_object":
                one = read_back(one, right)
            if one != right or (isinstance(right, float) and repr(one) != repr(right)):
                found.append(f"{name}{row} is {one!r}, not {right!r}")
    for row in list(dict.fromkeys(bad))[: ALONE[many]]:
        taken = accepted(spark, case, row)
        if taken:
            found.append(f"{name}{row} is {taken[0]!r} where it must fail")
    return found[:5]


def accepted(spark: SparkSession, case: Case, row: tuple[Any, ...]) -> list[Any]:
    """The value of one row, or nothing where it fails. The row is part of the plan: that needs no job."""
    declared = StructType.fromDDL(case.schema)
    assert isinstance(declared, StructType)
    table = pa.Table.from_pylist([dict(zip(declared.names, row, strict=True))], to_arrow_schema(declared))
    try:
        return [next(iter(spark.createDataFrame(table, declared).select(case.made()).collect()[0]))]
    except PySparkException:
        return []


@pytest.mark.parametrize("many", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", CASES)
def test_what_is_drawn_is_exact_or_fails(spark: SparkSession, name: str, many: int) -> None:
    found = [text for case in CASES[name] for text in wrong(spark, name, case, many)]
    assert found == []


@pytest.mark.parametrize("name", ["ratio", "undoubled", "mysql_datetime", "json_value"])
def test_another_value_would_be_noticed(spark: SparkSession, name: str) -> None:
    """The control: an oracle that is otherwise at some inputs, and one that wants all to fail."""
    case = CASES[name][0]

    def otherwise(*row: Any) -> Any:
        found = case.right(*row)
        return found if found is None else (found, 1)

    def never(*row: Any) -> Any:
        raise Refused

    assert wrong(spark, name, replace(case, right=otherwise), FEW)
    assert wrong(spark, name, replace(case, right=never), FEW)
