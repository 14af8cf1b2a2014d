"""A trigger of the target that changes what the mapping made is named before anything is committed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
import pytest

from migrator.errors import BesideError
from migrator.ports.target import TargetRows
from tests.integration import target_bench, target_bench_mysql
from tests.servers import Database

pytestmark = pytest.mark.integration

TABLE = "CREATE TABLE item (id int PRIMARY KEY, name varchar(20), noted varchar(20))"
BODIES = {
    "pg": "CREATE FUNCTION {0}() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN {1} RETURN NEW; END'",
    "mysql": "CREATE TRIGGER {0} BEFORE {2} ON item FOR EACH ROW {1}",
}


@contextmanager
def benched(database: Database, *statements: str) -> Iterator[Any]:
    made = target_bench.bench if database.kind == "postgresql" else target_bench_mysql.bench
    with made(database, *statements) as it:
        yield it


@pytest.fixture(params=["pg", "maria", "mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"new_{request.param}")
    return found


def before(new: Database, name: str, body: str, event: str = "INSERT") -> list[str]:
    """Statements that make a trigger."""
    if new.kind != "postgresql":
        return [BODIES["mysql"].format(name, body, event)]
    body = body.replace("SET ", "").replace(" = ", " := ").replace("'", "''")
    trigger = f"CREATE TRIGGER {name} BEFORE {event} ON item FOR EACH ROW EXECUTE FUNCTION {name}()"
    return [BODIES["pg"].format(name, body + ";"), trigger]


def rows(**names: str | None) -> pa.Table:
    ids = [int(name.removeprefix("i")) for name in names]
    return pa.table({"id": pa.array(ids, pa.int32()), "name": pa.array(list(names.values()), pa.string())})


def keys(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int32())})


def refused(it: Any, part: TargetRows, key: str) -> BesideError:
    held = it.ledger_segment()
    with pytest.raises(BesideError, match=r"a trigger changes what is written to .*item") as caught:
        it.apply(part)
    assert f"id='{key}', trigger" in caught.value.where
    assert it.ledger_segment() == held
    return caught.value


def test_a_changed_value_is_named_in_dump_and_stream_and_the_remedy_helps(new: Database) -> None:
    changing = before(new, "shout", "SET NEW.name = upper(NEW.name)")
    renaming = before(new, "cut", "SET NEW.name = coalesce(NEW.name, 'none')", "UPDATE")
    harmless = before(new, "note", "SET NEW.noted = 'now'", "UPDATE")
    with benched(new, TABLE, *changing, *harmless) as it:
        it.apply(it.part("item", chunk=rows(i1="A", i2=None)))
        it.apply(it.part("item", before=keys(1), after=rows(i1="B")))  # one may write what isn't ours
        error = refused(it, it.part("item", chunk=rows(i3="B", i4="c")), "4")
        refused(it, it.part("item", after=rows(i4="c")), "4")
        for statement in error.remedy.partition(" until cut-over")[0].split("; "):
            new.execute(statement)
        it.apply(it.part("item", after=rows(i4="c")))
        new.execute(*renaming)  # while we run
        refused(it, it.part("item", before=keys(4), after=rows(i4=None)), "4")
        it.apply(it.part("item", before=keys(4), after=rows(i4="e")))
    assert sorted(new.query("SELECT id, name, noted FROM item")) == [
        (1, "B", "now"),
        (2, None, None),
        (4, "e", None),
    ]


def test_what_a_trigger_of_postgresql_suppresses_or_writes_afterwards_is_named(new_pg: Database) -> None:
    made = (
        "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF OLD.id = 1 THEN RETURN NULL; END IF; RETURN OLD; END'",
        "CREATE TRIGGER keep BEFORE DELETE ON item FOR EACH ROW EXECUTE FUNCTION keep()",
        "CREATE FUNCTION less() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN DELETE FROM public.item WHERE id = 3; UPDATE public.earlier SET id = 8 WHERE id = 7;"
        " RETURN NULL; END'",
        "CREATE TRIGGER less AFTER INSERT ON item EXECUTE FUNCTION less()",
    )
    with benched(new_pg, TABLE, "CREATE TABLE earlier (id int PRIMARY KEY)", *made) as it:
        it.apply(it.part("item", after=rows(i1="a", i2="b")))
        it.apply(it.part("item", before=keys(2)))
        refused(it, it.part("item", before=keys(1)), "1")
        refused(it, it.part("item", after=rows(i3="c", i4="d")), "3")
        with pytest.raises(BesideError, match=r"a trigger changes what is written to .*earlier"):
            it.apply(it.part("earlier", after=keys(7)), it.part("item", after=rows(i4="d")))
    assert new_pg.query("SELECT id FROM item") == [(1,)]
