"""Rules of the columnar functions that are lost quietly: order, composite keys, what a TRUNCATE takes with it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from migrator.columnar.emptied import since_emptied, taken_in
from migrator.columnar.keys import without_keys
from migrator.columnar.netting import net_images
from migrator.columnar.text import rows_to_table
from migrator.columnar.types import INDEX, POSITION, image_table
from migrator.columnar.versions import alike, unite_images
from migrator.model.event import Row
from migrator.model.table import Column, TableId, TableSchema

PAIR = TableSchema(
    TableId("s", "t"),
    (Column("a", "string", False, "text"), Column("b", "string", False, "text")),
    ("a", "b"),
)
ITEM = replace(PAIR, key=("a",))
OTHER = replace(ITEM, id=TableId("s", "other"))


def images(schema: TableSchema, *rows: tuple[int, str, str]) -> pa.Table:
    """Log images in order: sign, then the row."""
    found: list[Row] = [(a, b) for _, a, b in rows]
    return image_table(
        schema,
        range(1, len(rows) + 1),
        [0] * len(rows),
        [row[0] for row in rows],
        rows_to_table(schema, found),
    )


def test_net_rows_come_in_log_order_whatever_order_their_keys_have() -> None:
    table = images(
        ITEM, (-1, "c", "0"), (1, "c", "1"), (-1, "a", "0"), (1, "a", "1"), (-1, "b", "0"), (1, "b", "1")
    )
    before, after = net_images(ITEM, table)
    assert [row["a"] for row in before.to_pylist()] == ["c", "a", "b"]
    assert [row["a"] for row in after.to_pylist()] == ["c", "a", "b"]


def test_of_a_composite_key_every_column_counts_and_rows_keep_their_order() -> None:
    rows = rows_to_table(PAIR, [("2", "a"), ("1", "b"), ("1", "a"), ("0", "a")])
    kept = without_keys(PAIR, rows, {("1", "a"), ("7", "b")})
    assert [tuple(row.values()) for row in kept.to_pylist()] == [("2", "a"), ("1", "b"), ("0", "a")]


def test_what_follows_the_last_truncate_is_left() -> None:
    table = images(ITEM, (1, "a", "1"), (0, "", ""), (1, "b", "1"), (0, "", ""), (1, "c", "1"), (1, "d", "1"))
    left = since_emptied(table)
    assert left is not None
    assert left["a"].to_pylist() == ["c", "d"]
    assert since_emptied(images(ITEM, (1, "a", "1"))) is None


def test_a_truncate_takes_images_and_dump_rows_of_its_own_table_only() -> None:
    known = {
        ITEM.id: [(ITEM, images(ITEM, (1, "a", "1")))],
        OTHER.id: [(OTHER, images(OTHER, (1, "x", "1")))],
    }
    chunks = {(ITEM.id, ITEM.version()): "mine", (OTHER.id, OTHER.version()): "another's"}
    assert taken_in(ITEM, images(ITEM, (0, "", ""), (1, "b", "1")), known, chunks)
    assert [rows["a"].to_pylist() for _, rows in known[ITEM.id]] == [["b"]]
    assert [rows["a"].to_pylist() for _, rows in known[OTHER.id]] == [["x"]]
    assert list(chunks.values()) == ["another's"]
    assert not taken_in(ITEM, images(ITEM, (1, "c", "1")), known, chunks)
    assert [rows["a"].to_pylist() for _, rows in known[ITEM.id]] == [["b"], ["c"]]


WIDER = replace(ITEM, columns=(ITEM.columns[0], Column("new", "int64", True, "bigint"), ITEM.columns[1]))
RETYPED = replace(WIDER, columns=(*WIDER.columns[:2], Column("b", "int64", False, "bigint")))
REKEYED = replace(WIDER, key=("a", "b"))


@pytest.mark.parametrize(
    ("newer", "expected"),
    [
        (ITEM, True),
        (replace(ITEM, columns=ITEM.columns[::-1]), True),
        (WIDER, False),
        (RETYPED, False),
        (REKEYED, False),
        (replace(ITEM, id=OTHER.id), False),
    ],
)
def test_only_the_same_columns_are_alike(newer: TableSchema, expected: bool) -> None:
    assert alike(newer, ITEM) == expected
    assert alike(ITEM, newer) == expected


def test_of_a_column_that_was_added_since_nothing_is_left() -> None:
    """Its default is in the rows of the source: NULL would be another value."""
    added = image_table(WIDER, [2], [0], [1], rows_to_table(WIDER, [("b", "7", "2")]))
    schema, united = unite_images([(ITEM, images(ITEM, (1, "a", "1"))), (WIDER, added)])
    assert schema.names() == ("a", "b")
    assert united.drop_columns([POSITION, INDEX]).to_pylist() == [
        {"__sign": 1, "a": "a", "b": "1"},
        {"__sign": 1, "a": "b", "b": "2"},
    ]


def test_rows_of_different_keys_are_not_united() -> None:
    with pytest.raises(ValueError, match="different keys"):
        unite_images([(ITEM, images(ITEM, (1, "a", "1"))), (REKEYED, images(ITEM, (1, "a", "1")))])


def test_of_a_column_that_some_rows_have_under_another_type_nothing_is_left() -> None:
    """Its values can't be told as one type; who needs it has to notice that it isn't there."""
    retyped = image_table(RETYPED, [2], [0], [1], rows_to_table(RETYPED, [("b", "7", "2")]))
    schema, united = unite_images([(ITEM, images(ITEM, (1, "a", "1"))), (RETYPED, retyped)])
    assert schema.names() == ("a",)
    assert united["a"].to_pylist() == ["a", "b"]
    assert set(united.column_names) == {POSITION, INDEX, "__sign", "a"}


def test_of_a_column_that_is_gone_in_the_newest_schema_nothing_is_left() -> None:
    narrow = ITEM.without({"b"})
    short = image_table(narrow, [2], [0], [1], rows_to_table(narrow, [("b",)]))
    schema, united = unite_images([(ITEM, images(ITEM, (1, "a", "1"))), (narrow, short)])
    assert schema == narrow
    assert united["a"].to_pylist() == ["a", "b"]
