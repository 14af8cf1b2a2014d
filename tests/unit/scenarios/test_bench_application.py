"""The application of ``migrator bench``: a seed decides it, its parts name the same tables, its changes have their
shares."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from migrator.model.reach import Reference
from migrator.model.table import Column, TableId, TableSchema
from scenarios.bench.application_measured import TARGETS
from scenarios.bench.shapes import application
from scenarios.bench.shapes.application.changes import (
    SHARES,
    THREE_TARGETS,
    Change,
    changes,
    per_transaction,
    rows_a_transaction,
)
from scenarios.bench.shapes.application.tables import BY_NAME, TABLES, named, rows_of, statements
from transforms import load_mapping
from transforms.analysis.grain import reaches

MAPPING = load_mapping(Path(str(application.__file__)).parent / "mapping.py")


def schema(name: str) -> TableSchema:
    table = BY_NAME[name]
    numbers = [f"{name}_id", *(f"{parent}_id" for parent in table.parents())]
    columns = [Column(number, "int64", False, "bigint") for number in numbers]
    columns += [Column(column, "string", True, kind) for column, kind in named(table.columns + table.unread)]
    return TableSchema(TableId("old", name), tuple(columns), (f"{name}_id",))


REFERENCES = [
    Reference(TableId("old", table.name), (f"{parent}_id",), TableId("old", parent), (f"{parent}_id",))
    for table in TABLES
    for parent in table.parents()
]


def test_a_seed_makes_the_same_rows_and_another_seed_others() -> None:
    assert list(statements(seed=3)) == list(statements(seed=3))
    assert list(statements(seed=3)) != list(statements(seed=4))


def test_no_two_columns_are_drawn_alike() -> None:
    fillings = [text for text in statements() if text.startswith("INSERT")]
    seeds = [set(re.findall(r"hashint8extended\(i, (\d+)\)", text)) for text in fillings]
    assert sum(map(len, seeds)) == len(set().union(*seeds))


def test_the_tables_are_those_of_an_application() -> None:
    assert len(TABLES) == len(BY_NAME) == 36
    assert Counter(table.kind for table in TABLES) == {"lookup": 11, "entity": 14, "link": 7, "history": 4}
    for number, table in enumerate(TABLES):
        assert set(table.parents()) <= {before.name for before in TABLES[:number]}
        assert (20 <= table.rows <= 200) if table.kind == "lookup" else (200 <= table.rows <= 100_000)


def test_every_table_is_read_and_every_target_joins() -> None:
    targets = list(MAPPING)
    assert len(targets) == TARGETS
    assert {name for target in targets for name in target.sources} == set(BY_NAME)
    assert {len(target.sources) for target in targets} == {2, 3, 4, 5}


@pytest.mark.parametrize("target", MAPPING, ids=lambda target: target.name)
def test_the_grain_of_every_target_reaches_all_its_tables(target: object) -> None:
    found = MAPPING[target.name]  # type: ignore[attr-defined]
    schemas = {name: schema(name) for name in found.sources}
    used = [one for one in REFERENCES if {one.child.name, one.parent.name} <= set(found.sources)]
    roles = {node.role for reach in reaches(found, schemas, used) for node in reach.nodes}
    assert roles == set(found.sources)


def shares(chosen: tuple[Change, ...]) -> dict[str, float]:
    """The part of each kind in all row changes."""
    drawn = per_transaction(chosen)
    rows = Counter[str]()
    for change in chosen:
        rows[change.kind] += drawn[change.name] * change.rows  # type: ignore[assignment]
    return {kind: number / rows_a_transaction(chosen) for kind, number in rows.items()}


def test_row_changes_have_the_shares_of_their_kinds() -> None:
    assert shares(changes()) == pytest.approx(SHARES)
    assert sum(SHARES.values()) == pytest.approx(1.0)


def test_kinds_that_are_not_chosen_have_no_share() -> None:
    chosen = tuple(change for change in changes() if change.kind in ("unread", "hot"))
    assert shares(chosen) == pytest.approx({"unread": 0.80 / 0.81, "hot": 0.01 / 0.81})


def test_an_unread_change_assigns_columns_that_are_declared_unread() -> None:
    for change in changes():
        for table, assigned in re.findall(r"UPDATE (\w+) SET (.*) WHERE", change.script):
            columns = set(re.findall(r"(\w+) = ", assigned))
            unread = {name for name, _ in named(BY_NAME[table].unread)}
            assert columns <= unread if change.kind == "unread" else not columns & unread


def test_keys_are_drawn_from_the_rows_that_a_scale_makes() -> None:
    for scale in (0.1, 1.0):
        for change in changes(scale):
            for table, most in re.findall(
                r"set id random\(1, (\d+)\)[^;]*(?:UPDATE|FROM) (\w+)", change.script
            ):
                assert int(table) == rows_of(BY_NAME[most], scale)


def test_names_are_unique() -> None:
    names = [change.name for change in changes()]
    assert len(names) == len(set(names))
    assert set(THREE_TARGETS) <= set(names)
