"""Ways round a fence on PostgreSQL: closed, or named; locks in its way; grants of every shape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from migrator.adapters.fences.postgres.fence import PostgresFence
from migrator.adapters.fences.postgres.read_only import ReadOnly
from migrator.adapters.fences.postgres.session import quoted, quoted_table
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.adapters.fences.shared.notes import Noted
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.cutover.fence import FenceKind, FencePlan, Standing
from migrator.model.table import TableId
from tests.contract.fences.fence_under_test import LONG_S, MESSAGE, down, plan_of, rows_of
from tests.integration.fences.acting import Acting
from tests.integration.fences.postgres_place import PostgresPlace
from tests.integration.waiting import await_true
from tests.servers import Database, PostgresServer, embedded_postgres, fresh_database, server_of

pytestmark = pytest.mark.integration


@pytest.fixture
def place(old_pg: Database) -> Iterator[PostgresPlace]:
    made = PostgresPlace(old_pg)
    yield made
    made.drop()


def refused(connection: Any, *statements: str) -> str:
    """The message with which the last statement is refused."""
    *first, last = statements
    for statement in first:
        connection.execute(statement)
    with pytest.raises(psycopg.Error) as error:
        connection.execute(last)
    connection.rollback()
    return str(error.value)


def test_triggers_stop_superusers_replicas_truncate_copy_and_functions_of_owners(
    place: PostgresPlace,
) -> None:
    place.database.execute(
        "CREATE FUNCTION as_ours() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM orders'",
        f"GRANT CREATE ON SCHEMA public TO {quoted(place.ours)}",
        f"ALTER FUNCTION as_ours() OWNER TO {quoted(place.ours)}",
    )
    plan, rows = plan_of(place, FenceKind.TRIGGERS), rows_of(place, 1)
    place.fence().raise_fence(plan, LONG_S)
    with place.connect("") as superuser, place.connect(place.app) as app:
        assert MESSAGE in refused(superuser, "DELETE FROM orders")
        assert MESSAGE in refused(superuser, "SET session_replication_role = replica", "DELETE FROM orders")
        assert MESSAGE in refused(superuser, "TRUNCATE orders")
        assert MESSAGE in refused(app, "SELECT as_owner()")
        assert MESSAGE in refused(app, "SELECT as_ours()")
        assert MESSAGE in refused(app, "DELETE FROM customer WHERE id = 1")
        assert MESSAGE in refused(
            app, "MERGE INTO orders o USING customer c ON o.id = c.id WHEN MATCHED THEN DELETE"
        )
        with pytest.raises(psycopg.Error, match="moved"), app.cursor().copy("COPY orders FROM STDIN") as copy:
            copy.write_row((9, 1, 1))
    assert rows_of(place, 1) == rows
    late = place.fence().late(plan)
    assert dict(late.by_login) == {place.app: 5, place.database.user: 3}
    with place.connect(place.ours) as ours:
        ours.execute("TRUNCATE orders")
    down(place, plan)


def test_partitions_and_heirs_are_fenced_too_and_those_that_come_later(place: PostgresPlace) -> None:
    app = quoted(place.app)
    place.database.execute(
        "CREATE TABLE parts (id bigint, day int) PARTITION BY LIST (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        "CREATE TABLE parts_2 PARTITION OF parts FOR VALUES IN (2) PARTITION BY HASH (id)",
        "CREATE TABLE parts_2_0 PARTITION OF parts_2 FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
        "CREATE TABLE heads (id bigint)",
        "CREATE TABLE heirs () INHERITS (heads)",
        f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {app}, {quoted(place.ours)}",
        "INSERT INTO parts VALUES (1, 1), (2, 2)",
        "INSERT INTO heirs VALUES (1)",
    )
    tables = (TableId("public", "parts"), TableId("public", "heads"))
    before = place.listing()
    for kind in (FenceKind.TRIGGERS, FenceKind.REVOKE):
        plan = plan_of(place, kind, tables=tables)
        assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
        with place.connect(place.app) as writer:
            for table in ("parts", "parts_1", "parts_2", "parts_2_0", "heads", "heirs"):
                refused(writer, f"DELETE FROM {table}")
                refused(writer, f"TRUNCATE {table}")
            if kind is FenceKind.TRIGGERS:
                place.database.execute("CREATE TABLE parts_3 PARTITION OF parts FOR VALUES IN (3)")
                place.database.execute(f"GRANT ALL ON parts_3 TO {app}")
                with place.connect("") as superuser:
                    superuser.execute("SET session_replication_role = replica")
                    assert MESSAGE in refused(superuser, "INSERT INTO parts_3 VALUES (1, 3)")
                place.database.execute("DROP TABLE parts_3")
        with place.connect(place.ours) as ours:
            ours.execute("INSERT INTO parts VALUES (5, 1), (6, 2)")
        down(place, plan)
        assert place.listing() == before


def test_a_partition_alone_is_fenced_against_writes_by_its_parent(place: PostgresPlace) -> None:
    place.database.execute(
        "CREATE TABLE parts (id bigint, day int) PARTITION BY LIST (day)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1)",
        f"GRANT ALL ON parts TO {quoted(place.app)}",
        f"GRANT ALL ON parts_1 TO {quoted(place.ours)}",
    )
    plan = plan_of(place, FenceKind.TRIGGERS, tables=(TableId("public", "parts_1"),))
    place.fence().raise_fence(plan, LONG_S)
    with place.connect(place.app) as app:
        assert MESSAGE in refused(app, "INSERT INTO parts VALUES (1, 1)")
    down(place, plan)


def test_the_survey_names_ways_round_rights(place: PostgresPlace) -> None:
    me, app = place.database.database, quoted(place.app)
    owner, member = f"owner {me}", f"member {me}"
    place.database.execute(
        f"CREATE ROLE {quoted(owner)} LOGIN",
        f"CREATE ROLE {quoted(member)} LOGIN",
        f"GRANT {app} TO {quoted(member)}",
        f"GRANT CREATE ON SCHEMA public TO {quoted(owner)}",
        f"ALTER TABLE orders OWNER TO {quoted(owner)}",
        f"ALTER TABLE customer OWNER TO {quoted(owner)}",
        "CREATE TABLE region (id bigint PRIMARY KEY)",
        "ALTER TABLE customer ADD region bigint REFERENCES region ON DELETE CASCADE",
        "CREATE VIEW some_orders AS SELECT * FROM orders",
        f"GRANT INSERT ON some_orders TO {app}",
        "CREATE FUNCTION sweep() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM orders'",
        "GRANT UPDATE (amount) ON orders TO PUBLIC",
    )
    try:
        survey = place.fence().survey(place.tables, place.ours)
        revoke = survey.choice(FenceKind.REVOKE)
        labels = {way.label for way in revoke.open_ways((place.app,))}
        assert labels >= {
            f"owner {owner}",
            f"superuser {place.database.user}",
            "role public",
            "view public.some_orders",
            "function public.sweep()",
            "cascade public.region",
        }
        assert f"role {place.app}" not in labels
        assert f"role {place.app}" in {way.label for way in revoke.open_ways(())}
        assert "role public" not in {way.label for way in revoke.open_ways(("public",))}
        assert survey.choice(FenceKind.TRIGGERS).ways == ()
        assert survey.advised() is FenceKind.TRIGGERS
        assert survey.choice(FenceKind.ACCOUNT_LOCK).obstacles
        by_login = {writer.login: writer.by for writer in survey.writers}
        assert f"role {place.app}" in by_login[member]
        assert place.ours not in by_login
    finally:
        place.database.execute("DROP VIEW some_orders", f"REASSIGN OWNED BY {quoted(owner)} TO CURRENT_USER")
        for login in (owner, member):
            place.database.execute(f"DROP OWNED BY {quoted(login)}", f"DROP ROLE {quoted(login)}")


def test_a_login_that_may_not_write_or_is_not_there_is_an_obstacle(place: PostgresPlace) -> None:
    survey = place.fence().survey(place.tables, "nobody at all")
    assert "there is no login nobody at all" in survey.choice(FenceKind.TRIGGERS).obstacles[0]
    place.database.execute(f"REVOKE DELETE ON orders FROM {quoted(place.ours)}")
    plan = replace(plan_of(place, FenceKind.TRIGGERS))
    with pytest.raises(CutoverError, match="can't be raised") as error:
        place.fence().raise_fence(plan, LONG_S)
    assert "has no right to write all tables" in error.value.cause
    assert place.fence().raise_fence(replace(plan, login=""), LONG_S).standing is Standing.UP
    down(place, replace(plan, login=""))


def test_our_login_must_not_have_its_rights_by_a_role_that_loses_them(place: PostgresPlace) -> None:
    ours, app = quoted(place.ours), quoted(place.app)
    place.database.execute(f"REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {ours}", f"GRANT {app} TO {ours}")
    before, plan = place.listing(), plan_of(place, FenceKind.REVOKE)
    with pytest.raises(CutoverError, match="can't write behind the fence") as error:
        place.fence().raise_fence(plan, LONG_S)
    assert place.listing() == before
    assert "grant INSERT, UPDATE and DELETE on the tables to it alone" in error.value.remedy
    place.database.execute(f"GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ours}")
    place.fence().raise_fence(plan_of(place, FenceKind.REVOKE), LONG_S)
    down(place, plan_of(place, FenceKind.REVOKE, accepted=plan.accepted))


@pytest.mark.parametrize("kind", [FenceKind.TRIGGERS, FenceKind.REVOKE])
def test_a_prepared_transaction_is_named_and_can_be_ended(prepared: PostgresPlace, kind: FenceKind) -> None:
    plan, fence = plan_of(prepared, kind), prepared.fence()
    rows = rows_of(prepared, 1)
    with prepared.connect(prepared.app) as app:
        for statement in ("BEGIN", "DELETE FROM orders WHERE id = 1", "PREPARE TRANSACTION 'later''s'"):
            app.execute(statement)
    if kind is FenceKind.TRIGGERS:  # no trigger can be made while it holds the table
        with pytest.raises(CutoverError) as error:
            fence.raise_fence(plan, 0.5)
        assert "later's" in error.value.cause
    else:
        fence.raise_fence(plan, LONG_S)
    [found] = fence.open_transactions(plan)
    assert (found.id, found.login, found.prepared) == ("later's", prepared.app, True)
    fence.end([found])
    assert fence.open_transactions(plan) == ()
    assert rows_of(prepared, 1) == rows
    fence.raise_fence(plan, LONG_S)
    down(prepared, plan)


@pytest.fixture
def prepared() -> Iterator[PostgresPlace]:
    """A place on a server of its own: max_prepared_transactions is fixed at start."""
    settings = {"max_prepared_transactions": "5"}
    with scratch_directory("fence-") as folder, embedded_postgres(folder, settings=settings) as server:
        admin = Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")
        with fresh_database(PostgresServer(admin, server), "old") as database:
            yield PostgresPlace(database)


def test_open_transactions_are_named_and_ended_where_rights_are_taken(place: PostgresPlace) -> None:
    plan, fence = plan_of(place, FenceKind.REVOKE), place.fence()
    with (
        place.connect(place.app) as app,
        place.connect(place.app) as reader,
        place.connect(place.ours) as ours,
    ):
        for session in (app, ours):
            session.execute("BEGIN")
            session.execute("UPDATE orders SET amount = 9 WHERE id = " + ("1" if session is app else "2"))
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM orders")
        fence.raise_fence(plan, LONG_S)
        [found] = fence.open_transactions(plan)
        assert (found.login, found.prepared) == (place.app, False)
        assert "UPDATE orders" in found.doing
        refused(app, "UPDATE customer SET name = 'late'")
        fence.end([found])
        await_true(lambda: not fence.open_transactions(plan), "its end")
        ours.execute("COMMIT")
    assert [row[2] for row in rows_of(place, 1)] == [5, 9]
    down(place, plan)


def test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone(place: PostgresPlace) -> None:
    plan, before = plan_of(place, FenceKind.TRIGGERS), place.listing()
    longest = [0.0]
    with place.connect(place.app) as writer, place.connect(place.app) as other:
        writer.execute("BEGIN")
        writer.execute("UPDATE orders SET amount = 8 WHERE id = 1")
        raised = Acting(lambda: place.fence().raise_fence(plan, 3.0))
        while raised.is_alive():
            start = time.monotonic()
            other.execute("UPDATE orders SET amount = 7 WHERE id = 2")
            longest[0] = max(longest[0], time.monotonic() - start)
        assert longest[0] < 1.0
        assert isinstance(raised.error, CutoverError)
        assert raised.error.retryable
        assert place.app in raised.error.cause
        assert "UPDATE orders SET amount = 8" in raised.error.cause
        assert place.listing() == before
        assert not place.noted()
        again = Acting(lambda: place.fence().raise_fence(plan, LONG_S))
        writer.execute("COMMIT")
        again.join(LONG_S)
        assert again.error is None
    down(place, plan)


def test_a_reader_delays_the_removal_and_yet_writers_pass_at_once(place: PostgresPlace) -> None:
    plan, before = plan_of(place, FenceKind.TRIGGERS), place.listing()
    with place.connect(place.app) as reader, place.connect(place.app) as writer:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM orders")
        place.fence().raise_fence(plan, LONG_S)
        with pytest.raises(CutoverError) as error:
            place.fence().open_fence(plan, 0.5)
        assert "SELECT * FROM orders" in error.value.cause
        writer.execute("UPDATE orders SET amount = 7 WHERE id = 2")
        assert place.fence().state(plan).standing is Standing.PARTLY
        reader.execute("COMMIT")
    down(place, plan)
    assert place.listing() == before


PRIVILEGES = ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER")
COLUMNED = ("SELECT", "INSERT", "UPDATE")
GRANT = st.tuples(
    st.sampled_from(PRIVILEGES), st.sampled_from(["customer", "orders"]), st.booleans(), st.booleans()
)


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink takes minutes of a server's time
)
@given(st.lists(GRANT, max_size=12), st.lists(GRANT, max_size=6), st.booleans())
def test_whatever_was_granted_is_granted_again(
    place: PostgresPlace, direct: list[Any], public: list[Any], chained: bool
) -> None:
    app, ours = quoted(place.app), quoted(place.ours)
    with place.connect("") as admin:
        admin.execute(f"REVOKE ALL ON customer, orders FROM {app}, PUBLIC CASCADE")
        for privilege, table, column, option in direct:
            part = " (id)" if column and privilege in COLUMNED else ""
            admin.execute(
                f"GRANT {privilege}{part} ON {table} TO {app}{' WITH GRANT OPTION' if option else ''}"
            )
        for privilege, table, column, _ in public:
            part = " (id)" if column and privilege in COLUMNED else ""
            admin.execute(f"GRANT {privilege}{part} ON {table} TO PUBLIC")
        if chained:  # everybody has it from the application, which has it with the option to grant it on
            admin.execute(f"GRANT DELETE ON orders TO {app} WITH GRANT OPTION")
            admin.execute(f"SET ROLE {app}")
            admin.execute("GRANT DELETE ON orders TO PUBLIC")
            admin.execute("RESET ROLE")
        admin.execute(f"GRANT INSERT, UPDATE, DELETE ON customer, orders TO {ours}")
        admin.execute(f"GRANT INSERT ON customer TO {app}")
    before = place.listing()
    plan = plan_of(place, FenceKind.REVOKE, roles=(place.app, "public"))
    assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
    rows = place.database.query(
        f"SELECT has_table_privilege('{place.app}', 'orders', 'INSERT, UPDATE, DELETE, TRUNCATE')"
        f" OR has_any_column_privilege('{place.app}', 'orders', 'INSERT, UPDATE')"
    )
    assert rows == [(False,)]
    down(place, plan)
    assert place.listing() == before


def test_what_a_fenced_role_granted_to_another_is_refused_by_name(place: PostgresPlace) -> None:
    with place.connect("") as admin:
        admin.execute(f"GRANT DELETE ON orders TO {quoted(place.app)} WITH GRANT OPTION")
        admin.execute(f"SET ROLE {quoted(place.app)}")
        admin.execute("GRANT DELETE ON orders TO PUBLIC")
    with pytest.raises(CutoverError, match=r"DELETE of public on public\.orders was granted by app") as error:
        place.fence().raise_fence(plan_of(place, FenceKind.REVOKE), LONG_S)
    assert "name public in the plan too" in error.value.remedy
    plan = plan_of(place, FenceKind.REVOKE, roles=(place.app, "public"))
    place.fence().raise_fence(plan, LONG_S)
    down(place, plan)


@contextmanager
def owning(place: PostgresPlace) -> Iterator[PostgresPlace]:
    """The place whose fence's login owns the database and its tables, may end sessions, and is no superuser."""
    fencer = f"fencer {place.database.database}"
    tables = [quoted_table(table) for table in place.tables]
    place.database.execute(
        f"CREATE ROLE {quoted(fencer)} LOGIN",
        f"GRANT pg_signal_backend TO {quoted(fencer)}",
        f"GRANT CREATE ON SCHEMA public TO {quoted(fencer)}",
        f"ALTER DATABASE {quoted(place.database.database)} OWNER TO {quoted(fencer)}",
        *(f"ALTER TABLE {table} OWNER TO {quoted(fencer)}" for table in tables),
    )
    seen = copy(place)
    seen.database = replace(place.database, user=fencer)
    try:
        yield seen
    finally:
        place.database.execute(
            f"ALTER DATABASE {quoted(place.database.database)} OWNER TO CURRENT_USER",
            f"REASSIGN OWNED BY {quoted(fencer)} TO CURRENT_USER",
            f"DROP OWNED BY {quoted(fencer)}",
            f"DROP ROLE {quoted(fencer)}",
        )


