"""Tables for tests of reverse mappings, described in words, and the way through a mapping and its reverse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from transforms.analysis.plan import MappingPlan, analyse
from transforms.frames import arrow_frame, spark_schema
from transforms.load import load_mapping
from transforms.on_spark.pipeline import map_rows
from transforms.registry import Mapping as TargetMappings
from transforms.reverse.code import reverse_text
from transforms.reverse.derive import Reverse, Side, reverses
from transforms.reverse.pieces import pieces

_LOGICAL = {
    "bigint": "int64", "int": "int32", "smallint": "int16", "tinyint": "int8", "boolean": "bool",
    "double": "float64", "float": "float32", "timestamp_ntz": "timestamp", "timestamp": "timestamptz",
}  # fmt: skip


def side(name: str, *columns: str) -> Side:
    """``side("t", "id int key", "name string null", "day date read=string")``; ``~`` is a blank in a name."""
    read, written, key = [], [], []
    for text in columns:
        word, kind, *more = text.split()
        word = word.replace("~", " ")
        if "key" in more:
            key.append(word)
        source = next((one for one in more if one.startswith("char(")), kind)
        nullable = "null" in more
        travels = next((one.removeprefix("read=") for one in more if one.startswith("read=")), kind)
        read.append(Column(word, _LOGICAL.get(travels, travels), nullable, source))
        written.append(TargetColumn(word, kind, source, nullable, "default" in more, False))
    table = TableId("s", name)
    return Side(TableSchema(table, tuple(read), tuple(key)), TargetTable(table, tuple(written), tuple(key)))


def by_name(*sides: Side) -> dict[str, Side]:
    """Tables by name."""
    return {one.read.id.name: one for one in sides}


class Project:
    """A forward mapping between tables, and its reverse."""

    def __init__(
        self, spark: SparkSession, mapping: TargetMappings, old: Mapping[str, Side], new: Mapping[str, Side]
    ):
        self.spark, self.mapping, self.old, self.new = spark, mapping, old, new
        self.plans = self._plans(mapping, old, new)
        found = [piece for plan in self.plans.values() for piece in pieces(spark, plan)]
        self.reverses: list[Reverse] = reverses(old, new, found)
        self.text = reverse_text(self.reverses, {name: one.read.names() for name, one in new.items()})

    def reverse(self, table: str) -> Reverse:
        """The reverse of one old table."""
        return next(one for one in self.reverses if one.old.id.name == table)

    def there_and_back(
        self, folder: Path, **rows: Sequence[tuple[object, ...]]
    ) -> dict[str, list[tuple[object, ...]]]:
        """Old rows mapped there and back, by table, in key order."""
        (folder / "reverse.py").write_text(self.text)
        back = load_mapping(folder / "reverse.py")
        tables = {name: self._table(name, rows.get(name, ())) for name in self.old}
        new = {name: self._mapped(plan, tables, self.old) for name, plan in self.plans.items()}
        plans = self._plans(back, self.new, self.old)
        found = {}
        for name, plan in plans.items():
            mapped = self._mapped(plan, new, self.new).to_pylist()
            found[name] = sorted(tuple(row.values()) for row in mapped)
        return found

    def _plans(
        self, mapping: TargetMappings, old: Mapping[str, Side], new: Mapping[str, Side]
    ) -> dict[str, MappingPlan]:
        schemas = {name: one.read for name, one in old.items()}
        return {
            one.name: analyse(self.spark, one, schemas, new[one.name].written.columns)
            for one in mapping.targets
        }

    def _mapped(
        self, plan: MappingPlan, tables: Mapping[str, pa.Table], sides: Mapping[str, Side]
    ) -> pa.Table:
        frames = {name: arrow_frame(self.spark, tables[name], sides[name].read) for name in plan.schemas}
        return map_rows(self.spark, plan, frames).toArrow()

    def _table(self, name: str, rows: Sequence[tuple[object, ...]]) -> pa.Table:
        schema = spark_schema(self.old[name].read)
        frame = self.spark.createDataFrame(list(rows), T.StructType(schema.fields))
        return frame.toArrow()
