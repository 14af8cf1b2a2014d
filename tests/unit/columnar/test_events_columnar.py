"""Rows of a segment become ordered events: pairs of images, dump rows first, none that is older or newer."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.events import order_events
from migrator.columnar.types import arrow_schema
from migrator.model.segment import FileKind
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import TableData
from tests.contract.event_log.eventlog_content import ITEM, NARROWER, WIDER, dump_rows, images


def events(*data: TableData) -> list[tuple[Any, ...]]:
    """(number, op, before, after) in order; images as (id, name)."""

    def image(found: Any) -> Any:
        return found and (found["id"], found.get("name"))

    found = [
        (row["number"], row["op"], image(row["before"]), image(row["after"]))
        for _, rows in order_events([(one.schema, one.kind, one.rows) for one in data])
        for row in rows.to_pylist()
    ]
    return sorted(found)


def test_an_update_is_one_event_even_if_it_changes_the_key() -> None:
    assert events(images((1, 0, -1, 1, "a"), (1, 0, 1, 2, "a"), (1, 1, -1, 3, "c"), (1, 2, 1, 3, "d"))) == [
        (0, "u", (1, "a"), (2, "a")),
        (1, "d", (3, "c"), None),
        (2, "c", None, (3, "d")),
    ]


def test_a_dump_row_whose_key_the_log_changes_in_the_segment_is_left_out() -> None:
    changed = images((1, 0, -1, 1, "a"), (1, 0, 1, 2, "b"), schema=ITEM)
    assert events(dump_rows((1, "a"), (2, "b"), (3, "c")), changed) == [
        (0, "r", None, (3, "c")),
        (1, "u", (1, "a"), (2, "b")),
    ]


def test_keys_are_compared_over_row_schemas_and_within_their_table_only() -> None:
    other = TableSchema(TableId("public", "other"), ITEM.columns, ITEM.key)
    changed = images((1, 0, 1, 1, "a", None), schema=WIDER)
    assert events(dump_rows((1, "a"), (2, "b")), changed) == [
        (0, "r", None, (2, "b")),
        (1, "c", None, (1, "a")),
    ]
    untouched = TableData(other, FileKind.CHUNK, dump_rows((1, "a")).rows)
    assert [event[1] for event in events(untouched, changed)] == ["r", "c"]


def test_keys_that_are_no_python_values_are_compared_by_value() -> None:
    for kind, numbers in (
        ("date", [2**31 - 1, -(2**31)]),
        ("timestamptz", [2**63 - 1, -(2**63)]),
        ("float64", [float("nan"), 0.0]),
        ("float32", [float("nan"), -0.0]),
    ):
        schema = TableSchema(ITEM.id, (Column("k", kind, False, kind),), ("k",))
        (field,) = arrow_schema(schema)
        storage = {"date": pa.int32(), "timestamptz": pa.int64()}.get(kind, field.type)
        keys = pa.array(numbers, storage).cast(field.type)
        dumped = pa.Table.from_arrays([keys], schema=arrow_schema(schema))
        logged = images((1, 0, 1, 5), schema=NARROWER).rows.slice(0, 1)
        logged = logged.set_column(3, field, keys.slice(0, 1))
        found = order_events([(schema, FileKind.CHUNK, dumped), (schema, FileKind.LOG, logged)])
        assert [rows.num_rows for _, rows in found] == [1, 1], kind


def test_tables_share_the_order_of_the_log() -> None:
    other = TableSchema(TableId("public", "other"), ITEM.columns, ITEM.key)
    found = events(
        images((1, 0, 1, 1, "a"), (2, 1, 1, 4, "d")),
        images((1, 1, 1, 2, "b"), (2, 0, 1, 3, "c"), schema=other),
    )
    assert [after for *_, after in found] == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_nothing_becomes_nothing() -> None:
    assert events() == []
    assert events(images()) == []


@given(st.lists(st.sampled_from(["c", "u", "d"])), st.data())
def test_any_changes_come_back_as_they_were(kinds: list[str], data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.booleans(), min_size=len(kinds), max_size=len(kinds)))
    order, rows, expected = 1, [], []
    for index, (kind, cut) in enumerate(zip(kinds, cuts, strict=True)):
        order += cut
        rows += [(order, index, sign, index, kind) for sign in {"c": (1,), "u": (-1, 1), "d": (-1,)}[kind]]
        image = (index, kind)
        expected.append((index, kind, None if kind == "c" else image, None if kind == "d" else image))
    assert events(images(*rows)) == expected
