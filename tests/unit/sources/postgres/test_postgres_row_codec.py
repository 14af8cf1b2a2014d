"""Rows decoded many at once are the rows that a message by message reading gives, and what is damaged is
refused."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.log import row_codec
from migrator.adapters.sources.postgres.log.row_codec import HEAD_BYTES, RowCodec
from migrator.columnar.text_codec import TextCodec
from migrator.errors import SourceError
from migrator.model.event import Images
from migrator.model.table import Column, TableId, TableSchema
from tests.integration.exact import exactly

OID = 70_000
WHOLE = st.integers(-(2**63), 2**63 - 1).map(str)
DATES = st.dates().map(str) | st.sampled_from(["infinity", "-infinity", "0044-03-15 BC", "20000-01-01"])
MOMENTS = st.datetimes().map(lambda at: f"{at:%H:%M:%S.%f}").map(lambda time: f"2024-02-29 {time}")
ODD_MOMENTS = st.sampled_from(["infinity", "-infinity", "0044-03-15 10:00:00{} BC", "12000-01-01 00:00:00{}"])
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
VALUES = {
    "int64": WHOLE,
    "bool": st.sampled_from(["t", "f"]),
    "float64": st.floats().map(repr) | st.sampled_from(["NaN", "Infinity", "-Infinity", "-0", "1e-320"]),
    "decimal(38,4)": st.decimals(-(10**30), 10**30, places=4).map(lambda number: f"{number:f}"),
    "string": TEXT,
    "binary": st.binary(max_size=8).map(lambda value: "\\x" + value.hex()),
    "date": DATES,
    "timestamp": MOMENTS | ODD_MOMENTS.map(lambda text: text.format("")),
    "timestamptz": MOMENTS.map(lambda text: text + "+00") | ODD_MOMENTS.map(lambda text: text.format("+00")),
}
Image = tuple[str | None, ...]


@st.composite
def tables(draw: st.DrawFn) -> TableSchema:
    types = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4))
    columns = tuple(Column(f"c{n}", kind, True, kind) for n, kind in enumerate(types))
    key = draw(st.lists(st.sampled_from([column.name for column in columns]), min_size=1, unique=True))
    return TableSchema(TableId("s", "t"), columns, tuple(key))


def images(schema: TableSchema) -> st.SearchStrategy[Image]:
    return st.tuples(*(st.none() | VALUES[column.type] for column in schema.columns))


def row(image: Image, unchanged: tuple[bool, ...] = ()) -> bytes:
    parts = [struct.pack("!H", len(image))]
    for place, value in enumerate(image):
        data = None if value is None else value.encode()
        if unchanged and unchanged[place]:
            parts.append(b"u")
        else:
            parts.append(b"n" if data is None else b"t" + struct.pack("!I", len(data)) + data)
    return b"".join(parts)


@st.composite
def messages(draw: st.DrawFn, schema: TableSchema) -> bytes:
    kind = draw(st.sampled_from("IUD"))
    head = kind.encode() + struct.pack("!I", OID)
    first = row(draw(images(schema)))
    if kind == "I":
        return head + b"N" + first
    if kind == "D":
        return head + b"O" + first
    unchanged = draw(st.tuples(*(st.booleans() for _ in schema.columns)))
    return head + b"O" + first + b"N" + row(draw(images(schema)), unchanged)


def shown(found: Images) -> tuple[Any, ...]:
    values = [exactly(column) if column.num_chunks else [] for column in found.rows.columns]
    return found.rows.schema, found.places.tolist(), found.signs.tolist(), values


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_many_at_once_are_what_one_by_one_gives(data: st.DataObject) -> None:
    schema = data.draw(tables())
    sent = data.draw(st.lists(messages(schema), max_size=40))
    codec, texts = RowCodec(schema), TextCodec(schema)
    assert all(message[:HEAD_BYTES] in codec.heads(OID) for message in sent)
    changes = codec.changes(sent)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(row_codec, "FEW", 0)
        patched.setattr(row_codec, "_STEP_CHANGES", data.draw(st.integers(1, 40)))
        assert shown(codec.images(sent)) == shown(texts.images(changes))
        assert codec.keys(sent) == texts.keys(changes)
    assert codec.keys(sent) == texts.keys(changes)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_is_refused_or_read_alike(data: st.DataObject) -> None:
    schema = data.draw(tables())
    sent = data.draw(st.lists(messages(schema), min_size=1, max_size=3))
    victim = data.draw(st.integers(0, len(sent) - 1))
    damaged = bytearray(sent[victim])
    place = data.draw(st.integers(HEAD_BYTES, len(damaged) - 1))
    if data.draw(st.booleans()):
        del damaged[place:]
    else:
        damaged[place] = data.draw(st.integers(0, 255))
    sent[victim] = bytes(damaged)
    codec = RowCodec(schema)

    def outcome(read: Any) -> Any:
        try:
            return shown(read())
        except (SourceError, ValueError) as error:
            return type(error) if isinstance(error, SourceError) else SourceError

    assert outcome(lambda: codec.images(sent)) == outcome(
        lambda: TextCodec(schema).images(codec.changes(sent))
    )


@pytest.mark.parametrize("text", ["\0x", "x6162", "\\x61 62", "\\x616", "\\xzz"])
def test_bytes_that_are_not_in_hex_are_refused_both_ways(text: str) -> None:
    columns = (Column("k", "binary", True, "bytea"), Column("n", "int64", True, "bigint"))
    codec = RowCodec(TableSchema(TableId("s", "t"), columns, ("n",)))
    sent = [b"I" + struct.pack("!I", OID) + b"N" + row((text, "1"))]
    with pytest.raises((SourceError, ValueError)):
        codec.images(sent)
    with pytest.raises((SourceError, ValueError)):
        codec.changes(sent)


def test_a_value_that_no_type_holds_is_named_with_its_row() -> None:
    columns = (Column("k", "int64", False, "bigint"), Column("v", "decimal(4,2)", True, "numeric(4,2)"))
    schema = TableSchema(TableId("s", "t"), columns, ("k",))
    head = b"I" + struct.pack("!I", OID) + b"N"
    with pytest.raises(SourceError) as refused:
        RowCodec(schema).images([head + row(("1", "10.50")), head + row(("2", "NaN"))])
    assert "s.t.v" in refused.value.what
    assert refused.value.where == "column v (numeric(4,2)), row k=2, value 'NaN'"


def test_an_old_row_without_a_large_value_is_refused() -> None:
    schema = TableSchema(TableId("s", "t"), (Column("k", "string", False, "text"),), ("k",))
    message = b"D" + struct.pack("!I", OID) + b"O" + row(("x",), unchanged=(True,))
    for items in ([message], [message] * 100):
        for read in (RowCodec(schema).images, RowCodec(schema).keys):
            with pytest.raises(SourceError, match="full before image"):
                read(items)
