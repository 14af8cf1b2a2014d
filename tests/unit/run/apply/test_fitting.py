"""Rows captured under another structure than the mapping was planned with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from migrator.columnar.types import arrow_schema
from migrator.errors import SchemaError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.eventlog import Batch, NetDelta
from migrator.run.apply.fitting import Fitting

K, V, W = (Column(name, "int32", True, "integer") for name in "kvw")
PLANNED = TableSchema(TableId("public", "t"), (K, V, W), ("k",), frozenset({"v"}))
OTHER_TYPE = replace(PLANNED, columns=(K, V, replace(W, type="string", source_type="text")))
WITHOUT_W = PLANNED.without({"w"})
NEEDED_OTHERWISE = replace(PLANNED, columns=(K, replace(V, type="int64", source_type="bigint"), W))


def rows(schema: TableSchema, count: int = 1) -> pa.Table:
    """Rows that have a one in each column."""
    ones = [pa.array([1] * count).cast(field.type) for field in arrow_schema(schema)]
    return pa.Table.from_arrays(ones, schema=arrow_schema(schema))


def batch(folder: Path, schema: TableSchema, count: int = 1) -> Batch:
    path = folder / "chunk.parquet"
    pq.write_table(rows(schema, count), path)
    delta = NetDelta(schema, rows(schema, 0), rows(schema, count))
    checkpoint = Checkpoint(Position(1, "1"), None, 0, (), (), ())
    return Batch(1, 1, checkpoint, 0, 1, count, count, ((schema, (str(path),), count),), (delta,))


def test_rows_of_the_planned_structure_stay_as_they_are(tmp_path: Path) -> None:
    found = batch(tmp_path, PLANNED)
    assert Fitting([PLANNED], tmp_path / "fitted").fitted(found) is found


def test_a_column_of_another_type_is_taken_out_where_nothing_needs_it(tmp_path: Path) -> None:
    found = Fitting([PLANNED], tmp_path / "fitted").fitted(batch(tmp_path, OTHER_TYPE))
    (delta,) = found.deltas
    assert delta.after.column_names == ["k", "v"]
    ((schema, (path,), count),) = found.chunks
    assert (schema.names(), count) == (("k", "v"), 1)
    assert pq.read_table(path).to_pylist() == [{"k": 1, "v": 1}]
    assert pq.read_table(tmp_path / "chunk.parquet").column_names == ["k", "v", "w"], "the event log's own"


def test_one_that_rows_lack_is_null_where_nothing_needs_it(tmp_path: Path) -> None:
    found = batch(tmp_path, WITHOUT_W)
    assert Fitting([PLANNED], tmp_path / "fitted").fitted(found) is found, (
        "whoever reads the rows fills it up"
    )


@pytest.mark.parametrize("schema", [NEEDED_OTHERWISE, PLANNED.without({"v"})])
def test_a_needed_column_stops_by_name(tmp_path: Path, schema: TableSchema) -> None:
    with pytest.raises(SchemaError, match="captured changes don't have") as stopped:
        Fitting([PLANNED], tmp_path / "fitted").fitted(batch(tmp_path, schema))
    assert stopped.value.where == "column v"


def test_where_no_row_is_nothing_is_missing(tmp_path: Path) -> None:
    empty = batch(tmp_path, PLANNED.without({"v"}), count=0)
    assert Fitting([PLANNED], tmp_path / "fitted").fitted(empty) is empty


def test_dump_rows_are_checked_without_any_change_of_the_log(tmp_path: Path) -> None:
    """A Parquet file without a column gives NULL in it to Spark, without a word."""
    found = replace(batch(tmp_path, PLANNED.without({"v"})), deltas=())
    with pytest.raises(SchemaError):
        Fitting([PLANNED], tmp_path / "fitted").fitted(found)


def test_each_table_is_fitted_to_its_own_structure(tmp_path: Path) -> None:
    """Two tables were alike; one of them has another structure by now."""
    other = TableId("public", "u")
    alike = replace(OTHER_TYPE, id=other)
    found = batch(tmp_path, OTHER_TYPE)
    both = replace(found, deltas=(*found.deltas, replace(found.deltas[0], schema=alike)))
    fitted = Fitting([PLANNED, alike], tmp_path / "fitted").fitted(both)
    assert [delta.after.column_names for delta in fitted.deltas] == [["k", "v"], ["k", "v", "w"]]
