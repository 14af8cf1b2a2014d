"""Order of tables, quoting, and settings: what the PostgreSQL target decides without a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.targets.postgres.refusal import Refusal
from migrator.adapters.targets.postgres.rows.merge import Merge, qualified, quoted
from migrator.adapters.targets.postgres.rows.order import cycles, parents_first
from migrator.adapters.targets.postgres.rows.writer import DirectLoads
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Storage, Structure
from migrator.errors import ConfigError
from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable
from tests.servers import Database, server_and_rest

TABLES = [TableId("s", name) for name in "abcdef"]
GRAPHS = st.fixed_dictionaries({table: st.lists(st.sampled_from(TABLES), max_size=3) for table in TABLES})


def settings(**changes: object) -> PostgresTarget:
    server, rest = server_and_rest(Database("h", 5432, "d", "u", "", "postgresql"), changes)
    return PostgresTarget(server, **{"migration": "m", **rest})


@given(GRAPHS)
def test_parents_come_first_unless_they_are_in_a_circle(graph: dict[TableId, list[TableId]]) -> None:
    order = parents_first(graph)
    assert sorted(order) == TABLES
    circles = cycles(graph)
    for child, parents in graph.items():
        for parent in parents:
            together = any(child in circle and parent in circle for circle in circles)
            assert child == parent or together or order.index(parent) < order.index(child)


def test_circles_are_named_once() -> None:
    a, b, c, d, *_ = TABLES
    graph = {a: [b], b: [c], c: [a], d: [d, a]}
    assert cycles(graph) == [[a, b, c]]


@given(st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])))
def test_quoting_can_be_undone(name: str) -> None:
    text = quoted(name)
    assert text[0] == text[-1] == '"'
    assert text[1:-1].replace('""', '"') == name
    assert '"' not in text[1:-1].replace('""', "")


def test_unwritten_and_identity_columns_are_not_updated() -> None:
    def storage(name: str, identity_always: bool = False) -> Storage:
        column = TargetColumn(name, "int", "integer", True, False, False)
        return Storage(column, "int4", "integer", "pg_catalog.int4", identity_always=identity_always)

    table = TableId("s", 't"%s')
    columns = (storage("id"), storage("v"), storage("serial", identity_always=True), storage("other"))
    structure = Structure(TargetTable(table, tuple(one.column for one in columns), ("id",)), columns)
    merge = Merge(structure, ("id", "v", "serial"), ("{0}", "{0}", "{0}"), "stage")
    text = merge.upsert(strict=False)
    assert text.startswith(
        f'INSERT INTO {qualified(table)} AS t ("id", "v", "serial") OVERRIDING SYSTEM VALUE'
    )
    assert 'DO UPDATE SET "v" = excluded."v" WHERE' in text
    assert structure.moving(merge.written) == ("serial",)
    assert structure.kept(merge.written) == ("other",)
    only_key = Merge(structure, ("id",), ("{0}",), "stage")
    assert only_key.upsert(strict=False).endswith('ON CONFLICT ("id") DO NOTHING')


def test_direct_loads_rest_after_a_conflict() -> None:
    loads, table = DirectLoads(), TABLES[0]
    assert loads.allowed(table)
    loads.conflict(table)
    refused = 0
    while not loads.allowed(table):
        refused += 1
    assert refused == 20
    assert loads.allowed(TABLES[1])


@pytest.mark.parametrize(
    ("sqlstate", "retryable", "row"),
    [
        ("40P01", True, False),
        ("55P03", True, False),
        ("53100", True, False),
        ("23505", False, True),
        ("22001", False, True),
        ("42501", False, False),
    ],
)
def test_what_may_be_tried_again(sqlstate: str, retryable: bool, row: bool) -> None:
    refusal = Refusal(sqlstate, "words")
    assert (refusal.retryable(), refusal.about_a_row()) == (retryable, row)


def test_the_line_and_column_of_a_copy_are_read() -> None:
    refusal = Refusal("22001", "too long", context="COPY migrator_stage_3, line 7, column c2")
    assert (refusal.copy_line(), refusal.copy_column()) == (7, "c2")
    german = Refusal("22001", "zu lang", context="COPY t, Zeile 12, Spalte »v«: »abc«")
    assert german.copy_line() == 12
    whole = Refusal("23505", "twice", context="COPY t, line 2")
    assert (whole.copy_line(), whole.copy_column()) == (2, "")
    assert Refusal("23505", "twice", context="SQL statement").copy_line() is None


def test_the_password_is_not_printed() -> None:
    target = settings(password="s3cret'\\ ")
    assert "s3cret" not in repr(target) + str(target.url()) + target.server.address
    assert "s3cret" in target.conninfo()


@pytest.mark.parametrize("wrong", [{"migration": "No"}, {"tls": "maybe"}, {"schema": ""}, {"lock_wait_s": 0}])
def test_wrong_settings_are_named(wrong: dict[str, object]) -> None:
    with pytest.raises(ConfigError) as raised:
        settings(**wrong)
    assert raised.value.where in wrong
