"""Images beside the rows as they were: what counts as a change."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.compared import compared
from migrator.columnar.types import arrow_schema
from migrator.model.table import Column, TableId, TableSchema

SHAPE = pa.schema([("id", pa.int64()), ("read", pa.string()), ("unread", pa.string())])
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from(["a", "A", None]), st.sampled_from(["x", "y", None])),
    unique_by=lambda row: row[0],
    max_size=6,
)


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=SHAPE)


@given(was=ROWS, is_now=ROWS, keyed_only=st.booleans())
def test_only_rows_that_are_the_same_in_what_is_read_are_quiet(
    was: list[tuple[Any, ...]], is_now: list[tuple[Any, ...]], keyed_only: bool
) -> None:
    """As net images are: every key that was there and changed has a before image, perhaps of its key alone."""
    old, new = {row[0]: row for row in was}, {row[0]: row for row in is_now}
    images = [(row[0], None, None) if keyed_only else row for row in was]
    known = [row for key, row in old.items() if key in new]
    found = compared(table(is_now), table(images), table(known), ["id"], ["read"])
    quiet = {row["id"]: row for row in found.quiet.to_pylist()}
    assert set(quiet) == {key for key in new if key in old and old[key][1] == new[key][1]}
    assert all(row["unread"] == new[key][2] for key, row in quiet.items())
    assert {row["id"] for row in found.after.to_pylist()} == set(new) - set(quiet)
    assert found.before is not None
    assert {row["id"] for row in found.before.to_pylist()} == set(old) - set(new)
    if set(new) == set(old):
        assert found.columns == (frozenset() if len(quiet) == len(new) else {"read"})
    else:
        assert found.columns is None


@pytest.mark.parametrize(
    ("one", "other", "kind"),
    [
        ("a", "A", pa.string()),
        ("a", "a ", pa.string()),
        ("", None, pa.string()),
        (b"", None, pa.binary()),
        (0.0, -0.0, pa.float64()),
        (0.0, -0.0, pa.float32()),
        (math.nan, None, pa.float64()),
        (Decimal("1.00"), Decimal("1.01"), pa.decimal128(38, 2)),
        (False, None, pa.bool_()),
    ],
)
def test_values_that_are_alike_are_other_ones(one: Any, other: Any, kind: pa.DataType) -> None:
    def row(value: Any) -> pa.Table:
        return pa.table({"id": [1], "value": pa.array([value], kind)})

    for was, becomes in ((one, other), (other, one)):
        found = compared(row(becomes), None, row(was), ["id"], ["value"])
        assert not found.quiet.num_rows
        assert found.columns == frozenset({"value"})
        assert compared(row(was), None, row(was), ["id"], ["value"]).quiet.num_rows == 1


def test_a_column_of_another_type_or_none_at_all_is_a_change() -> None:
    one = pa.table({"id": [1], "value": pa.array([1], pa.int64())})
    for other in (pa.table({"id": [1], "value": pa.array([1], pa.int32())}), pa.table({"id": [1]})):
        assert compared(one, None, other, ["id"], ["value"]).columns is None
        assert compared(other, None, one, ["id"], ["value"]).quiet.num_rows == 0


@pytest.mark.parametrize("kind", ["bool", "int8", "int64", "float32", "float64", "string", "binary", "date",
    "timestamp", "timestamptz", "decimal(38,35)", "decimal(20,0)"])  # fmt: skip
def test_a_key_may_have_any_type(kind: str) -> None:
    shape = arrow_schema(TableSchema(TableId("old", "t"), (Column("k", kind, False, kind),), ("k",)))
    rows = pa.table([_two_values(shape.field(0).type)], shape)
    found = compared(rows, rows.slice(1), rows.slice(1), ["k"], [])
    assert found.quiet.equals(rows.slice(1))
    assert found.after.equals(rows.slice(0, 1))
    assert found.before is not None
    assert found.before.num_rows == 0
    assert found.columns is None, "a row comes"


def _two_values(kind: pa.DataType) -> pa.Array:
    if kind == pa.binary():
        return pa.array([b"0", b"1"])
    if pa.types.is_decimal(kind):
        return pa.array([Decimal(0), Decimal(1)], kind)
    return pa.array([0, 1], pa.int32() if kind == pa.date32() else pa.int64()).cast(kind)
