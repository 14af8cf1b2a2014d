"""The sakila story: all rows mapped, stored in the new schema and judged, without extra rows and with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg import sql
from pyspark.sql import SparkSession

from scenarios.database import Database
from scenarios.stories import sakila
from scenarios.stories.sakila import old_schema, oracle
from scenarios.stories.sakila.writers import ShopWriters
from tests import servers
from tests.integration.run_project import scenario_database
from tests.integration.stories.story_mapping import Types, frames, mapped, migrate, written
from tests.servers import MariaDBServer, PostgresServer, fresh_database
from transforms import load_mapping

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PROJECT = Path(sakila.__file__).parent
PARENTS_FIRST = (
    "language", "category", "film", "film_pricing", "film_category", "actor", "film_cast", "address", "person",
    "store", "customer_account", "customer_archive", "staff_account", "staff_photo", "inventory_item", "rental",
    "payment", "payment_unallocated", "store_month_sales",
)  # fmt: skip
SPARK_TYPES = {
    "smallint": "smallint", "integer": "int", "bigint": "bigint", "boolean": "boolean", "date": "date",
    "timestamp with time zone": "timestamp", "double precision": "double", "bytea": "binary",
}  # fmt: skip
CHANGES = {
    "UPDATE customer SET active = 0 WHERE customer_id = 1": ["customer_account", "customer_archive"],
    "UPDATE film SET rental_duration = 9 WHERE film_id = 1": ["film", "film_pricing", "rental"],
    "UPDATE country SET country = 'Canadá' WHERE country_id = 20": ["address"],
    "UPDATE actor SET first_name = 'Susan' WHERE actor_id = 101": ["actor", "film_cast"],
    "UPDATE staff SET store_id = 2 WHERE staff_id = 1": [
        "payment", "payment_unallocated", "staff_account", "store", "store_month_sales",
    ],
    "DELETE FROM rental WHERE rental_id = 4591": ["inventory_item", "payment", "payment_unallocated", "rental"],
}  # fmt: skip
WRITES = 6000
ACTIONS = 18
SCHEMA = """
    SELECT table_name, column_name, data_type, udt_name, is_nullable, column_default, generation_expression,
        numeric_precision, numeric_scale
    FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> 'alembic_version'"""
CONSTRAINTS = """
    SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace AND conrelid <> 'alembic_version'::regclass"""


@dataclass(frozen=True)
class Story:
    """Both sides of the story, the new one empty but for its constant rows."""

    old_server: servers.Database
    new_server: servers.Database

    @property
    def old(self) -> Database:
        """The old side, as scenarios see it."""
        return scenario_database(self.old_server)

    @property
    def new(self) -> Database:
        """The new side, as scenarios see it."""
        return scenario_database(self.new_server)

    def types(self) -> Types:
        """Spark types of the new columns."""
        found: Types = {}
        for table, column, kind in self.new_server.query(
            "SELECT table_name, column_name, data_type FROM information_schema.columns"
            " WHERE table_schema = 'public'"
        ):
            found.setdefault(table, {})[column] = SPARK_TYPES.get(kind, "string")
        return found

    def store(self, spark: SparkSession) -> int:
        """Maps the old rows and stores them, past none of the new schema's constraints; returns their number."""
        mapping = load_mapping(PROJECT / "mapping.py")
        made = dict(mapped(mapping, frames(spark, self.old_server), self.types()))
        assert set(made) == set(PARENTS_FIRST)
        with self.new.postgres() as session:
            names = sql.SQL(", ").join(map(sql.Identifier, PARENTS_FIRST))
            session.execute(sql.SQL("TRUNCATE {}").format(names))
            for name in PARENTS_FIRST:
                columns = sql.SQL(", ").join(map(sql.Identifier, made[name].column_names))
                copy_in = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(name), columns)
                with session.cursor().copy(copy_in) as copy:
                    for row in made[name].to_pylist():
                        copy.write_row(list(row.values()))
        return sum(table.num_rows for table in made.values())


@pytest.fixture(scope="module")
def story(mariadb: MariaDBServer, postgres_target: PostgresServer) -> Iterator[Story]:
    """The old shop without extra rows, and the new schema."""
    with fresh_database(mariadb, "old") as old, fresh_database(postgres_target, "new") as new:
        made = Story(old, new)
        old_schema.load(made.old, extra_rows=False)
        migrate(new, PROJECT)
        yield made


@pytest.mark.slow
def test_every_table_is_what_the_story_says(story: Story, spark: SparkSession) -> None:
    assert story.store(spark) > 47_000
    assert oracle.differences(story.old, story.new) == []

    story.old_server.execute(*CHANGES)  # each must show in the tables of its rule, and nothing in others
    wrong = oracle.differences(story.old, story.new)
    assert {found.table for found in wrong} == {name for tables in CHANGES.values() for name in tables}
    assert {found.side for found in wrong} == {"missing", "extra"}

    old_schema.add_extra_rows(story.old)
    writers = ShopWriters(story.old, seed=3, rate_per_s=None, threads=1, limit_row_changes=WRITES)
    assert len(written(writers).by_action()) == ACTIONS
    story.store(spark)
    assert oracle.differences(story.old, story.new) == []


def test_the_revisions_make_the_schema_of_the_story(
    new_pg: servers.Database, postgres_target: PostgresServer
) -> None:
    migrate(new_pg, PROJECT)
    with fresh_database(postgres_target, "story") as given:
        script = (PROJECT / "data" / "new.pg.sql").read_text()
        given.execute("CREATE TABLE alembic_version ()", *filter(str.strip, script.split(";\n")))
        for query in (SCHEMA, CONSTRAINTS):
            assert sorted(map(str, new_pg.query(query))) == sorted(map(str, given.query(query)))
            assert len(given.query(query)) > 50
    migrate(new_pg, PROJECT, "base")
    assert new_pg.query(SCHEMA) == []
