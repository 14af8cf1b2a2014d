"""Ways round a fence on MySQL and MariaDB: closed, or named; locks in its way."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import pymysql
import pytest

from migrator.adapters.fences.mysql.accounts import Accounts
from migrator.adapters.fences.mysql.rights import like
from migrator.adapters.fences.mysql.transactions import running
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.cutover.fence import FenceKind, FencePlan, Standing
from tests.contract.fences.fence_under_test import LONG_S, MESSAGE, down, plan_of, rows_of, run
from tests.integration.fences.acting import Acting
from tests.integration.fences.mysql_place import FENCES, MysqlPlace
from tests.integration.waiting import await_true
from tests.servers import fresh_database, server_of

pytestmark = pytest.mark.integration


@pytest.fixture(params=["mysql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[MysqlPlace]:
    with fresh_database(request.getfixturevalue(request.param), "old") as database:
        made = MysqlPlace(database)
        yield made
        made.drop()


def refused(connection: Any, statement: str) -> str:
    """The message with which a statement is refused."""
    with pytest.raises(pymysql.err.MySQLError) as error:
        run(connection, statement)
    return str(error.value)


def test_triggers_stop_administrators_routines_and_every_statement(place: MysqlPlace) -> None:
    customer, orders, odd = (place.table(number) for number in range(3))
    place.database.execute(
        f"CREATE PROCEDURE sweep() SQL SECURITY DEFINER DELETE FROM {orders}",
        f"CREATE DEFINER = {place.account(place.ours)} PROCEDURE as_ours() SQL SECURITY DEFINER DELETE FROM {orders}",
        f"CREATE VIEW some_orders AS SELECT * FROM {orders}",
    )
    plan = plan_of(place, FenceKind.TRIGGERS)
    rows = [rows_of(place, number) for number in range(3)]
    place.fence().raise_fence(plan, LONG_S)
    for login in ("", place.app):
        connection = place.connect(login)
        for statement in (
            f"DELETE FROM {orders}",
            f"REPLACE INTO {orders} VALUES (1, 1, 1)",
            f"INSERT INTO {orders} VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE amount = 0",
            f"UPDATE {orders} o JOIN {customer} c ON c.id = o.customer_id SET o.amount = 0, c.name = ''",
            f"DELETE FROM {customer} WHERE id = 1",
            f"INSERT INTO {odd} VALUES (1, 'late')",
            "CALL sweep()",
            "CALL as_ours()",
            "UPDATE some_orders SET amount = 0",
        ):
            assert MESSAGE in refused(connection, statement), statement
        connection.close()
    assert [rows_of(place, number) for number in range(3)] == rows
    down(place, plan)


def test_an_event_of_an_administrator_is_stopped_by_triggers(place: MysqlPlace) -> None:
    orders = place.table(1)
    plan = plan_of(place, FenceKind.TRIGGERS)
    place.fence().raise_fence(plan, LONG_S)
    [(scheduler,)] = place.database.query("SELECT @@GLOBAL.event_scheduler")
    place.database.execute(
        "SET GLOBAL event_scheduler = ON",
        "CREATE TABLE ran (id int)",
        "CREATE EVENT job ON SCHEDULE AT CURRENT_TIMESTAMP ON COMPLETION PRESERVE DO BEGIN"
        f" DECLARE EXIT HANDLER FOR SQLEXCEPTION INSERT INTO ran VALUES (1); DELETE FROM {orders}; END",
    )
    try:
        await_true(lambda: place.database.query("SELECT * FROM ran") != [], "the event")
    finally:
        place.database.execute(f"SET GLOBAL event_scheduler = {scheduler}")
    assert len(rows_of(place, 1)) == 2
    down(place, plan)


def test_the_survey_names_ways_round(place: MysqlPlace) -> None:
    database, role = place.database, f"r{place.database.database[-8:]}"
    customer, orders = place.table(0), place.table(1)
    database.execute(
        "CREATE TABLE region (id bigint PRIMARY KEY)",
        f"ALTER TABLE {customer} ADD region bigint,"
        " ADD FOREIGN KEY (region) REFERENCES region (id) ON DELETE CASCADE",
        f"CREATE PROCEDURE sweep() SQL SECURITY DEFINER DELETE FROM {orders}",
        f"CREATE VIEW some_orders AS SELECT * FROM {orders}",
        f"CREATE TRIGGER carried AFTER DELETE ON region FOR EACH ROW DELETE FROM {orders}",
        f"CREATE EVENT later ON SCHEDULE AT '2037-01-01 00:00:00' DO DELETE FROM {orders}",
        f"CREATE ROLE {role}",
        f"CREATE USER {place.account('by ' + role)}",
        f"GRANT UPDATE, DROP ON {orders} TO {role}",
        f"GRANT {role} TO {place.account('by ' + role)}",
    )
    try:
        survey = place.fence().survey(place.tables, place.ours)
        by_login = {writer.login: writer.by for writer in survey.writers}
        assert by_login[place.role] == ("grant",)
        assert any(role in by for by in by_login[f"by {role}@%"])
        assert not any(login.startswith(place.ours) for login in by_login)
        name = database.database
        triggers = {way.label for way in survey.choice(FenceKind.TRIGGERS).ways}
        assert f"cascade {name}.region" in triggers
        assert f"truncate by {role}@%" in triggers
        assert f"truncate {place.role}" not in triggers
        locks = survey.choice(FenceKind.ACCOUNT_LOCK)
        labels = {way.label for way in locks.open_ways((place.role,))}
        assert labels >= {
            f"account by {role}@%",
            f"procedure {name}.sweep",
            f"event {name}.later",
            f"view {name}.some_orders",
            f"trigger {name}.carried",
        }
        assert f"account {place.role}" not in labels
        assert survey.choice(FenceKind.REVOKE).obstacles
    finally:
        database.execute("DROP EVENT later", f"DROP ROLE {role}", f"DROP USER {place.account('by ' + role)}")


def test_a_login_that_may_not_write_is_an_obstacle(place: MysqlPlace) -> None:
    survey = place.fence().survey(place.tables, "nobody")
    assert (
        "login nobody, which is to go on writing, has no INSERT"
        in survey.choice(FenceKind.TRIGGERS).obstacles[0]
    )


def test_other_databases_keep_the_server_from_being_read_only(place: MysqlPlace) -> None:
    plan = plan_of(place, FenceKind.READ_ONLY)
    other = f"{place.database.database}_mirror"  # dropped with the place
    place.database.execute(f"CREATE DATABASE {other}")
    with pytest.raises(CutoverError) as error:
        place.fence().raise_fence(plan, LONG_S)
    assert f"the server holds other databases too: {other}" in error.value.cause


def test_an_account_that_was_locked_stays_locked(place: MysqlPlace) -> None:
    place.database.execute(f"ALTER USER {place.account(place.app)} ACCOUNT LOCK")
    before = place.listing()
    plan = plan_of(place, FenceKind.ACCOUNT_LOCK)
    with pytest.raises(CutoverError, match="all accounts of the plan are locked already"):
        place.fence().raise_fence(plan, LONG_S)
    other = f"b{place.database.database[-8:]}"
    place.database.execute(f"CREATE USER {place.account(other)}")
    try:
        plan = plan_of(place, FenceKind.ACCOUNT_LOCK, roles=(place.role, f"{other}@%"))
        place.fence().raise_fence(plan, LONG_S)
        down(place, plan)
        assert place.listing() == before
    finally:
        place.database.execute(f"DROP USER {place.account(other)}")


def test_open_transactions_of_others_are_named_and_ended(place: MysqlPlace) -> None:
    plan, fence = plan_of(place, FenceKind.ACCOUNT_LOCK), place.fence()
    admin, app = place.connect(""), place.connect(place.app)
    for connection, key in ((admin, 1), (app, 2)):
        run(connection, "BEGIN")
        run(connection, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = {key}")
    fence.raise_fence(plan, LONG_S)
    [found] = fence.open_transactions(plan)
    assert (found.login, found.prepared) == ("root", False)
    fence.end([found])
    await_true(lambda: not fence.open_transactions(plan), "its end")
    assert [row[2] for row in rows_of(place, 1)] == [5, 6]
    down(place, plan)


@pytest.mark.parametrize("kind", [FenceKind.TRIGGERS, FenceKind.ACCOUNT_LOCK])
def test_a_prepared_transaction_is_named_and_left_where_it_may_be_anothers(
    place: MysqlPlace, kind: FenceKind
) -> None:
    """On a server without other databases it is ended: see test_read_only_servers."""
    plan, fence = plan_of(place, kind), place.fence()
    another = f"another_{place.database.database[-10:]}"
    place.database.execute(f"CREATE DATABASE {another}", f"CREATE TABLE {another}.t (id int PRIMARY KEY)")
    app = place.connect(place.app)
    for statement in (
        "XA START 'one''s', 'b', 7",
        f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 1",
        "XA END 'one''s', 'b', 7",
        "XA PREPARE 'one''s', 'b', 7",
    ):
        run(app, statement)
    app.close()
    try:
        # MariaDB gives a table free when the session of a prepared transaction ends.
        if kind is FenceKind.TRIGGERS and place.database.kind == "mysql":
            with pytest.raises(CutoverError) as error:
                fence.raise_fence(plan, 0.5)
            assert "XA transaction" in error.value.cause
        else:
            fence.raise_fence(plan, LONG_S)
        [found] = fence.open_transactions(plan)
        assert found.prepared
        fence.end([found])
        assert fence.open_transactions(plan) == (found,), "its coordinator has promised to commit it"
        assert "XA ROLLBACK" in found.words()
    finally:
        run(place.connect(""), "XA ROLLBACK 'one''s', 'b', 7")
        place.database.execute(f"DROP DATABASE {another}")
    assert fence.open_transactions(plan) == ()
    assert [row[2] for row in rows_of(place, 1)] == [5, 6]
    fence.raise_fence(plan, LONG_S)
    down(place, plan)


def test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone(place: MysqlPlace) -> None:
    plan, before = plan_of(place, FenceKind.TRIGGERS), place.listing()
    reader, other = place.connect(place.app), place.connect(place.app)
    run(reader, "BEGIN")
    run(reader, f"SELECT * FROM {place.table(1)}")
    longest = 0.0
    raised = Acting(lambda: place.fence().raise_fence(plan, 3.0))
    while raised.is_alive():
        start = time.monotonic()
        run(other, f"SELECT * FROM {place.table(1)} WHERE id = 2")
        longest = max(longest, time.monotonic() - start)
    raised.join(LONG_S)
    assert longest < 1.0
    assert isinstance(raised.error, CutoverError)
    assert raised.error.retryable
    assert place.app in raised.error.cause
    assert place.listing() == before
    assert not place.noted()
    again = Acting(lambda: place.fence().raise_fence(plan, LONG_S))
    run(reader, "COMMIT")
    again.join(LONG_S)
    assert again.error is None
    down(place, plan)


def test_the_account_that_raises_the_fence_is_not_locked(place: MysqlPlace) -> None:
    plan = plan_of(place, FenceKind.ACCOUNT_LOCK, roles=("root@localhost",))
    with pytest.raises(CutoverError, match="would lock the account that raises it") as error:
        place.fence().raise_fence(plan, LONG_S)
    assert "with a login that no application uses" in error.value.remedy
    assert not place.noted()


def test_the_fence_of_a_target_keeps_its_notes_beside_the_tables(place: MysqlPlace) -> None:
    side = Side(server_of(place.database), "shop", "target")
    plan, before = plan_of(place, FenceKind.TRIGGERS), place.listing()
    for by_hand in (False, True):
        fence = FENCES[place.database.kind](side)
        assert fence.raise_fence(plan, LONG_S).standing is Standing.UP
        assert place.database.query("SELECT side FROM migrator_fence") == [("target",)]
        if by_hand:
            admin = place.database.connect(database="mysql")
            for statement in fence.by_hand(plan):
                run(admin, statement)
        else:
            assert fence.open_fence(plan, LONG_S).standing is Standing.DOWN
        assert place.listing() == before
        assert place.database.query("SELECT * FROM migrator_fence") == []


def test_a_plan_without_a_login_stops_everybody(place: MysqlPlace) -> None:
    plan = replace(plan_of(place, FenceKind.TRIGGERS), login="")
    place.fence().raise_fence(plan, LONG_S)
    ours = place.connect(place.ours)
    assert MESSAGE in refused(ours, f"DELETE FROM {place.table(1)}")
    assert place.fence().state(plan).standing is Standing.UP
    down(place, plan)


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [("shop", "shop", True), ("sh_p", "shop", True), (r"sh\_p", "shop", False), (r"sh\_p", "sh_p", True),
     ("s%", "shop", True), (r"s\%", "shop", False), ("shop", "shops", False)],
)  # fmt: skip
def test_patterns_of_databases(pattern: str, name: str, fits: bool) -> None:
    assert like(pattern, name) is fits


@contextmanager
def with_login(place: MysqlPlace, *grants: str) -> Iterator[MysqlPlace]:
    """The place whose fence's login has all rights on its database, may read the catalogue, and has these."""
    fencer = f"fencer{place.database.database[-10:]}"
    account = place.account(fencer)
    place.database.execute(
        f"CREATE USER {account}",
        f"GRANT ALL ON `{place.database.database}`.* TO {account}",
        f"GRANT SELECT ON mysql.* TO {account}",
        *(f"GRANT {grant} ON *.* TO {account}" for grant in grants),
    )
    if place.database.kind == "mysql":
        place.database.execute(f"GRANT SELECT ON performance_schema.* TO {account}")
    else:
        place.database.execute(f"GRANT SLAVE MONITOR ON *.* TO {account}")
    seen = copy(place)
    seen.database = replace(place.database, user=fencer, password="")
    try:
        yield seen
    finally:
        place.database.execute(f"DROP USER {account}")


