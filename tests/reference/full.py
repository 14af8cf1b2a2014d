"""One of each record that rests somewhere, with a value in every field, so that its writer shows all."""

from __future__ import annotations

import pyarrow as pa

from migrator.adapters.event_log.files.places import StoredPlace
from migrator.columnar.types import image_schema
from migrator.model.cutover.reads import ReadShape
from migrator.model.hint import Hint
from migrator.model.observed.observation import Applied, Ended
from migrator.model.position import Position
from migrator.model.progress import (
    BadRow,
    Checkpoint,
    Filling,
    Mapped,
    Parent,
    Phase,
    Remap,
    TableDump,
    TableIdentity,
)
from migrator.model.requests.request import Doubt, DumpRequest, Pace, RequestBook, Scope
from migrator.model.segment import FileKind, Manifest, SegmentFile
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import ReaderPlace
from migrator.ports.output import SegmentEvents, TableEvents

ITEM = TableId("public", "item")
SCHEMA = TableSchema(
    ITEM,
    (
        Column("id", "int64", False, "bigint"),
        Column("name", "string", True, "character varying(20)", "de_DE"),
        Column("price", "decimal(12,2)", True, "numeric(12,2)"),
    ),
    ("id",),
)
DUMP = TableDump(
    ITEM,
    after=("7",),
    done=True,
    rows=7,
    dropped_rows=1,
    chunks=1,
    estimated_rows=9,
    request="r1.1",
    key=("id int",),
)
CHECKPOINT = Checkpoint(
    Position(7, "0/7"),
    partial_order=8,
    partial_index=3,
    unconfirmed=((9, 10),),
    dumps=(DUMP,),
    requests=(DUMP,),
    passes=((ITEM, "r1.1"),),
    last_changes=((ITEM, 1),),
    notes=((ITEM, "a note"),),
)
LEDGER = Checkpoint(
    Position(7, "0/7"),
    fed=(("item", ITEM),),
    awaited=(("item", ITEM, "r1.1"),),
    mapped=(
        Mapped(
            "item",
            "public",
            "row-wise",
            ("id",),
            "digest",
            "1",
            TableIdentity("16384", "16385"),
            True,
            '{"columns":{"id":"0a"},"parts":{"shape":"0b"},"reads":{"item.id":"0c"},"version":1}',
            True,
        ),
        Mapped("part", "public", "row-wise", holds=False),
    ),
    filling=(Filling("item", 3, 60_000, 200_000),),
    bad_rows=(
        BadRow(
            "item",
            ("id",),
            ("7",),
            "0/7",
            42,
            "too long",
            "id=7, name='a'",
            "test data",
            Parent("part", ("id",), ("3",), True),
        ),
        BadRow("total", ("basket.id",), ("4",), "0/7", 42, "the mapping fails: no", "id=4", grain=True),
    ),
    remaps=(Remap("item", "item_migrator_next", Phase.FILLING),),
)
DOUBT = Doubt("item", (("7",),))
FILE = SegmentFile(SCHEMA, FileKind.LOG, "data/0000000042-3-0.parquet", 2, 900, "0f", 500)
MANIFEST = Manifest(
    42,
    3,
    CHECKPOINT,
    True,
    1,
    1,
    2,
    (FILE,),
    begins_batch=True,
    continues=True,
    echo=True,
    doubts=(DOUBT,),
    previous="0e",
)
PACE = Pace(100, 0.5, 0.5, 2, 3, 1.0, 0.5)
BOOK = RequestBook(
    (DumpRequest("r1", (ITEM,), Scope((("7",),), ("1",), ("9",), "id > 7"), doubts=(DOUBT,), token="0a"),),
    PACE,
    1,
)
HINT = Hint(
    3,
    1,
    42,
    9_999,
    CHECKPOINT,
    "a note",
    ("a warning",),
    "streaming",
    Applied(1, 7),
    Ended(1, "MappingError", "a column is gone"),
)
PLACE = StoredPlace("json:/x", False, ReaderPlace(1, 1, 3, 1, ("item",), 17, "0f"))
READS = (ReadShape("/p/queries.yaml", "0a", "orders", "0b", "0c", 1.5, 100, 7, 1, 1, 0.5, 1.5, 0.5, 1.5),)
IMAGES = pa.Table.from_pylist(
    [
        {"__position": 23456789, "__index": 0, "__sign": sign, "id": 7, "name": name, "price": None}
        for sign, name in ((-1, "a"), (1, "b"))
    ],
    schema=image_schema(SCHEMA),
)
"""An update of one row, as a segment's data file has it."""


def events(rows: pa.Table) -> SegmentEvents:
    """Events of one table, as an output gets them."""
    return SegmentEvents(
        42, Position(23456789, "0/165EC15"), 1_763_680_000_123_000, (TableEvents(SCHEMA, rows),)
    )
