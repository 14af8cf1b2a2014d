"""Which collations of a target take different texts for one: asked of each that the server has."""

from __future__ import annotations

import pytest

from migrator.adapters.targets.mysql.types import Declared, storage_of
from tests.integration.key_spellings import Kind, set_up
from tests.integration.target_bench import bench
from tests.servers import Database

pytestmark = [pytest.mark.integration]

NDCI = "CREATE COLLATION ndci (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"

PAIRS = (
    ("a", "A"),
    ("a", "a "),
    ("a", "a   "),
    ("e", "é"),
    ("ss", "ß"),
    ("a", "a\t"),
    ("1", "01"),
    ("ab", "a-b"),
)
"""Texts that some collation takes for one; those that a character set lacks are left out."""


def collation(character_set: str, name: str) -> str:
    declared = Declared(
        "k", "varchar", "varchar(20)", False, False, False, None, None, None, character_set, name, 20
    )
    return storage_of(declared).column.collation


@pytest.mark.parametrize("fixture", ["new_mysql", "new_maria"])
def test_a_collation_that_counts_as_exact_takes_no_two_texts_for_one(
    fixture: str, request: pytest.FixtureRequest
) -> None:
    server: Database = request.getfixturevalue(fixture)
    listed = server.query(
        "SELECT character_set_name, collation_name FROM information_schema.collations"
        " WHERE character_set_name IS NOT NULL AND character_set_name <> 'binary'"
    )
    exact = [(charset, name) for charset, name in listed if not collation(charset, name)]
    assert exact, "a server of these engines has at least one"
    for charset, name in exact:
        for one, other in PAIRS:
            left, right = (
                f"CONVERT(_utf8mb4 X'{text.encode().hex()}' USING {charset})" for text in (one, other)
            )
            [(kept, same)] = server.query(
                f"SELECT CONVERT({right} USING utf8mb4) = BINARY _utf8mb4 X'{other.encode().hex()}',"
                f" {left} COLLATE {name} = {right} COLLATE {name}"
            )
            assert not (kept and same), f"{name} takes {one!r} and {other!r} for one"
    inexact = {name for _, name in listed} - {name for _, name in exact}
    assert {"utf8mb4_general_ci", "utf8mb4_bin"} <= inexact, (
        "the control: blanks, or case, don't count in these"
    )
    assert collation("utf8mb4", "utf8mb4_bin") == "utf8mb4_bin"


@pytest.mark.parametrize(
    ("declared", "exact"),
    [
        ("text", True),
        ('text COLLATE "C"', True),
        ("text COLLATE ndci", False),
        ("uuid", True),
        ("numeric(20,0)", True),
    ],
)
def test_a_key_of_postgresql_names_the_collation_that_takes_texts_for_one(
    declared: str, exact: bool, new_pg: Database
) -> None:
    if not exact:
        set_up(new_pg, Kind("case", declared, (), (NDCI,)))
    new_pg.execute(f"CREATE TABLE keyed (k {declared} PRIMARY KEY)")
    with bench(new_pg) as it:
        (table,) = it.target.tables(["keyed"])
    assert (table.columns[0].collation == "") is exact
