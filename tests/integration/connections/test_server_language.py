"""Causes and remedies are told by codes: a server that speaks German gets the same ones as any other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypedDict

import psycopg
import pytest

from migrator.adapters.sources.postgres.connection import connect
from migrator.adapters.sources.postgres.log.replication import ReplicationStream
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.watched import WatchedConnection
from migrator.adapters.targets.postgres.ledger import peek
from migrator.adapters.targets.postgres.session import Session
from migrator.connections.postgres.refusal import refusal
from migrator.embedded import process
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed, GapError, MigratorError
from migrator.model.table import TableSchema
from migrator.schema.control import upgrade_target
from tests.fix_postgres_source import log_reader, prepared, read_until, source_of, wait_for
from tests.integration.target_bench import settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration


class GermanPostgres(EmbeddedPostgres):
    """A server of Debian's, whose packages have translations: the wheel's have none."""

    def __init__(self, directory: Path):
        spoken = {"lc_messages": "C.UTF-8", "wal_sender_timeout": "1s"}
        super().__init__(directory, version=15, settings=spoken, auth="scram-sha-256", password="hush")


@pytest.fixture(scope="module")
def german() -> Iterator[Database]:
    plain = process.plain_environment
    with pytest.MonkeyPatch.context() as patched, scratch_directory("migrator-german-") as directory:
        patched.setattr(process, "plain_environment", lambda: {**plain(), "LANGUAGE": "de"})
        try:
            server = GermanPostgres(directory)
            with server:
                database = Database(server.host, server.port, "postgres", "postgres", "hush", "postgresql")
                with pytest.raises(
                    psycopg.Error, match="existiert nicht"
                ):  # the control: it does speak German
                    database.execute("SELECT * FROM nowhere")
                database.execute(
                    "CREATE TABLE t (k int PRIMARY KEY, v text)",
                    "CREATE ROLE idle PASSWORD 'hush' NOLOGIN",
                    "CREATE ROLE plain PASSWORD 'hush' LOGIN",
                    "CREATE ROLE one PASSWORD 'hush' LOGIN CONNECTION LIMIT 0",
                    "CREATE DATABASE closed",
                    "REVOKE CONNECT ON DATABASE closed FROM PUBLIC",
                )
                yield database
        except PackagesUnavailable as error:
            pytest.skip(str(error))


class Login(TypedDict, total=False):
    """What of a login is changed."""

    user: str
    password: str
    database: str


LOGINS: list[tuple[Login, str, str, bool]] = [
    ({"password": "wrong"}, "refuses the password", "right password", False),
    (
        {"user": "nobody"},
        "refuses the password",
        "right password",
        False,
    ),  # so that nobody learns which roles exist
    ({"user": "idle"}, "refuses the login", 'ALTER ROLE "idle" LOGIN', False),
    ({"user": "plain", "database": "closed"}, "refuses the login", 'ON DATABASE "closed" TO "plain"', False),
    ({"database": "nowhere"}, "no such database", "source.database", False),
    ({"user": "one"}, "no free connection", "max_connections", True),
]


@pytest.mark.parametrize(("changes", "says", "remedy", "retryable"), LOGINS)
def test_a_refused_login_is_told_by_its_code(
    german: Database, changes: Login, says: str, remedy: str, retryable: bool
) -> None:
    source = source_of(german, **changes)
    for attempt in (
        lambda: connect(source, "look"),
        lambda: WatchedConnection(source, "").call("a look", lambda _: None),
    ):
        with pytest.raises(ConnectionFailed) as caught:
            attempt()
        assert says in caught.value.what
        assert remedy in caught.value.remedy
        assert caught.value.retryable == retryable
    target = settings_of(german, **changes)
    for ask in (lambda: peek(target), lambda: Session(target), lambda: upgrade_target(_url(german, changes))):
        with pytest.raises(ConnectionFailed) as caught:
            ask()
        assert remedy.removeprefix("source.") in caught.value.remedy
        assert caught.value.retryable == retryable
        assert ("refuses the login" in caught.value.what) != retryable


def _url(database: Database, changes: Login) -> str:
    given = {"user": database.user, "password": database.password, "database": database.database, **changes}
    return (
        f"postgresql+psycopg://{given['user']}:{given['password']}@{database.host}:{database.port}"
        f"/{given['database']}"
    )


def test_the_remedy_of_a_role_that_may_not_log_in_works_as_it_is_printed(german: Database) -> None:
    source = source_of(german, user="idle")
    with pytest.raises(ConnectionFailed) as caught:
        connect(source, "look")
    german.execute(caught.value.remedy.partition(";")[0])
    with connect(source, "look"):
        pass
    german.execute("ALTER ROLE idle NOLOGIN")


def test_a_setting_that_the_environment_asks_for_is_told(
    german: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "Nowhere/At_all")
    with pytest.raises(ConnectionFailed, match="environment") as caught:
        connect(source_of(german), "look")
    assert "unset PGTZ" in caught.value.remedy
    monkeypatch.delenv("PGTZ")  # followed
    with connect(source_of(german), "look"):
        pass


@pytest.mark.parametrize(
    ("gone", "match"),
    [
        ("SELECT pg_drop_replication_slot('{0}')", "no longer holds the log"),
        ("DROP PUBLICATION {0}", "doesn't cover the captured tables"),
    ],
)
def test_slot_and_publication_are_told_apart(
    german: Database, gone: str, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the stream itself: nobody looks beside it here."""
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 3600.0)
    source = source_of(german)
    schemas = prepared(source, "t")
    statement = gone.format(source.slot)
    try:
        with pytest.raises(GapError, match=match) as caught:
            _read_without(german, source, schemas, statement)
        assert "existiert nicht" in caught.value.cause  # the server's words, not ours
        assert "start the migration anew (docs/how-to/start-anew.md)" in caught.value.remedy
    finally:
        used = f"SELECT FROM pg_replication_slots WHERE slot_name = '{source.slot}' AND active"
        wait_for(german, f"SELECT NOT EXISTS ({used})")
        german.execute(
            f"DROP PUBLICATION IF EXISTS {source.slot}",
            # The step of starting anew, which works whether there is a slot or not.
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
            f" WHERE slot_name = '{source.slot}'",
        )


def _read_without(
    database: Database, source: PostgresSource, schemas: Sequence[TableSchema], statement: str
) -> None:
    """Reads on while ``statement`` takes away what is read."""
    if "slot" in statement:
        with closing(ReplicationStream(source)) as stream:
            database.execute(statement)
            stream.begin(0, 0)
    with log_reader(source, schemas) as reader:
        database.execute(statement, "INSERT INTO t VALUES (1, 'x')")
        read_until(reader, lambda _: False)


def test_a_login_without_a_server_is_no_refusal(german: Database) -> None:
    with pytest.raises(MigratorError) as caught:
        connect(source_of(german, port=1), "look")
    assert caught.value.retryable
    with pytest.raises(psycopg.OperationalError) as silent:
        psycopg.connect(host="127.0.0.1", port=1)
    assert refusal(silent.value) == ""
