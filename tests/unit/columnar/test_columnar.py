"""Text to Arrow, netting, and dropping keys: the pure functions both paths share."""

from __future__ import annotations

import datetime
import decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.keys import without_keys
from migrator.columnar.netting import net_images
from migrator.columnar.text import rows_to_table
from migrator.columnar.types import image_table
from migrator.errors import SourceError
from migrator.model.event import Row
from migrator.model.table import Column, TableId, TableSchema


def schema_of(*types: str, key: tuple[str, ...] = ("c0",)) -> TableSchema:
    columns = tuple(Column(f"c{n}", kind, True, kind) for n, kind in enumerate(types))
    return TableSchema(TableId("s", "t"), columns, key)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int64", "-9223372036854775808", -(2**63)),
        ("int8", "-128", -128),
        ("bool", "t", True),
        ("bool", "f", False),
        ("decimal(38,10)", "-1234567890123456789012345678.0123456789", None),
        ("float64", "1e-300", 1e-300),
        ("float64", "Infinity", float("inf")),
        ("string", "", ""),
        ("binary", b"\x00\xff", b"\x00\xff"),
        ("date", "0001-01-01", datetime.date(1, 1, 1)),
        ("timestamp", "2013-03-10 02:30:00.000001", datetime.datetime(2013, 3, 10, 2, 30, 0, 1)),
    ],
)
def test_text_becomes_the_value_it_says(kind: str, text: str | bytes, value: object) -> None:
    read = rows_to_table(schema_of(kind), [(text,), (None,)])["c0"].to_pylist()
    if value is None:
        assert isinstance(text, str)
        value = decimal.Decimal(text)
    assert read == [value, None]


@pytest.mark.parametrize(
    ("kind", "text", "number"),
    [
        ("date", "infinity", 2**31 - 1),
        ("date", "-infinity", -(2**31)),
        ("date", "4714-01-01 BC", -2440915),
        ("timestamptz", "infinity", 2**63 - 1),
        ("timestamptz", "1999-12-31 23:59:59.5+00", 946684799500000),
        ("timestamp", "0044-03-15 10:00:00 BC", -63517788000000000),
        ("timestamp", "12000-01-01 00:00:00", 316516204800000000),
    ],
)
def test_what_no_date_type_holds_becomes_postgresqls_own_number(kind: str, text: str, number: int) -> None:
    storage = pa.int32() if kind == "date" else pa.int64()
    read = rows_to_table(schema_of(kind, "string"), [(text, "x"), (None, None)])["c0"].cast(storage)
    assert read.to_pylist() == [number, None]


@pytest.mark.parametrize(
    ("kind", "text"), [("int8", "128"), ("decimal(5,2)", "NaN"), ("bool", "yes"), ("date", "0000-00-00")]
)
def test_what_does_not_fit_is_an_error_with_column_and_value(kind: str, text: str) -> None:
    with pytest.raises(SourceError) as caught:
        rows_to_table(schema_of(kind), [(None,), (text,)])
    assert "s.t.c0" in caught.value.what
    assert text in caught.value.where


@given(st.integers(-719162, 2932896))
def test_slow_and_fast_date_paths_agree(days: int) -> None:
    text = (datetime.date(1970, 1, 1) + datetime.timedelta(days=days)).isoformat()
    fast = rows_to_table(schema_of("date"), [(text,)])["c0"].cast(pa.int32()).to_pylist()
    slow = rows_to_table(schema_of("date"), [(text,), ("infinity",)])["c0"].cast(pa.int32()).to_pylist()
    assert fast == [days] == slow[:1]


@given(st.data())
def test_net_images_carry_any_state_to_the_state_at_the_end(data: st.DataObject) -> None:
    """Oracle: replay. Deleting the net before keys and writing the net after rows must give the replayed state."""
    schema = schema_of("string", "string", "string", key=("c0", "c1"))
    start = {
        (k, "x"): v for k, v in data.draw(st.dictionaries(st.sampled_from("abcd"), st.text("01"))).items()
    }
    state, images, signs = dict(start), list[Row](), list[int]()
    for _ in range(data.draw(st.integers(0, 12))):
        old, new = (data.draw(st.tuples(st.sampled_from("abcd"), st.just("x"))) for _ in range(2))
        if old in state:
            images.append((*old, state.pop(old)))
            signs.append(-1)
        if new not in state and data.draw(st.booleans()):
            state[new] = str(len(images))
            images.append((*new, state[new]))
            signs.append(1)
    table = image_table(schema, [1] * len(images), range(len(images)), signs, rows_to_table(schema, images))
    before, after = net_images(schema, table)
    result = dict(start)
    for row in before.to_pylist():
        assert result.pop((row["c0"], row["c1"])) == row["c2"]
    for row in after.to_pylist():
        assert (row["c0"], row["c1"]) not in result
        result[row["c0"], row["c1"]] = row["c2"]
    assert result == state


@given(st.data())
def test_dump_rows_of_a_range_never_outlive_it(data: st.DataObject) -> None:
    """A dump row is a state that its key had within the range. Target rows have keys of their own: f(row) =
    (c1,)."""
    schema = schema_of("string", "string")
    names = st.sampled_from("xyz")
    key = st.sampled_from("ab")
    state = {k: k + v for k, v in data.draw(st.dictionaries(key, names)).items()}
    target, images, signs, dumped = set(state.values()), list[Row](), list[int](), set[str]()
    for _ in range(data.draw(st.integers(0, 8))):
        chosen = data.draw(key)
        if data.draw(st.booleans()) and chosen in state:
            dumped.add(state[chosen])  # a chunk comes by
        if chosen in state:
            images.append((chosen, state.pop(chosen)))
            signs.append(-1)
        if data.draw(st.booleans()):
            state[chosen] = chosen + data.draw(names)
            images.append((chosen, state[chosen]))
            signs.append(1)
    table = image_table(schema, [1] * len(images), range(len(images)), signs, rows_to_table(schema, images))
    before, after = net_images(schema, table, every_before=True)
    assert ((target | dumped) - set(before["c1"].to_pylist())) | set(after["c1"].to_pylist()) == set(
        state.values()
    )


@pytest.mark.parametrize("width", [1, 2])
def test_touched_keys_are_compared_as_values(width: int) -> None:
    schema = schema_of("decimal(6,2)", "string", key=("c0", "c1")[:width])
    rows = rows_to_table(schema, [("1.00", "a"), ("2.00", "a"), ("3.00", "b")])
    kept = without_keys(schema, rows, {("2.0", "a")[:width], ("9", "z")[:width]})
    assert kept["c0"].to_pylist() == [decimal.Decimal(1), decimal.Decimal(3)]
    assert without_keys(schema, rows, set()) is rows
