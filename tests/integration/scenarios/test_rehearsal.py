"""A project is rehearsed whole on servers of its own; what loses writes doesn't pass, what can't be used is named."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.embedded.postgres import postgres_installation
from migrator.errors import ConfigError, MigratorError
from scenarios.database import Database as ScenarioDatabase
from scenarios.rehearsal import generated, schema, sides
from scenarios.rehearsal.account import FAILED, HOLDS
from scenarios.rehearsal.commands import rehearse
from scenarios.rehearsal.rehearsal import Order, Rehearsal
from tests.integration.cutover.two_way import HERE
from tests.integration.run_project import scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration]

SETTINGS = """
[migration]
name = "shop"
[source]
kind = "postgresql"
host = "old.example.org"
database = "old"
user = "migrator"
password_env = "NOT_SET_ANYWHERE"
[target]
kind = "postgresql"
host = "new.example.org"
database = "new"
user = "migrator"
password_env = "NOT_SET_ANYWHERE"
[back]
writer = "way_back"
writer_password_env = "NOT_SET_ANYWHERE"
[spark]
master = "local[2]"
"""
OLD = """
CREATE TABLE customer (customer_id int PRIMARY KEY, name varchar(80) NOT NULL, email varchar(120),
    note varchar(40) DEFAULT 'made new');
CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int NOT NULL, cents int NOT NULL,
    paid smallint NOT NULL CHECK (paid IN (0, 1)), origin varchar(20) DEFAULT 'web');
INSERT INTO customer SELECT n, 'name ' || n, 'n' || n || '@example.org', 'kept' FROM generate_series(1, 20) n;
INSERT INTO orders SELECT n, n % 20 + 1, n * 101, n % 2, 'shop' FROM generate_series(1, 60) n;
"""
MANY_KINDS = """
CREATE TYPE colour AS ENUM ('red', 'green');
CREATE DOMAIN percent AS integer CHECK (VALUE BETWEEN 0 AND 100);
CREATE TABLE country (code char(2) PRIMARY KEY, name varchar(40) NOT NULL UNIQUE);
CREATE TABLE person (person_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    code char(2) NOT NULL REFERENCES country,
    boss bigint REFERENCES person, likes colour NOT NULL, born date NOT NULL, seen timestamptz, score numeric(5,2),
    share percent NOT NULL, state text NOT NULL CHECK (state IN ('new', 'done')), size real CHECK (size > 0),
    token uuid NOT NULL UNIQUE, about jsonb, raw bytea, tags text[],
    lower_name text GENERATED ALWAYS AS (lower(state)) STORED, active boolean NOT NULL, spent interval, address inet);
CREATE TABLE visit (person_id bigint REFERENCES person, code char(2) REFERENCES country, at time NOT NULL,
    PRIMARY KEY (person_id, code));