def test_a_login_from_which_others_transactions_are_hidden_is_an_obstacle(place: PostgresPlace) -> None:
    with owning(place) as owned:
        survey = owned.fence().survey(place.tables, place.ours)
        for kind in place.kinds:
            assert any("GRANT pg_read_all_stats to it" in one for one in survey.choice(kind).obstacles), kind
        place.database.execute(f"GRANT pg_read_all_stats TO {quoted(owned.database.user)}")
        survey = owned.fence().survey(place.tables, place.ours)
        for kind in place.kinds:
            assert not any("pg_read_all_stats" in one for one in survey.choice(kind).obstacles), kind
        plan = plan_of(owned, FenceKind.TRIGGERS)
        owned.fence().raise_fence(plan, LONG_S)
        down(owned, plan)


def test_a_transaction_whose_beginning_is_hidden_counts_as_open(place: PostgresPlace) -> None:
    """The right may be taken away while the fence stands: nothing seen is no proof then."""
    with owning(place) as owned:
        fencer = quoted(owned.database.user)
        place.database.execute(f"GRANT pg_monitor TO {fencer}")
        plan = plan_of(owned, FenceKind.REVOKE)
        with closing(place.connect(place.app)) as app:
            app.execute("BEGIN")
            app.execute("UPDATE orders SET amount = 9 WHERE id = 1")
            owned.fence().raise_fence(plan, LONG_S)
            place.database.execute(f"REVOKE pg_monitor FROM {fencer}")
            [found] = owned.fence().open_transactions(plan)
            assert found.login == place.app
            owned.fence().end([found])
            await_true(lambda: not owned.fence().open_transactions(plan), "its end")
        down(owned, plan)


