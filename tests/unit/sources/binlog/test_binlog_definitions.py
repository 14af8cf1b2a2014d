"""Definitions that could concern captured tables and aren't known to leave them alone stop the run."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.statements import judge
from migrator.model.table import TableId

OURS = TableId("old", "t")


def captured(table: TableId) -> TableId | None:
    return OURS if table.schema == "old" and table.name in ("t", "") else None


def refused(text: str, database: str) -> str:
    return judge(QueryText(database, text), "old", captured).refused


@pytest.mark.parametrize(
    "text",
    [
        "CREATE OR REPLACE DATABASE old CHARACTER SET utf8mb4",
        "/*M! CREATE */ OR REPLACE SCHEMA `old`",
        "ALTER DATABASE `old` UPGRADE DATA DIRECTORY NAME",
        "RENAME DATABASE old TO other",
        "CREATE SNAPSHOT OF old",
        "DROP EVERYTHING IN old",
    ],
)
def test_what_is_not_known_to_be_harmless_is_refused_where_it_concerns_us(text: str) -> None:
    assert refused(text, "elsewhere")
    assert not refused(text.replace("old", "another"), "elsewhere"), "the control"


def test_an_unknown_definition_within_our_database_needs_no_name_to_be_refused() -> None:
    assert refused("CREATE SNAPSHOT s", "old")


@pytest.mark.parametrize(
    "text",
    [
        "CREATE DATABASE IF NOT EXISTS old",
        "ALTER DATABASE old CHARACTER SET utf8mb4",
        "CREATE OR REPLACE ALGORITHM = MERGE DEFINER = `a`@`%` SQL SECURITY INVOKER VIEW old.v AS SELECT 1",
        "CREATE DEFINER = root@localhost TRIGGER old.tr BEFORE INSERT ON old.t FOR EACH ROW SET NEW.id = 1",
        "CREATE UNIQUE INDEX i ON old.t (id)",
        "CREATE TABLE old.u LIKE old.t",
        "CREATE OR REPLACE TEMPORARY TABLE old.u (id int)",
        "CREATE SPATIAL REFERENCE SYSTEM 4120 NAME 'x'",
        "CREATE OR REPLACE PACKAGE BODY old.p AS END",
        "CREATE RESOURCE GROUP g TYPE = USER",
        "ALTER EVENT old.e DISABLE",
        "ALTER INSTANCE ROTATE INNODB MASTER KEY",
        "RENAME USER old TO older",
        "DROP PREPARE p",
        "DROP ROLE old",
        "GRANT SELECT ON old.* TO u",
        "FLUSH TABLES old.t",
        "OPTIMIZE TABLE old.t",
    ],
)
def test_what_leaves_rows_alone_is_no_matter(text: str) -> None:
    assert not refused(text, "old")
