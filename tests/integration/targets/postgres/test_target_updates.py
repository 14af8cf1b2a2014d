"""Batches of nothing but updates: written by an update, unless some row isn't there."""

from __future__ import annotations

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from tests.integration.target_bench import Bench, bench
from tests.servers import Database

pytestmark = pytest.mark.integration

ROWS = 1500
ITEM = "CREATE TABLE item (id int PRIMARY KEY, name text, amount int)"
UNIQUE = "CREATE TABLE item (id int PRIMARY KEY, name text UNIQUE, amount int)"
TELLING = (
    ITEM,
    "CREATE TABLE told (word text)",
    "CREATE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql SET search_path = public AS"
    " $$BEGIN INSERT INTO told VALUES (TG_OP); RETURN NULL; END$$",
    # An upsert fires both, also where it inserts nothing.
    "CREATE TRIGGER tell AFTER INSERT OR UPDATE ON item FOR EACH STATEMENT EXECUTE FUNCTION tell()",
)


APART = pytest.mark.parametrize("apart", [1, 2, -1, 3])
"""Up to two apart that part of the key's index is read along; else each key is looked up."""


def items(amount: int | None, names: list[int] | None = None, apart: int = 1) -> pa.Table:
    """Rows 1 to ``ROWS`` with one amount, their ids so far apart."""
    numbers = range(1, ROWS + 1)
    return pa.table(
        {
            "id": pa.array([n * apart for n in numbers], pa.int32()),
            "name": [f"name {n}" for n in names or numbers],
            "amount": pa.array([amount] * ROWS, pa.int32()),
        }
    )


def told(it: Bench) -> set[str]:
    """Which statements have run since the last call."""
    words = {str(row[0]) for row in it.database.query("SELECT word FROM told")}
    it.database.execute("TRUNCATE told")
    return words


def test_rows_that_all_change_are_updated(new_pg: Database) -> None:
    """The control: where one row stays as it is, an upsert finds that out, and doesn't write it."""
    with bench(new_pg, *TELLING) as it:
        it.apply(it.part("item", chunk=items(1)))
        told(it)
        it.apply(it.part("item", before=items(1), after=items(2)))
        assert told(it) == {"UPDATE"}
        assert new_pg.query("SELECT count(*), min(amount), max(amount) FROM item") == [(ROWS, 2, 2)]
        kept = new_pg.query("SELECT xmin::text FROM item WHERE id = 1")
        one = pa.concat_tables([items(2).slice(0, 1), items(3).slice(1)])
        it.apply(it.part("item", before=items(2), after=one))
        assert told(it) == {"INSERT", "UPDATE"}
        assert new_pg.query("SELECT xmin::text FROM item WHERE id = 1") == kept
        assert new_pg.query("SELECT sum(amount) FROM item") == [(3 * ROWS - 1,)]


@APART
def test_a_row_that_is_not_there_comes_back(new_pg: Database, apart: int) -> None:
    """Somebody has deleted two beside us. Rows between ours and beside them stay as they are."""
    with bench(new_pg, *TELLING) as it:
        it.apply(it.part("item", chunk=items(1, apart=apart)))
        beside = sorted({0, 7 * apart + 1, (ROWS + 1) * apart} - {n * apart for n in range(1, ROWS + 1)})
        new_pg.execute(*(f"INSERT INTO item VALUES ({n}, 'beside', 5)" for n in beside))
        told(it)
        it.apply(it.part("item", before=items(1, apart=apart), after=items(2, apart=apart)))
        assert told(it) == {"UPDATE"}
        new_pg.execute(f"DELETE FROM item WHERE id IN ({7 * apart}, {ROWS * apart})")
        it.apply(it.part("item", before=items(2, apart=apart), after=items(None, apart=apart)))
        assert told(it) == {"INSERT", "UPDATE"}
        found = new_pg.query("SELECT count(*), count(amount), min(amount), max(amount) FROM item")
        assert found == [(ROWS + len(beside), len(beside), 5, 5)]


def test_unique_values_still_change_places(new_pg: Database) -> None:
    with bench(new_pg, UNIQUE) as it:
        it.apply(it.part("item", chunk=items(1)))
        turned = [*range(2, ROWS + 1), 1]
        it.apply(it.part("item", before=items(1), after=items(2, turned)))
        assert new_pg.query("SELECT name, amount FROM item WHERE id IN (1, 1500) ORDER BY id") == [
            ("name 2", 2),
            ("name 1", 2),
        ]


def test_a_row_that_the_server_refuses_is_named(new_pg: Database) -> None:
    """And nothing of its batch is written."""
    with bench(new_pg, ITEM, "ALTER TABLE item ADD CHECK (amount < 2 OR id <> 77)") as it:
        it.apply(it.part("item", chunk=items(1)))
        with pytest.raises(TargetError, match=r"item.*77"):
            it.apply(it.part("item", before=items(1), after=items(2)))
        assert new_pg.query("SELECT min(amount), max(amount) FROM item") == [(1, 1)]


@APART
def test_the_rest_of_the_transaction_is_planned_as_ever(new_pg: Database, apart: int) -> None:
    """The update forbids plans that read a whole table, for itself alone."""
    plan = (
        "CREATE FUNCTION seen() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN INSERT INTO public.settings VALUES"
        " (TG_TABLE_NAME, current_setting('enable_hashjoin'), current_setting('enable_mergejoin'),"
        " current_setting('enable_nestloop'));"
        " RETURN NULL; END$$"
    )
    with bench(
        new_pg,
        ITEM,
        "CREATE TABLE other (id int PRIMARY KEY, amount int)",
        "CREATE TABLE settings (told_by text, hashjoin text, mergejoin text, nestloop text)",
        plan,
        "CREATE TRIGGER s AFTER UPDATE ON item FOR EACH STATEMENT EXECUTE FUNCTION seen()",
        "CREATE TRIGGER s AFTER INSERT ON other FOR EACH STATEMENT EXECUTE FUNCTION seen()",
    ) as it:
        it.apply(it.part("item", chunk=items(1, apart=apart)))
        new_pg.execute("TRUNCATE settings")
        row = pa.table({"id": pa.array([1], pa.int32()), "amount": pa.array([1], pa.int32())})
        it.apply(
            it.part("item", before=items(1, apart=apart), after=items(2, apart=apart)),
            it.part("other", after=row),
        )
        seen = set(new_pg.query("SELECT * FROM settings"))
        joins = ("off", "off", "on") if apart == 3 else ("off", "on", "off")
        assert seen == {("item", *joins), ("other", "on", "on", "on")}
