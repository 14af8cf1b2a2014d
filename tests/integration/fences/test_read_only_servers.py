"""A fence on a server that takes no writes: named by its cause, and the remedy, followed, ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from migrator.adapters.fences.mysql import session as of_mysql
from migrator.adapters.fences.postgres import session as of_postgres
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.embedded.process import scratch_directory
from migrator.errors import CutoverError, MigratorError
from migrator.model.cutover.fence import FenceKind, Standing
from tests.contract.fences.fence_under_test import LONG_S, plan_of, run
from tests.integration.fences.mysql_place import FENCES, MysqlPlace
from tests.integration.fences.postgres_place import PostgresPlace
from tests.servers import Database, embedded_postgres, fresh_database, server_of

pytestmark = pytest.mark.integration

NO_WRITES = "the database takes no writes"
STRICTEST = {"mysql": "super_read_only", "mariadb": "read_only"}
EXEMPT = "READ_ONLY ADMIN"
"""MariaDB's right whose owners write all the same."""


@pytest.fixture(params=["spare_mysql", "spare_mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[MysqlPlace]:
    with fresh_database(request.getfixturevalue(request.param), "old") as database:
        made = MysqlPlace(database)
        yield made
        database.execute("SET GLOBAL read_only = OFF")
        made.drop()


@pytest.fixture
def login(place: MysqlPlace) -> Iterator[Database]:
    """A login with all rights but those that pass a server that is read-only."""
    if place.database.kind == "mysql":  # whose super_read_only stops everybody
        yield place.database
        return
    name = f"plain_{place.database.database[-8:]}"
    account = place.account(name)
    place.database.execute(
        f"CREATE USER {account}",
        f"GRANT ALL ON *.* TO {account} WITH GRANT OPTION",
        f"REVOKE {EXEMPT} ON *.* FROM {account}",
    )
    yield replace(place.database, user=name)
    place.database.execute(f"DROP USER {account}")


def fence_of(login: Database, migration: str = "shop") -> Any:
    return FENCES[login.kind](Side(server_of(login), migration, "source"))


def refused(call: Callable[[], object], what: str) -> str:
    """The remedy."""
    with pytest.raises(MigratorError, match=what) as caught:
        call()
    assert "GRANT" not in caught.value.remedy
    assert "use a login" not in caught.value.remedy
    assert not caught.value.retryable
    return caught.value.remedy


def followed(place: MysqlPlace, remedy: str) -> None:
    """Does as the remedy says, as an administrator."""
    assert "SET GLOBAL read_only = OFF" in remedy
    place.database.execute("SET GLOBAL read_only = OFF")


def closed(place: MysqlPlace) -> None:
    place.database.execute(f"SET GLOBAL {STRICTEST[place.database.kind]} = ON")


def test_a_server_that_became_read_only_is_named_and_the_remedy_works(
    place: MysqlPlace, login: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, fence = plan_of(place, FenceKind.TRIGGERS), fence_of(login)
    fence.raise_fence(plan, LONG_S, epoch=1)
    fence.open_fence(plan, LONG_S, epoch=1)
    closed(place)
    for epoch in (1, 2):  # noted at once, or claimed first
        remedy = refused(partial(fence.raise_fence, plan, LONG_S, epoch), NO_WRITES)
    with monkeypatch.context() as without:  # the control
        without.setattr(of_mysql, "state_of", lambda code, words: None)
        with pytest.raises(CutoverError) as caught:
            fence.raise_fence(plan, LONG_S, epoch=2)
        assert "use a login" in caught.value.remedy
    followed(place, remedy)
    assert fence.raise_fence(plan, LONG_S, epoch=2).standing is Standing.UP
    closed(place)
    assert fence.state(plan).standing is Standing.UP
    followed(place, refused(lambda: fence.open_fence(plan, LONG_S, epoch=2), NO_WRITES))
    assert fence.open_fence(plan, LONG_S, epoch=2).standing is Standing.DOWN


def test_one_that_was_read_only_from_the_beginning_is_named_too(place: MysqlPlace, login: Database) -> None:
    plan, fence = plan_of(place, FenceKind.TRIGGERS), fence_of(login)
    place.database.execute("DROP DATABASE IF EXISTS migrator")
    closed(place)
    remedy = refused(lambda: fence.raise_fence(plan, LONG_S, epoch=1), "table .* can't be made")
    followed(place, remedy)
    fence.raise_fence(plan, LONG_S, epoch=1)
    fence.open_fence(plan, LONG_S, epoch=1)


def test_a_server_that_another_fence_made_read_only_is_opened_by_that_one(
    place: MysqlPlace, login: Database
) -> None:
    """Who did as a read-only server's remedy says would open the other migration's fence."""
    other, plan = plan_of(place, FenceKind.READ_ONLY), plan_of(place, FenceKind.TRIGGERS)
    fence_of(place.database, "other").raise_fence(other, LONG_S, epoch=1)
    remedy = refused(lambda: fence_of(login).raise_fence(plan, LONG_S, epoch=1), NO_WRITES)
    assert "other (source); open that one first" in remedy
    assert "SET GLOBAL" not in remedy
    fence_of(place.database, "other").open_fence(other, LONG_S, epoch=1)
    fence_of(login).raise_fence(plan, LONG_S, epoch=1)
    fence_of(login).open_fence(plan, LONG_S, epoch=1)


def test_a_default_of_postgresql_that_makes_transactions_read_only_stops_no_fence(old_pg: Database) -> None:
    place = PostgresPlace(old_pg)
    try:
        plan = plan_of(place, FenceKind.TRIGGERS)
        setting = "default_transaction_read_only = on"
        old_pg.execute(f'ALTER DATABASE "{old_pg.database}" SET {setting}')
        with old_pg.connect() as connection:
            assert connection.execute("SHOW default_transaction_read_only").fetchone() == ("on",), (
                "the control"
            )
        place.fence().raise_fence(plan, LONG_S)
        assert place.fence().open_fence(plan, LONG_S).standing is Standing.DOWN
    finally:
        with old_pg.connect(autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute(f'ALTER DATABASE "{old_pg.database}" RESET default_transaction_read_only')
        place.drop()


@pytest.mark.slow
def test_a_standby_of_postgresql_is_named_and_fenced_once_it_is_promoted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with scratch_directory("migrator-fence-") as scratch:
        folder = Path(scratch) / "server"
        with embedded_postgres(folder) as server:
            server.create_database("old")
            place = PostgresPlace(
                Database(server.host, server.port, "old", server.superuser, "", "postgresql")
            )
            plan = plan_of(place, FenceKind.TRIGGERS)
            place.fence().raise_fence(plan, LONG_S, epoch=1)
            place.fence().open_fence(plan, LONG_S, epoch=1)
            server.stop()
            (folder / "data" / "standby.signal").touch()
            server.start()
            for epoch in (1, 2):
                remedy = refused(partial(place.fence().raise_fence, plan, LONG_S, epoch), NO_WRITES)
            with monkeypatch.context() as without:  # the control
                without.setattr(of_postgres, "state_of", lambda sqlstate: None)
                with pytest.raises(CutoverError) as caught:
                    place.fence().raise_fence(plan, LONG_S, epoch=2)
                assert "use a login" in caught.value.remedy
            place.database.query(remedy.partition("promote this server: ")[2].partition(";")[0])
            assert place.fence().raise_fence(plan, LONG_S, epoch=2).standing is Standing.UP
            assert place.fence().open_fence(plan, LONG_S, epoch=2).standing is Standing.DOWN


def test_prepared_transactions_are_ended_where_no_other_database_is(place: MysqlPlace) -> None:
    """Nothing tells whose they are: one that another application has promised to commit is left to it."""
    plan, fence = plan_of(place, FenceKind.ACCOUNT_LOCK), place.fence()
    app = place.connect(place.app)
    for statement in ("XA START 'x'", f"INSERT INTO {place.table(1)} VALUES (9, 1, 1)", "XA END 'x'"):
        run(app, statement)
    run(app, "XA PREPARE 'x'")
    app.close()
    place.database.execute("CREATE DATABASE `other-s`", "CREATE TABLE `other-s`.t (id int PRIMARY KEY)")
    try:
        (found,) = fence.open_transactions(plan)
        fence.end([found])
        assert fence.open_transactions(plan) == (found,)
    finally:
        place.database.execute("DROP DATABASE `other-s`")
    fence.end([found])
    assert fence.open_transactions(plan) == ()
