"""The mapping of the benchmark's application as the analysis takes it: accepted, and what it reads is as declared."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from scenarios.bench.shapes import application
from scenarios.bench.shapes.application.changes import THREE_TARGETS, changes
from scenarios.bench.shapes.application.tables import TABLES, Table, named
from transforms import load_mapping
from transforms.analysis.plan import MappingPlan, analyse

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

FOLDER = Path(str(application.__file__)).parent
TYPES = {"text": "string", "numeric": "decimal(12,2)", "int": "int32", "timestamp": "timestamp"}
NEW_TYPES = {
    "text": "string",
    "number": "bigint",
    "amount": "decimal(16,2)",
    "moment": "timestamp_ntz",
}


def schema(table: Table) -> TableSchema:
    columns = [Column(f"{table.name}_id", "int64", False, "bigint")]
    columns += [
        Column(f"{name.rstrip('?')}_id", "int64", name.endswith("?"), "bigint") for name in table.references
    ]
    columns += [Column(name, TYPES[kind], False, kind) for name, kind in named(table.columns)]
    columns += [Column(name, TYPES[kind], True, kind) for name, kind in named(table.unread)]
    return TableSchema(TableId("public", table.name), tuple(columns), (f"{table.name}_id",))


def new_tables() -> dict[str, list[TargetColumn]]:
    """The columns that the revision gives the new tables."""
    [file] = (FOLDER / "alembic" / "versions").glob("*.py")
    spec = importlib.util.spec_from_file_location("revision_of_the_application", file)
    assert spec is not None
    assert spec.loader is not None
    revision = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(revision)
    found = {}
    for name, text in revision._TABLES.items():
        key, *others = text.split(", ")
        kinds = [(key, "number"), *(other.split() for other in others)]
        found[name] = [
            TargetColumn(column, NEW_TYPES[kind], NEW_TYPES[kind], column != key, False, False)
            for column, kind in kinds
        ]
    return found


@pytest.fixture(scope="module")
def plans(spark: SparkSession) -> list[MappingPlan]:
    """The plan of every target; one that isn't accepted is an error by name."""
    schemas = {table.name: schema(table) for table in TABLES}
    references = [
        Reference(schemas[table.name].id, (f"{parent}_id",), schemas[parent].id, (f"{parent}_id",))
        for table in TABLES
        for parent in table.parents()
    ]
    columns = new_tables()
    return [
        analyse(spark, target, schemas, columns[target.name], references)
        for target in load_mapping(FOLDER / "mapping.py")
    ]


def readers(plans: list[MappingPlan], table: str, column: str) -> int:
    return sum(column in plan.reads.get(table, ()) for plan in plans)


def test_every_target_is_accepted_and_no_unread_column_is_read(plans: list[MappingPlan]) -> None:
    assert {plan.target.name for plan in plans} == set(new_tables())
    for table in TABLES:
        for name, _ in named(table.unread):
            assert readers(plans, table.name, name) == 0, (table.name, name)
        for name, _ in named(table.columns):
            assert readers(plans, table.name, name) > 0, (table.name, name)


def test_three_targets_read_what_the_changes_for_three_targets_assign(plans: list[MappingPlan]) -> None:
    for change in changes():
        if change.name in THREE_TARGETS:
            table, column = change.script.partition("UPDATE ")[2].split()[:3:2]
            assert readers(plans, table, column) == 3, change.name
