"""Row changes decoded in bulk: the same values as the decoder of single rows, in every type and combination."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.rows import row_codec
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.row_codec import RowCodec
from migrator.adapters.sources.binlog.rows.row_decoder import build_decoder
from migrator.adapters.sources.mariadb.log_reader import MARIADB
from migrator.adapters.sources.mysql.log_reader import MYSQL
from migrator.columnar.text import rows_to_table
from migrator.columnar.types import arrow_schema
from migrator.errors import SourceError
from migrator.model.event import Operation, Row
from migrator.model.table import TableId, TableSchema
from tests.binlog_columns import CHARSETS, KINDS, Kind

TABLE = TableId("old", "t")


@dataclass
class Layout:
    """Columns of a table, of which the last may be one that nobody wants."""

    kinds: list[Kind]
    wanted: list[bool]
    key: tuple[str, ...]

    def __post_init__(self) -> None:
        names = [f"c{place}" for place in range(len(self.kinds))]
        self.logged = [kind.logged(name) for kind, name in zip(self.kinds, names, strict=True)]
        self.declared = [
            kind.declared if wanted else None for kind, wanted in zip(self.kinds, self.wanted, strict=True)
        ]
        columns = [
            kind.column(name)
            for kind, name, wanted in zip(self.kinds, names, self.wanted, strict=True)
            if wanted
        ]
        self.schema = TableSchema(TABLE, tuple(columns), self.key)

    def codec(self, dialect: Dialect = MARIADB) -> RowCodec:
        return RowCodec(self.schema, self.logged, self.declared, CHARSETS, dialect)

    def rows(self, image: bytes, dialect: Dialect = MARIADB) -> list[Row]:
        return build_decoder(self.logged, self.declared, CHARSETS, dialect)(image, 0, len(image))

    def image(self, values: list[bytes | None]) -> bytes:
        """A row image; the unused bits of the bitmap are set, or not, or some of them: they mean nothing."""
        bits = sum(1 << place for place, value in enumerate(values) if value is None)
        width = (len(values) + 7) // 8
        data = b"".join(value for value in values if value is not None)
        unused = (1 << 8 * width) - (1 << len(values))
        bits |= (0, unused, unused & 0xAA << 8 * width - 8)[len(data) % 3]
        return bits.to_bytes(width, "little") + data


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=12))
    wanted = [bool(KINDS[kind].declared) or draw(st.integers(0, 5)) > 0 for kind in kinds]
    wanted[draw(st.integers(0, len(kinds) - 1))] = True
    names = [f"c{place}" for place, want in enumerate(wanted) if want]
    key = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return Layout([KINDS[kind] for kind in kinds], wanted, tuple(key))


def images_of(layout: Layout, draw: Callable[[st.SearchStrategy[Any]], Any]) -> bytes:
    return layout.image(
        [None if draw(st.integers(0, 6)) == 0 else draw(kind.values) for kind in layout.kinds]
    )


def same(found: pa.Table, expected: pa.Table) -> None:
    """Equal bit by bit: minus zero isn't zero."""
    found.validate(full=True)
    assert found.schema == expected.schema
    for name, column in zip(found.column_names, found.columns, strict=True):
        for place, (value, wanted) in enumerate(
            zip(column.to_pylist(), expected[name].to_pylist(), strict=True)
        ):
            assert repr(value) == repr(wanted), (name, place)


