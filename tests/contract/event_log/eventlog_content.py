"""What the tests of event logs write into them, also at the same moment, and how they compare what comes back."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from migrator.columnar.types import arrow_schema, image_schema
from migrator.errors import EventLogError, FencedError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import FileKind
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import Batch, BatchReader, SegmentContent, SegmentWriter, TableData

ITEM = TableSchema(
    TableId("public", "item"),
    (Column("id", "int64", False, "bigint"), Column("name", "string", True, "text")),
    ("id",),
)
WIDER = TableSchema(
    ITEM.id, (*ITEM.columns, Column("price", "decimal(12,2)", True, "numeric(12,2)")), ("id",)
)
NARROWER = TableSchema(ITEM.id, (Column("id", "int64", False, "bigint"),), ("id",))
Image = tuple[int, int, int, *tuple[Any, ...]]  # position, index, sign, then the source columns


def checkpoint(order: int, *dumps: TableDump) -> Checkpoint:
    return Checkpoint(Position(order, f"0/{order:X}"), dumps=dumps)


def images(*rows: Image, schema: TableSchema = ITEM) -> TableData:
    """A log file's rows, one tuple each: position, index, sign, then the source columns."""
    fields = image_schema(schema)
    columns = list(zip(*rows, strict=True)) or [() for _ in fields]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    return TableData(schema, FileKind.LOG, pa.Table.from_arrays(arrays, schema=fields))


def dump_rows(*rows: tuple[Any, ...], schema: TableSchema = ITEM) -> TableData:
    columns = list(zip(*rows, strict=True))
    arrays = [pa.array(c, f.type) for c, f in zip(columns, arrow_schema(schema), strict=True)]
    return TableData(schema, FileKind.CHUNK, pa.Table.from_arrays(arrays, schema=arrow_schema(schema)))


def content(order: int, *data: TableData, ends: bool = True) -> SegmentContent:
    return SegmentContent(
        checkpoint=checkpoint(order),
        ends_transaction=ends,
        committed_at_us=1_000_000 + order,
        transactions=int(ends),
        row_changes=sum(one.rows.num_rows for one in data if one.kind is FileKind.LOG),
        data=data,
    )


def inserted(order: int, *ids: int, ends: bool = True) -> SegmentContent:
    return content(order, images(*((order, i, 1, key, f"n{key}") for i, key in enumerate(ids))), ends=ends)


def pairs(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def read(reader: BatchReader, after: int = 0, max_rows: int = 1000) -> Batch:
    batch = reader.read(after, max_rows, 0)
    assert batch is not None
    return batch


def extremes() -> tuple[TableSchema, list[pa.Array]]:
    """One column of each logical type, four rows: least, greatest, odd, NULL (the key: 0 to 3)."""
    int64 = [-(2**63), 2**63 - 1, -62_135_596_800_000_001, None]
    values: dict[str, list[Any]] = {
        "bool": [False, True, True, None],
        "int8": [-128, 127, 0, None],
        "int16": [-(2**15), 2**15 - 1, 0, None],
        "int32": [-(2**31), 2**31 - 1, 0, None],
        "int64": int64,
        "float32": [float("-inf"), float("nan"), -0.0, None],
        "float64": [5e-324, float("nan"), -0.0, None],
        "decimal(9,3)": [Decimal("-999999.999"), Decimal("999999.999"), Decimal("0.001"), None],
        "decimal(18,0)": [Decimal(-(10**18) + 1), Decimal(10**18 - 1), Decimal(0), None],
        "decimal(38,0)": [Decimal("-" + "9" * 38), Decimal("9" * 38), Decimal(0), None],
        "decimal(38,38)": [Decimal("-0." + "9" * 38), Decimal("0." + "0" * 37 + "1"), Decimal(0), None],
        "string": ["", "a\x00\u20ac\U0001f600", " x\n", None],
        "binary": [b"", b"\x00\xff", b"x" * 100_000, None],
    }
    arrays = [pa.array(range(4), pa.int64())]
    columns = [Column("k", "int64", False, "bigint")]
    for place, (logical, column) in enumerate(values.items()):
        columns.append(Column(f'c{place} "{logical}"', logical, True, logical))
        arrays.append(pa.array(column, arrow_schema(TableSchema(ITEM.id, (columns[-1],), ())).field(0).type))
    for logical, ints in (
        ("date", [-(2**31), 2**31 - 1, -719_163, None]),
        ("timestamp", int64),
        ("timestamptz", int64),
    ):
        columns.append(Column(logical, logical, True, logical))
        storage = pa.int32() if logical == "date" else pa.int64()
        kind = arrow_schema(TableSchema(ITEM.id, (columns[-1],), ())).field(0).type
        arrays.append(pa.array(ints, storage).cast(kind))
    return TableSchema(TableId("public", "extremes"), tuple(columns), ("k",)), arrays


def bits(table: pa.Table) -> list[list[Any]]:
    """Values in a form that tells NaN, -0.0 and moments beyond Python's calendar apart."""
    whole = {pa.float32(): pa.int32(), pa.float64(): pa.int64(), pa.date32(): pa.int32()}
    found = []
    for column in table.columns:
        one = column.combine_chunks()
        kind = pa.int64() if pa.types.is_timestamp(one.type) else whole.get(one.type)
        found.append((one if kind is None else one.view(kind)).to_pylist())
    return found


def append_history(writer: SegmentWriter, data: st.DataObject) -> dict[int, dict[Any, Any]]:
    """Random transactions cut into random segments; returns the source's state after each whole-ending segment."""
    state: dict[Any, Any] = {}
    states: dict[int, dict[Any, Any]] = {}
    for order in range(1, data.draw(st.integers(1, 8)) + 1):
        changes = [random_change(state, data) for _ in range(data.draw(st.integers(0, 6)))]
        rows = [(order, place, *row) for place, change in enumerate(changes) for row in change]
        cuts = sorted(data.draw(st.sets(st.integers(0, len(rows)), max_size=2)))
        bounds = list(zip([0, *cuts], [*cuts, len(rows)], strict=True))
        for start, end in bounds:
            ends = end == len(rows) and (start, end) == bounds[-1]
            number = writer.append(content(order, images(*rows[start:end]), ends=ends)).number
        states[number] = dict(state)
    return states


def random_change(state: dict[Any, Any], data: st.DataObject) -> list[tuple[int, int, str]]:
    """One insert, update (perhaps of the key) or delete that fits the state, as images."""
    key, other = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    name = data.draw(st.sampled_from("abc"))
    if key not in state:
        state[key] = name
        return [(1, key, name)]
    before = (-1, key, state.pop(key))
    if data.draw(st.booleans()):
        return [before]
    new = other if other not in state else key
    state[new] = name
    return [before, (1, new, name)]


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Runs the calls at once; their results, or the name of what they raised."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def run(place: int, call: Callable[[], Any]) -> None:
        barrier.wait(10)
        try:
            results[place] = call()
        except (FencedError, EventLogError) as error:
            results[place] = type(error).__name__

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return results