def test_sessions_whose_beginning_is_hidden_are_ended_too(place: PostgresPlace) -> None:
    with owning(place) as owned:
        fencer = quoted(owned.database.user)
        place.database.execute(f"GRANT pg_read_all_stats TO {fencer}")
        survey = owned.fence().survey(place.tables, place.ours)
        assert any("sessions of superuser" in one for one in survey.choice(FenceKind.READ_ONLY).obstacles)
        place.database.execute(f"REVOKE pg_read_all_stats FROM {fencer}")
        plan = FencePlan(FenceKind.READ_ONLY, place.tables, place.ours, MESSAGE)
        fence = owned.fence()
        read_only = ReadOnly(fence._kept)
        with place.connect(place.app) as app, closing(fence._new_session()) as session:
            app.execute("SELECT 1")
            [found] = read_only._older(session, Noted(plan, {}), 0.0)
            assert found.login == place.app


def test_a_server_that_says_nothing_is_given_up(place: PostgresPlace) -> None:
    side = Side(replace(server_of(place.database), silence_s=0.5), "shop", "source")
    with closing(PostgresFence(side)._new_session()) as session:
        assert session.rows("SELECT 1") == [(1,)]
        for _ in range(2):
            with pytest.raises(ConnectionFailed, match="was lost") as error:
                session.rows("SELECT pg_catalog.pg_sleep(3)")
            assert error.value.retryable