@given(st.data(), layouts(), st.sampled_from([MARIADB, MYSQL]))
def test_bulk_is_what_single_rows_are(data: st.DataObject, layout: Layout, dialect: Dialect) -> None:
    codec = layout.codec(dialect)
    items: list[bytes] = []
    expected: list[Row] = []
    changes: list[Row | tuple[Row, Row]] = []
    for _ in range(data.draw(st.integers(0, 4))):
        operation = data.draw(st.sampled_from([Operation.INSERT, Operation.UPDATE, Operation.DELETE]))
        count = data.draw(st.integers(1, 3)) * (2 if operation is Operation.UPDATE else 1)
        body = b"".join(images_of(layout, data.draw) for _ in range(count))
        rows = layout.rows(body, dialect)
        expected += rows
        changes += (
            rows if operation is not Operation.UPDATE else list(zip(rows[::2], rows[1::2], strict=True))
        )
        items += codec.cut(b"head" + body, 4, operation)
    places, signs, rows = codec.images(items)
    same(rows, rows_to_table(layout.schema, expected))
    found = codec.changes(items)
    assert len(found) == len(items) == len(changes)
    key = [layout.schema.names().index(name) for name in layout.schema.key]
    images, keys = [], []
    for number, change in enumerate(found):
        given_images = [(-1, change.before), (1, change.after)]
        images += [(number, sign, row) for sign, row in given_images if row is not None]
        keys.append(tuple(dict.fromkeys(tuple(row[k] for k in key) for _, row in given_images if row)))
    assert [row for *_, row in images] == expected
    assert [tuple(image) for image in zip(places.tolist(), signs.tolist(), strict=True)] == [
        (number, sign) for number, sign, _ in images
    ]
    assert codec.keys(items) == keys


IN_TEXT = {"decimal_65_30", "padded", "utf16", "document", "uuid", "inet6", "packed", "old_moment"} | {
    f"time{digits}" for digits in range(7)
}
"""Types without a way in bulk, or with values that have none."""


@pytest.mark.parametrize("kind", sorted(KINDS))
@settings(max_examples=15)
@given(data=st.data())
def test_every_type_with_and_without_nulls(kind: str, data: st.DataObject) -> None:
    layout = Layout([KINDS[kind]], [True], ())
    values = data.draw(st.lists(st.none() | KINDS[kind].values, max_size=12))
    body = b"".join(layout.image([value]) for value in values)
    codec = layout.codec()
    if kind not in IN_TEXT:  # a conversion that always gives up would go unnoticed
        codec._readings = [replace(reading, texts=None) for reading in codec._readings]  # type: ignore[arg-type]
    same(
        codec.images(codec.cut(body, 0, Operation.INSERT)).rows,
        rows_to_table(layout.schema, layout.rows(body)),
    )


def test_many_batches_are_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_codec, "BATCH_BYTES", 100)
    layout = Layout([KINDS["plain"], KINDS["text"]], [True, True], ("c0",))
    body = b"".join(layout.image([n.to_bytes(4, "little"), b"\x05hello"]) for n in range(200))
    codec = layout.codec()
    places, signs, rows = codec.images(codec.cut(body, 0, Operation.UPDATE))
    assert places.tolist() == [n // 2 for n in range(200)]
    assert signs.tolist() == [-1, 1] * 100
    same(rows, rows_to_table(layout.schema, layout.rows(body)))
    assert codec.images([]).rows.schema == arrow_schema(layout.schema)


@pytest.mark.parametrize(
    ("kind", "value"),
    [("text", b"\x02\xff\xff"), ("label", b"\x07"), ("utf16", b"\x01a"), ("packed", b"\x02\x91\x01")],
)
def test_damaged_values_are_named(kind: str, value: bytes) -> None:
    layout = Layout([KINDS[kind]], [True], ("c0",))
    codec = layout.codec()
    items = codec.cut(layout.image([value]), 0, Operation.INSERT)
    with pytest.raises(SourceError, match=r"column c0.*old\.t"):
        codec.images(items)
    with pytest.raises(SourceError, match=r"key.*old\.t"):
        codec.keys(items)


def test_images_that_end_elsewhere_than_their_event_are_damaged() -> None:
    layout = Layout([KINDS["plain"], KINDS["text"]], [True, True], ("c0",))
    codec, image = layout.codec(), layout.image([bytes(4), b"\x05hello"])
    with pytest.raises(ValueError, match="the rows end at byte 11, the event at byte 10"):
        codec.cut(image[:-1], 0, Operation.INSERT)
    with pytest.raises(ValueError, match="without an after image"):
        codec.cut(image, 0, Operation.UPDATE)
    with pytest.raises(SourceError, match="can't be decoded"):
        codec.images([b"\x01" + image, b"\x01" + image[:-1]])
