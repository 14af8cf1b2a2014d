"""What a reset finds and empties in targets, without a run: circles of foreign keys, large tables, poor logins."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

import pytest

from migrator.adapters.targets.mysql.remains import MysqlRemains
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.postgres.remains import PostgresRemains
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.errors import HalfResetError, TargetError
from migrator.model.server import Server
from migrator.ports.remains import Kind, Left, MarkedRemains
from migrator.schema import upgrade_target
from tests.servers import Database, server_of

pytestmark = pytest.mark.integration

CIRCLE = (
    "CREATE TABLE a (id int PRIMARY KEY, b int, self int, CONSTRAINT to_self FOREIGN KEY (self) REFERENCES a (id))",
    "CREATE TABLE b (id int PRIMARY KEY, a int, CONSTRAINT to_a FOREIGN KEY (a) REFERENCES a (id))",
    "CREATE TABLE c (id int PRIMARY KEY, b int, CONSTRAINT to_b FOREIGN KEY (b) REFERENCES b (id))",
    "ALTER TABLE a ADD CONSTRAINT a_to_b FOREIGN KEY (b) REFERENCES b (id)",
    "INSERT INTO a VALUES (1, NULL, NULL), (2, NULL, 1)",
    "INSERT INTO b VALUES (1, 2)",
    "INSERT INTO c VALUES (1, 1)",
    "UPDATE a SET b = 1",
)
NAMES = ("a", "b", "c")


@pytest.fixture(params=["new_pg", "new_mysql", "new_maria"])
def new(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    return database


def remains(server: Server, names: tuple[str, ...] = NAMES, key_maps: bool = False) -> MarkedRemains:
    if server.kind == "postgresql":
        return PostgresRemains(PostgresTarget(server, "shop"), names, key_maps)
    return MysqlRemains(MysqlTarget(server, "shop"), names, key_maps)


def ledger(new: Database) -> str:
    return "migrator.ledger" if new.kind == "postgresql" else "migrator_ledger"


def made(new: Database) -> None:
    """The tool's own tables, with a row of this migration and of another one."""
    server = server_of(new)
    if server.kind == "postgresql":
        upgrade_target(PostgresTarget(server, "shop").url())
    else:
        upgrade_target(MysqlTarget(server, "shop").engine())
    for name in ("shop", "shop2"):
        new.execute(
            f"INSERT INTO {ledger(new)} (migration, epoch, segment, format) VALUES ('{name}', 4, 9, 1)"
        )


def rows(found: tuple[Left, ...]) -> tuple[Left, ...]:
    return tuple(left for left in found if left.kind is Kind.ROWS)


def test_tables_in_a_circle_are_emptied_and_those_beside_them_stay(new: Database) -> None:
    new.execute(*CIRCLE, "CREATE TABLE beside (id int PRIMARY KEY)", "INSERT INTO beside VALUES (1)")
    place = remains(server_of(new))
    left = rows(place.found().left)
    assert [one.name for one in left] == ["a", "b", "c"]
    assert left[0].said.startswith("2 rows of ")
    place.remove(left)
    assert rows(place.found().left) == ()
    assert new.query("SELECT id FROM beside") == [(1,)]
    place.remove(left)  # what is gone is no error


def test_rows_of_others_that_point_at_ours_refuse_and_a_table_without_such_rows_does_not(
    new: Database,
) -> None:
    new.execute(*CIRCLE)
    place = remains(server_of(new), ("a", "b"))
    with pytest.raises(TargetError, match="rows of another table point at") as caught:
        place.found()
    assert "foreign key to_b to" in caught.value.where
    new.execute("UPDATE c SET b = NULL")
    left = rows(place.found().left)
    place.remove(left)
    assert new.query("SELECT id FROM c") == [(1,)]
    assert rows(place.found().left) == ()


def test_one_table_may_lose_rows_that_mapped_ones_point_at(new: Database) -> None:
    new.execute(*CIRCLE)
    place = remains(server_of(new))
    left = place.rows_of("b")
    assert left is not None
    place.remove([left])
    assert place.rows_of("b") is None
    assert len(new.query("SELECT id FROM c")) == 1
    new.execute("INSERT INTO b VALUES (1, NULL)")
    with pytest.raises(TargetError, match="rows of another table point at"):
        remains(server_of(new), ("a", "b")).rows_of("b")


def test_a_mark_refuses_and_only_this_migrations_row_goes(new: Database) -> None:
    made(new)
    place = remains(server_of(new))
    assert place.epoch() == 4
    (left,) = place.found().left
    assert left.said == "the ledger's row (segment 9)"
    place.mark(8, "begun at noon")
    assert place.epoch() == 8
    with pytest.raises(HalfResetError) as caught:
        place.forget(9, "a", "table a")
    assert caught.value.cause == "begun at noon"
    place.remove([left])
    assert place.epoch() == 0
    assert new.query(f"SELECT migration, segment FROM {ledger(new)}") == [("shop2", 9)]


def test_where_nothing_was_ever_made_nothing_is_found_or_made(new: Database) -> None:
    place = remains(server_of(new))
    assert place.found().left == ()
    assert place.epoch() == 0
    place.mark(1, "begun")
    place.remove(
        [Left(Kind.LEDGER, "ledger", ""), Left(Kind.MIRROR, "mirror", ""), Left(Kind.KEY_MAPS, "", "")]
    )
    tables = "SELECT table_name FROM information_schema.tables WHERE table_name LIKE '%%ledger%%'"
    assert new.query(f"{tables} AND table_schema IN (%s, 'migrator')", [new.database]) == []


def test_more_rows_than_one_part_and_an_estimate_instead_of_a_count(new: Database) -> None:
    new.execute("CREATE TABLE a (id int PRIMARY KEY)")
    many = ", ".join(f"({number})" for number in range(45_001))
    new.execute(f"INSERT INTO a VALUES {many}")
    place = remains(server_of(new), ("a",))
    (left,) = place.found().left
    assert left.said.startswith("about ")
    place.remove([left])
    assert new.query("SELECT count(*) FROM a") == [(0,)]


@pytest.fixture
def poor(new_pg: Database) -> Iterator[Server]:
    """A login that may delete, and neither empty a table in one go nor turn foreign keys off."""
    role = f"poor_{secrets.token_hex(4)}"
    new_pg.execute(*CIRCLE, f"CREATE ROLE {role} LOGIN PASSWORD 'poor'",
                   f"GRANT SELECT, DELETE ON a, b, c TO {role}")  # fmt: skip
    yield server_of(new_pg, user=role, password="poor")
    new_pg.execute(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_without_a_right_the_statement_for_somebody_else_is_told_and_nothing_is_gone(
    poor: Server, new_pg: Database
) -> None:
    place = remains(poor)
    left = rows(place.found().left)
    with pytest.raises(TargetError, match="rows of the target can't be removed") as caught:
        place.remove(left)  # a points at b, and b at a
    assert [one.name for one in rows(place.found().left)] == ["a", "b", "c"]
    new_pg.execute("BEGIN", *told(caught.value), "ROLLBACK")
    new_pg.execute("ALTER TABLE a DROP CONSTRAINT a_to_b")
    place.remove(left)
    assert rows(place.found().left) == (), "children before their parents"


def told(error: TargetError) -> list[str]:
    return error.remedy.removeprefix("with more rights: ").partition("; then")[0].split("; ")
