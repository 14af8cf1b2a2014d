"""A target that refuses whatever rights the login has: the state is named, and the remedy, followed, ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from migrator.adapters.targets.mysql import refusal as of_mysql
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed, MigratorError, TargetError
from tests.integration import target_bench
from tests.integration.target_bench_mysql import bench, ints, settings_of
from tests.servers import (
    Database,
    MariaDBServer,
    embedded_mariadb,
    embedded_mysql,
    embedded_postgres,
    fresh_database,
    unpacked_mysql,
)

pytestmark = pytest.mark.integration

TABLE = "CREATE TABLE t (id int PRIMARY KEY)"
NO_WRITES = "the target takes no writes"


@pytest.fixture(params=["spare_mariadb", "spare_mysql"])
def new(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A target on a server whose settings may be changed."""
    server: MariaDBServer = request.getfixturevalue(request.param)
    with fresh_database(server, "new") as database:
        yield database


@pytest.fixture
def poor(new: Database) -> Iterator[Database]:
    """Its login, which has all rights on the database and none on the server."""
    name = f"poor_{new.database[-8:]}"
    new.execute(
        f"CREATE USER '{name}'@'%' IDENTIFIED BY 'poor'", f"GRANT ALL ON `{new.database}`.* TO '{name}'@'%'"
    )
    yield Database(new.host, new.port, new.database, name, "poor", new.kind)
    new.execute(f"DROP USER '{name}'@'%'")


def row(number: int) -> pa.Table:
    return pa.table(ints("id", number))


def refused(call: Callable[[], object], what: str) -> MigratorError:
    with pytest.raises(MigratorError, match=what) as caught:
        call()
    assert "GRANT" not in caught.value.remedy
    assert not caught.value.retryable
    return caught.value


def followed(database: Database, remedy: str) -> None:
    """Does as the remedy says: its statement, up to what comes then, as an administrator."""
    assert "SET GLOBAL read_only = OFF" in remedy
    database.execute("SET GLOBAL read_only = OFF")


def read_only_settings(database: Database) -> tuple[str, ...]:
    return ("read_only", "super_read_only") if database.kind == "mysql" else ("read_only",)


def test_a_server_that_becomes_read_only_is_named_wherever_it_is_met(new: Database, poor: Database) -> None:
    with bench(poor, TABLE) as it:
        for number, setting in enumerate(read_only_settings(new)):
            part = it.part("t", after=row(number))
            new.execute(f"SET GLOBAL {setting} = ON")
            try:
                for ask in (lambda part=part: it.apply(part), lambda: MysqlTargetWriter(it.settings).open(1)):
                    remedy = refused(ask, NO_WRITES).remedy
                (found,) = MysqlTargetWriter(it.settings).preflight(["t"])
                assert (found.check, found.fatal) == ("primary", True)
                assert "read_only = ON" in found.problem
                assert found.remedy in remedy
                followed(new, remedy)
            finally:
                new.execute("SET GLOBAL read_only = OFF")
            it.apply(part)
            assert MysqlTargetWriter(it.settings).preflight(["t"]) == []
        assert it.ledger_segment() == len(read_only_settings(new))


def test_a_server_that_is_read_only_from_the_beginning_is_named_too(new: Database, poor: Database) -> None:
    new.execute(TABLE, "SET GLOBAL read_only = ON")
    try:
        error = refused(
            lambda: MysqlTargetWriter(settings_of(poor)).open(1), "control table .* can't be made"
        )
        followed(new, error.remedy)
        MysqlTargetWriter(settings_of(poor)).open(1)
    finally:
        new.execute("SET GLOBAL read_only = OFF")


