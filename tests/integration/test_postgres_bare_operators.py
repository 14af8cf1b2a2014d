"""No statement of ours compares a user's values by an operator that it doesn't name: the server looks, not a reader.

An operator without its schema is the one that the search path has for the very types. Here every comparison of two
values of the tables' types is a trap: a function that raises, in a schema before pg_catalog. Whoever writes a bare
operator on a user's column falls into it, whichever operator it is, and however the statement came about.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pyarrow as pa
import pytest

from migrator.adapters.target_postgres import settings as target_settings
from migrator.adapters.target_postgres.structure import Equality
from migrator.errors import MigratorError
from tests.contract.target_contract import TargetContract
from tests.contract.target_under_test import TargetUnderTest
from tests.integration.target_bench import bench, ints, texts
from tests.integration.test_target_contract import PostgresPlace
from tests.servers import Database

pytestmark = pytest.mark.integration

COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")
TYPES = ("numeric", "bpchar")
"""Nothing of our own (ledger, catalog, mirror) has them."""


def traps(types: tuple[str, ...]) -> list[str]:
    """The statements that make a trap of each comparison of these types."""
    statements = ["CREATE SCHEMA trap"]
    for number, one in enumerate(types):
        name = f"trap.fall{number}"
        statements.append(
            f"CREATE FUNCTION {name}({one}, {one}) RETURNS boolean LANGUAGE plpgsql AS"
            " $$BEGIN RAISE 'a bare operator was taken'; END$$"
        )
        statements += [
            f"CREATE OPERATOR trap.{operator} (LEFTARG = {one}, RIGHTARG = {one}, FUNCTION = {name})"
            for operator in COMPARISONS
        ]
    return statements


@pytest.fixture
def trapped(monkeypatch: pytest.MonkeyPatch) -> None:
    pins = {**target_settings._PINS, "search_path": "trap, pg_catalog"}
    monkeypatch.setattr(target_settings, "_PINS", pins)


def typed(database: Database) -> None:
    """The contract's tables with the types that have traps."""
    database.execute(
        *traps(TYPES),
        "DROP TABLE note, item, person, kept",
        "CREATE TABLE item (id numeric PRIMARY KEY, name bpchar, quantity numeric)",
        "CREATE TABLE person (id numeric PRIMARY KEY, email bpchar UNIQUE)",
        "CREATE TABLE note (id numeric PRIMARY KEY, item_id numeric REFERENCES item)",
        "CREATE TABLE kept (id numeric PRIMARY KEY, name bpchar, extra bpchar DEFAULT 'kept')",
    )


class TestTargetWithTraps(TargetContract):
    """All that a target does, with traps."""

    test_keys_and_references_are_reflected = None  # type: ignore[assignment]

    @pytest.fixture
    def place(self, new_pg: Database, trapped: None) -> Iterator[TargetUnderTest]:
        place = PostgresPlace(new_pg)
        typed(new_pg)
        yield place
        place.close()


def test_a_bare_operator_is_caught(new_pg: Database, trapped: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: one that loses its schema falls into the trap."""
    new_pg.execute(*traps(TYPES), "CREATE TABLE t (id bpchar PRIMARY KEY, v bpchar)")
    monkeypatch.setattr(Equality, "of", lambda _, one, other: f"{one} = {other}")
    rows = pa.table(texts("id", "a") | texts("v", "1"))
    with bench(new_pg) as it, pytest.raises(MigratorError, match="a bare operator was taken"):
        it.apply(it.part("t", chunk=rows, before=pa.table(texts("id", "a"))))


def compared(one: str, how: str) -> list[str]:
    """The statements that give a type operators in public; ``how``: SQL of the result of each."""
    made = []
    for name, operator in zip(("eq", "ne", "lt", "le", "gt", "ge"), COMPARISONS, strict=True):
        body = how.format(operator)
        made += [
            f"CREATE FUNCTION public.{one}_{name}({one}, {one}) RETURNS boolean LANGUAGE sql IMMUTABLE AS '{body}'",
            f"CREATE OPERATOR public.{operator}"
            f" (LEFTARG = {one}, RIGHTARG = {one}, FUNCTION = public.{one}_{name})",
        ]
    return made


NEVER = "SELECT false"
KINDS = {
    "varchar": ("varchar(9)", compared("varchar", NEVER)),
    "domain": ("word", ["CREATE DOMAIN word AS varchar(9)", *compared("varchar", NEVER)]),
    "enum": ("mood", ["CREATE TYPE mood AS ENUM ('a', 'b', 'c')", *compared("mood", NEVER)]),
    "citext": ("citext", ["CREATE EXTENSION citext SCHEMA public", *compared("text", NEVER)]),
    "a domain of citext": (
        "name",
        [
            "CREATE EXTENSION citext SCHEMA public",
            "CREATE DOMAIN public.name AS citext",
            *compared("text", NEVER),
        ],
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_old_rows_are_gone_whatever_operators_public_has_for_the_type(new_pg: Database, kind: str) -> None:
    declared, statements = KINDS[kind]
    declared = declared.replace("name", "public.name")
    try:
        new_pg.execute(*statements)
    except psycopg.errors.FeatureNotSupported as error:
        pytest.skip(f"this server's packages have no citext (Debian's have): {error}")
    new_pg.execute(
        f"CREATE TABLE parent (k {declared} PRIMARY KEY, u {declared} UNIQUE, v int)",
        f"CREATE TABLE child (k {declared} PRIMARY KEY, p {declared} REFERENCES parent)",
        f'ALTER DATABASE "{new_pg.database}" SET search_path = public, pg_catalog',
    )

    def parents(*rows: str) -> pa.Table:
        first, second = zip(*rows, strict=True)
        return pa.table(texts("k", *first) | texts("u", *second) | ints("v", *[len(rows)] * len(rows)))

    with bench(new_pg) as it:
        it.apply(
            it.part("parent", chunk=parents("aa", "bb", "cc")),
            it.part("child", chunk=pa.table(texts("k", "a", "b") | texts("p", "a", "b"))),
        )
        it.apply(
            it.part("parent", before=parents("aa", "bb"), after=parents("ab", "ba"))
        )  # unique values swapped
        it.apply(
            it.part("child", before=pa.table(texts("k", "a") | texts("p", "a"))),
            it.part("parent", before=parents("ab"), after=parents("ac")[:0]),
        )
        it.apply(it.part("parent", before=parents("cc")))
    assert new_pg.query("SELECT k::text, u::text FROM parent") == [("b", "a")]
    assert new_pg.query("SELECT k::text, p::text FROM child") == [("b", "b")]