"""


def project(folder: Path, reverse: str = "", more: str = "") -> Order:
    """The project that leads both ways, in a folder of its own, with its old schema beside it."""
    shutil.copytree(HERE, folder)
    (folder / "migration.toml").write_text(SETTINGS.replace("[spark]", f"{more}\n[spark]"))
    if reverse:
        text = (folder / "reverse.py").read_text()
        exact = "return purchase.select("
        assert exact in text
        (folder / "reverse.py").write_text(text.replace(exact, reverse))
    old = folder.parent / "old.sql"
    old.write_text(OLD)
    return Order(folder / "migration.toml", old, None, seconds=1.0)


@pytest.mark.slow
def test_a_project_that_leads_both_ways_holds(tmp_path: Path) -> None:
    order = project(tmp_path / "project")
    before = {file: file.read_bytes() for file in (tmp_path / "project").rglob("*") if file.is_file()}
    rehearsal = Rehearsal(order, print)
    rehearsal.run()
    account = rehearsal.account
    assert account.outcome() == HOLDS, account.document()
    names = [step.name for step in account.steps]
    assert [name for name in names if name.startswith("cutover")] == [
        "cutover start, under writes",
        "cutover back, under writes",
        "cutover start again, under writes",
    ]
    assert names[-1] == "verify --reverse"
    assert len(account.needs["pause"]) == 3
    assert {file: file.read_bytes() for file in (tmp_path / "project").rglob("*") if file.is_file()} == before


@pytest.mark.slow
def test_a_way_back_that_loses_rows_does_not_hold(tmp_path: Path) -> None:
    """The loss is accepted by name, so nothing refuses it: the clients miss their rows, and so does ``verify``."""
    losing = 'return purchase.where(F.col("purchase_id") < 1000).select('
    order = project(tmp_path / "project", losing, 'accept_lossy = ["orders.*"]')
    rehearsal = Rehearsal(order, print)
    rehearsal.run()
    assert rehearsal.account.outcome() == FAILED
    [rest] = [step for step in rehearsal.account.steps if "no acknowledged write is lost" in step.name]
    assert rest.outcome == FAILED
    assert any(line.startswith("old side, orders ") for line in rest.lines), rest.lines


def test_rows_are_made_up_that_keep_all_constraints(old_pg: Database) -> None:
    database = scenario_database(old_pg)
    old_pg.execute(MANY_KINDS)
    tables = schema.tables(database)
    assert generated.empty(database, tables)
    made = generated.fill(database, tables, 30)
    assert made.rows == {"country": 30, "person": 30, "visit": 30}
    assert made.fewer == {}
    assert old_pg.query("SELECT count(*) > 1 FROM person WHERE likes = 'red' AND state = 'new'") == [(True,)]


def test_a_table_for_which_no_row_can_be_made_up_is_named(old_pg: Database) -> None:
    database = scenario_database(old_pg)
    old_pg.execute(
        "CREATE TABLE odd (id int PRIMARY KEY, shape polygon NOT NULL)",
        "CREATE TABLE never (id int PRIMARY KEY, CHECK (id < 0))",
    )
    made = generated.fill(database, schema.tables(database), 30)
    assert made.rows == {"odd": 0, "never": 0}
    assert "shape polygon" in made.fewer["odd"]
    assert "never_id_check" in made.fewer["never"]


def test_a_dump_of_pg_dump_is_taken_with_the_roles_that_it_names(
    old_pg: Database, new_pg: Database, tmp_path: Path
) -> None:
    old_pg.execute(MANY_KINDS, "CREATE ROLE rehearsed_owner", "ALTER TABLE country OWNER TO rehearsed_owner")
    old_pg.execute("INSERT INTO country VALUES ('de', 'a;b'), ('fr', 'it''s')")
    program = str(postgres_installation() / "bin" / "pg_dump")
    dump = tmp_path / "old.sql"
    dump.write_text(
        subprocess.run([program, "-d", old_pg.dsn], stdout=subprocess.PIPE, text=True, check=True).stdout
    )
    old_pg.execute("ALTER TABLE country OWNER TO CURRENT_USER", "DROP ROLE rehearsed_owner")
    database = scenario_database(new_pg)
    sides.loaded(database, sides.read(dump, database), dump)
    assert schema.tables(database) == schema.tables(scenario_database(old_pg))
    assert new_pg.query("SELECT name FROM country ORDER BY code") == [("a;b",), ("it's",)]


def test_a_statement_that_the_server_refuses_is_named_with_its_line(old_pg: Database, tmp_path: Path) -> None:
    file = tmp_path / "old.sql"
    file.write_text("CREATE TABLE a (id int);\n\nCREATE TABLE b (id nothing);\n")
    database: ScenarioDatabase = scenario_database(old_pg)
    with pytest.raises(ConfigError) as refused:
        sides.loaded(database, sides.read(file, database), file)
    assert "line 3: CREATE TABLE b" in refused.value.where
    assert 'type "nothing" does not exist' in refused.value.cause
    # As the remedy says: the statement is taken out.
    file.write_text("CREATE TABLE c (id int);\n")
    sides.loaded(database, sides.read(file, database), file)


def test_files_that_are_not_there_are_named_before_anything_starts(tmp_path: Path) -> None:
    order = project(tmp_path / "project")
    missing = tmp_path / "nowhere.sql"
    result = CliRunner().invoke(rehearse, ["--config", str(order.config), "--old-schema", str(missing)])
    assert isinstance(result.exception, MigratorError)
    assert result.exception.where == str(missing)
    result = CliRunner().invoke(
        rehearse, ["--config", str(tmp_path / "no.toml"), "--old-schema", str(missing)]
    )
    assert isinstance(result.exception, ConfigError)
    assert "migrator init" in result.exception.remedy
