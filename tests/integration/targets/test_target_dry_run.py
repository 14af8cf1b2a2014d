"""What a target would refuse of rows, tried in a copy of its table: columns that the rows lack, names, functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import BesideError, TargetError
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration


@contextmanager
def benched(database: Database, *statements: str) -> Iterator[Any]:
    made = target_bench.bench if database.kind == "postgresql" else target_bench_mysql.bench
    with made(database, *statements) as it:
        yield it


@pytest.fixture(params=["pg", "maria", "mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"new_{request.param}")
    return found


def item(a: list[int | None] | None, name: list[str]) -> pa.Table:
    columns = {"id": pa.array(range(1, len(name) + 1), pa.int32()), "name": pa.array(name, pa.string())}
    return pa.table(columns if a is None else {**columns, "a": pa.array(a, pa.int32())})


def test_what_depends_on_an_untried_column_is_not_asked_and_the_row_at_fault_is_named(new: Database) -> None:
    computed = "" if new.kind == "mariadb" else " NOT NULL"  # which MariaDB doesn't know
    condition = "CONSTRAINT filled CHECK (a IS NOT NULL AND name <> 'ba`d')"
    made = (
        "CREATE TABLE item (id int PRIMARY KEY, a int DEFAULT 0 CHECK (a <> 0), name varchar(20) NOT NULL,"
        f" g int GENERATED ALWAYS AS (a + 1) STORED{computed}, UNIQUE (a, id),"
        f" CONSTRAINT never CHECK (g <> 7), {condition}, CONSTRAINT known CHECK (name <> 'worse'))"
    )
    with benched(new, made) as it:
        (table,) = it.target.tables(["item"])
        whole = it.target.refused(table, item([1, None], ["fine", "fine"]))
        assert isinstance(whole, TargetError)
        assert "filled" in f"{whole.where} {whole.cause}" or "column g" in whole.where
        named = it.target.refused(table, item([1, 1], ["fine", "ba`d"]))
        assert "filled" in f"{named.where} {named.cause}"
        assert "migrator_dry_run" not in str(named)
        assert it.target.refused(table, item(None, ["fine", "ba`d"]), ["a"]) is None
        assert "known" in str(it.target.refused(table, item(None, ["fine", "worse"]), ["a"]))
        assert (
            it.target.refused(table, item(None, ["fine"])) is not None
        )  # not mapped at all: its default is 0


def test_a_default_that_a_sequence_makes_moves_none(new_maria: Database) -> None:
    made = (
        "CREATE SEQUENCE numbers",
        "CREATE TABLE item (id int PRIMARY KEY, name text, a int NOT NULL DEFAULT nextval(numbers) CHECK (a > 0))",
    )
    with benched(new_maria, *made) as it:
        (table,) = it.target.tables(["item"])
        assert it.target.refused(table, item(None, ["fine", "fine"])) is None
    assert new_maria.query("SELECT nextval(numbers)") == [(1,)]


BODY = "SELECT EXISTS (SELECT FROM code WHERE code.name = $1)"
FUNCTIONS = {
    "a condition, in SQL": ("sql", BODY, "item ADD CHECK (known(name))"),
    "a condition, in PL/pgSQL": ("plpgsql", f"BEGIN RETURN ({BODY}); END", "item ADD CHECK (known(name))"),
    "a domain": ("sql", BODY, "item ALTER name TYPE filled"),
}


@pytest.mark.parametrize(("language", "body", "change"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_function_that_finds_nothing_is_named_not_a_row_and_the_remedy_helps(
    new_pg: Database, language: str, body: str, change: str
) -> None:
    made = (
        "CREATE TABLE code (name text)",
        "INSERT INTO code VALUES ('fine')",
        "CREATE TABLE item (id int PRIMARY KEY, name text)",
        f"CREATE FUNCTION known(text) RETURNS boolean LANGUAGE {language} AS $$ {body} $$",
        "CREATE DOMAIN filled AS text CHECK (known(VALUE))",
        f"ALTER TABLE {change}",
    )
    with benched(new_pg, *made) as it:
        (table,) = it.target.tables(["item"])
        error = it.target.refused(table, item(None, ["fine"]))
        assert isinstance(error, BesideError), error
        assert error.where == "public.item, function public.known(text)"
        with pytest.raises(BesideError, match="doesn't find what it names") as caught:
            it.apply(it.part("item", after=item(None, ["fine"])))
        assert caught.value.remedy == error.remedy
        command, _, rest = error.remedy.partition(" (or ")
        assert rest
        new_pg.execute(command)
        assert str(it.target.refused(table, item(None, ["fine"]))) == "None"
        bad = it.target.refused(table, item(None, ["fine", "bad"]))
        assert isinstance(bad, TargetError)
        assert not isinstance(bad, BesideError)
        it.apply(it.part("item", after=item(None, ["fine"])))


def test_a_function_that_is_not_allowed_to_us_is_told_from_the_table(new_pg: Database) -> None:
    role = f"poor_{new_pg.database}"
    made = (
        "CREATE TABLE code (name text)",
        "CREATE FUNCTION known(text) RETURNS boolean LANGUAGE plpgsql AS"
        " $$ BEGIN RETURN NOT EXISTS (SELECT FROM public.code WHERE code.name = $1); END $$",
        "CREATE TABLE item (id int PRIMARY KEY, name text CHECK (known(name)))",
        f"CREATE ROLE {role} LOGIN",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON item TO {role}",
        f"GRANT CREATE ON DATABASE {new_pg.database} TO {role}",
    )
    new_pg.execute(*made)
    with target_bench.bench(new_pg, user=role, password=None) as it:
        (table,) = it.target.tables(["item"])
        error = it.target.refused(table, item(None, ["fine"]))
        assert isinstance(error, BesideError), error
        assert "code" in error.cause
        new_pg.execute("ALTER FUNCTION known SECURITY DEFINER")
        assert it.target.refused(table, item(None, ["fine"])) is None
        new_pg.execute(f"REVOKE INSERT ON item FROM {role}")
        with pytest.raises(TargetError, match="doesn't allow us to write"):
            it.apply(it.part("item", after=item(None, ["fine"])))