def sees(place: MysqlPlace) -> tuple[str, ...]:
    """The rights without which others are hidden."""
    return place.fence().words.sees


def test_a_login_from_which_others_transactions_are_hidden_is_an_obstacle(place: MysqlPlace) -> None:
    for right in sees(place):
        rest = [one for one in sees(place) if one != right]
        with with_login(place, *rest) as other:
            survey = other.fence().survey(place.tables, place.ours)
            for kind in place.kinds:
                lacking = [one for one in survey.choice(kind).obstacles if "can't see others'" in one]
                assert [f"GRANT {right} ON *.* to it" in one for one in lacking] == [True], kind
    with with_login(place, *sees(place)) as other:
        survey = other.fence().survey(place.tables, place.ours)
        for kind in place.kinds:
            assert not any("can't see" in one for one in survey.choice(kind).obstacles), kind


def test_hidden_transactions_and_sessions_are_never_taken_for_none(place: MysqlPlace) -> None:
    plan = FencePlan(FenceKind.ACCOUNT_LOCK, place.tables, place.ours, MESSAGE, (place.role,))
    app = place.connect(place.app)
    run(app, "BEGIN")
    run(app, f"DELETE FROM {place.table(1)}")
    with with_login(place) as other, closing(other.fence()._new_session()) as session:
        accounts = Accounts(other.fence()._kept)
        with pytest.raises(CutoverError, match="can't see others' transactions") as error:
            running(session)
        assert "GRANT PROCESS" in error.value.remedy
        with pytest.raises(CutoverError, match="can't see others' transactions"):
            accounts._sessions(session, plan)
    with with_login(place, *sees(place)) as other, closing(other.fence()._new_session()) as session:
        assert place.app in {one.login for one in running(session)}
        assert place.app in {one.login for one in Accounts(other.fence()._kept)._sessions(session, plan)}
    app.close()


def test_a_server_that_says_nothing_is_given_up(place: MysqlPlace) -> None:
    side = Side(replace(server_of(place.database), silence_s=0.5), "shop", "source")
    with closing(FENCES[place.database.kind](side)._new_session()) as session:
        assert session.rows("SELECT 1") == [(1,)]
        for _ in range(2):
            with pytest.raises(ConnectionFailed, match="was lost") as error:
                session.rows("SELECT SLEEP(3)")
            assert error.value.retryable