def test_by_its_code_alone_it_would_be_answered_with_a_grant(
    new: Database, poor: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control."""
    with bench(poor, TABLE) as it:
        monkeypatch.setattr(of_mysql, "state_of", lambda code, message: None)
        new.execute("SET GLOBAL read_only = ON")
        try:
            with pytest.raises(TargetError) as caught:
                MysqlTargetWriter(it.settings).open(1)
        finally:
            new.execute("SET GLOBAL read_only = OFF")
        assert "GRANT" in caught.value.remedy


@pytest.mark.parametrize("new", ["spare_mysql"], indirect=True)
def test_a_schema_that_was_set_read_only_is_named_and_the_remedy_works(new: Database, poor: Database) -> None:
    with bench(poor, TABLE) as it:
        part = it.part("t", after=row(1))
        new.execute(f"ALTER SCHEMA `{new.database}` READ ONLY = 1")
        for ask in (
            lambda: it.apply(part),
            lambda: MysqlTargetWriter(it.settings).preflight(["t"]),
            lambda: MysqlTargetWriter(it.settings).open(1),
        ):
            remedy = refused(ask, NO_WRITES).remedy
        new.execute(remedy.removeprefix("as an administrator: ").partition(";")[0])
        it.apply(part)


def test_transactions_that_are_read_only_are_named(new: Database, poor: Database) -> None:
    """A proxy's port for readers has such sessions."""
    with bench(poor, TABLE) as it:
        part = it.part("t", after=row(1))
        session = it.target._session
        assert session is not None
        session.run("SET SESSION TRANSACTION READ ONLY")
        refused(lambda: it.apply(part), "transactions on the target are read-only")
        session.run("SET SESSION TRANSACTION READ WRITE")
        it.apply(part)


@pytest.mark.parametrize("new", ["spare_mysql"], indirect=True)
def test_a_limit_of_the_user_is_named_and_may_pass(new: Database, poor: Database) -> None:
    def asked() -> None:
        for _ in range(20):
            MysqlTargetWriter(settings_of(poor)).open(1)

    with bench(poor, TABLE) as it:
        user = f"'{poor.user}'@'%'"
        new.execute(f"ALTER USER {user} WITH MAX_UPDATES_PER_HOUR 1")
        with pytest.raises(MigratorError) as caught:
            asked()
        assert caught.value.retryable
        limits = caught.value.remedy.partition("ALTER USER ... ")[2].partition(";")[0]
        new.execute(f"ALTER USER {user} {limits}")
        it.apply(it.part("t", after=row(1)))


def test_an_account_that_is_locked_is_a_refused_login(new: Database, poor: Database) -> None:
    user = f"'{poor.user}'@'%'"
    with bench(poor, TABLE):
        new.execute(f"ALTER USER {user} ACCOUNT LOCK")
        for ask in (
            lambda: MysqlTargetWriter(settings_of(poor)).preflight(["t"]),
            lambda: MysqlTargetWriter(settings_of(poor)).open(1),
        ):
            remedy = refused(ask, "refuses the login").remedy
        new.execute(remedy.removeprefix("as an administrator: ").replace("...", user))
        MysqlTargetWriter(settings_of(poor)).open(1)


@pytest.mark.parametrize("new", ["spare_mysql"], indirect=True)
def test_a_server_in_offline_mode_is_named_and_may_pass(new: Database, poor: Database) -> None:
    with bench(poor, TABLE):
        new.execute("SET GLOBAL offline_mode = ON")
        try:
            for ask in (
                lambda: MysqlTargetWriter(settings_of(poor)).preflight(["t"]),
                lambda: MysqlTargetWriter(settings_of(poor)).open(1),
            ):
                with pytest.raises(ConnectionFailed) as caught:
                    ask()
                assert caught.value.retryable
            new.execute(caught.value.remedy.removeprefix("as an administrator: "))
        finally:
            new.execute("SET GLOBAL offline_mode = OFF")
        MysqlTargetWriter(settings_of(poor)).open(1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "setting", "value"),
    [
        ("mysql", "innodb_read_only", "1"),
        ("mysql", "innodb_force_recovery", "1"),
        ("mariadb", "innodb_read_only", "1"),
    ],
)
def test_an_engine_that_is_read_only_is_named_and_the_remedy_works(
    kind: str, setting: str, value: str
) -> None:
    if kind == "mysql":
        unpacked_mysql()
    begin = embedded_mysql if kind == "mysql" else embedded_mariadb
    with scratch_directory("migrator-states-") as scratch:
        folder = Path(scratch) / "server"

        def segment(settings: dict[str, str]) -> int:
            with begin(folder, settings=settings) as server:
                new = Database(server.host, server.port, "new", server.superuser, "", kind)
                return MysqlTargetWriter(settings_of(new)).open(1).segment

        with begin(folder) as server:
            server.create_database("new")
        segment({})
        assert setting in refused(lambda: segment({setting: value}), NO_WRITES).remedy
        segment({})


@pytest.mark.slow
def test_a_standby_is_named_and_writes_once_it_is_promoted() -> None:
    """Whoever had an address of the primary may reach its standby after a switch."""
    with scratch_directory("migrator-states-") as scratch:
        folder = Path(scratch) / "server"
        with embedded_postgres(folder) as server:
            server.create_database("new")
            new = Database(server.host, server.port, "new", server.superuser, "", "postgresql")
            with target_bench.bench(new, TABLE) as it:
                part = it.part("t", after=row(1))
                server.stop()
                (folder / "data" / "standby.signal").touch()
                server.start()
                with pytest.raises(ConnectionFailed):  # the session that it had
                    it.apply(part)
                for ask in (lambda: it.apply(part), lambda: PostgresTargetWriter(it.settings).open(1)):
                    remedy = refused(ask, NO_WRITES).remedy
                (found,) = PostgresTargetWriter(it.settings).preflight(["t"])
                assert found.check == "primary"
                new.query(remedy.partition("promote this server: ")[2].partition(";")[0])
                it.apply(part)


def test_read_only_transactions_of_postgresql_are_named(new_pg: Database) -> None:
    with target_bench.bench(new_pg, TABLE) as it:
        part = it.part("t", after=row(1))
        session = it.target._session
        assert session is not None
        session.run("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
        refused(lambda: it.apply(part), NO_WRITES)
        session.run("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE")
        it.apply(part)
