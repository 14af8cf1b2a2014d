"""Sessions on MySQL and MariaDB are what we say, whatever is set for the server, the login or by
``init_connect``."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from pymysql.cursors import Cursor

from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.session import Session
from migrator.connections.mysql import session as mysql_session
from migrator.connections.mysql.session import REVISES, pin, pinned_names
from migrator.connections.mysql.settings import connect, opened
from migrator.errors import ConnectionFailed, VerifyError
from tests import servers
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import source_of
from tests.integration.connections.mysql.mysql_settings import (
    HARMLESS,
    HOSTILE,
    WRITES_NOTHING,
    drawn,
    hostile,
    left_over,
    plain_user,
    settable,
)
from tests.integration.target_bench_mysql import settings_of
from tests.servers import Database, MariaDBServer
from verify.dual_read.engine_side import engine_of
from verify.readers.mysql.pins import judged_names
from verify.readers.mysql.session import open_session
from verify.settings import ServerSettings

pytestmark = pytest.mark.integration


def test_every_setting_of_a_session_is_pinned_or_listed_as_harmless(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    """A newer server's new setting fails here: pin it, or say in ``mysql_settings`` why it can do no harm."""
    with old_binlog.connect() as connection:
        assert left_over(connection, pinned_names(engine.kind)) == []
        assert left_over(connection, judged_names(engine.kind) | WRITES_NOTHING) == []
        own, _ = settable(connection)
        assert len(own) > 150
        # the control: a setting that nobody knows, and one that is pinned no more
        assert left_over(connection, pinned_names(engine.kind) - {"sql_select_limit"}) == ["sql_select_limit"]
        assert "sql_mode" not in HARMLESS


def test_what_is_said_of_a_setting_is_said_once() -> None:
    both = {name for kind in ("mariadb", "mysql") for name in pinned_names(kind) & judged_names(kind)}
    assert both & HARMLESS.keys() <= {"max_error_count", "transaction_isolation", "transaction_read_only"}
    assert WRITES_NOTHING & HARMLESS.keys() == set()


def server_of(database: Database) -> ServerSettings:
    return ServerSettings(servers.server_of(database))


@contextmanager
def closing(connection: Any) -> Iterator[Any]:
    try:
        yield connection
    finally:
        connection.close()


def asked_in_a_revision(database: Database, folder: Path, ask: Callable[[Any], Any]) -> Any:
    """The answer to a question that a revision of the user's asks, where Alembic is run from the shell."""
    found: list[Any] = []
    url = f"{database.kind}+pymysql://{database.user}@{database.host}:{database.port}/{database.database}"
    config = Config(attributes={"ask": lambda raw: found.append(ask(raw))})
    config.set_main_option("script_location", str(folder))
    config.set_main_option("sqlalchemy.url", url)
    (folder / "versions").mkdir(parents=True)
    (folder / "env.py").write_text("from migrator.schema import project_env\nproject_env.run()\n")
    (folder / "versions" / "a.py").write_text(
        "from alembic import context, op\nrevision = 'a'\ndown_revision = None\n"
        "def upgrade():\n"
        "    context.config.attributes['ask'](op.get_bind().connection.driver_connection)\n"
    )
    command.upgrade(config, "head")
    return found[0]


def kinds(database: Database) -> dict[str, Callable[[], Any]]:
    """Every place that makes a connection, as a context manager whose value has a cursor."""
    source, target, judged = source_of(database, tls="prefer"), settings_of(database), server_of(database)

    @contextmanager
    def of_session() -> Iterator[Any]:
        session = Session(target)
        yield session._connection
        session.close()

    @contextmanager
    def of_catalog() -> Iterator[Any]:
        with catalog(target) as session:
            yield session._connection

    @contextmanager
    def of_engine(engine: Any) -> Iterator[Any]:
        with engine.connect() as connection:
            yield connection.connection.driver_connection
        engine.dispose()

    return {
        "source": lambda: closing(connect(source)),
        "control tables of the source": lambda: closing(opened(source, REVISES)),
        "target": of_session,
        "catalogue of the target": of_catalog,
        "control tables of the target": lambda: of_engine(target.engine()),
        "judge": lambda: open_session(judged, "source"),
        "dual read": lambda: of_engine(engine_of(judged, 1)),
    }


def values(connection: Any, names: list[str]) -> dict[str, str]:
    cursor = connection.cursor()
    cursor.execute("SELECT " + ", ".join(f"@@SESSION.{name}" for name in names))
    [row] = cursor.fetchall()
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in row]
    return dict(zip(names, texts, strict=True))


def known(connection: Any, names: frozenset[str]) -> list[str]:
    cursor = connection.cursor()
    cursor.execute("SHOW SESSION VARIABLES")
    there = {str(name if isinstance(name, str) else name.decode()).lower() for name, _ in cursor.fetchall()}
    return sorted(names & there)


def test_each_connection_has_the_same_settings_on_a_hostile_server(
    engine: BinlogEngine, spare_server: MariaDBServer, one_row: Database
) -> None:
    with plain_user(one_row) as login:
        calm = {}
        for name, make in kinds(login).items():
            pinned = (
                judged_names(engine.kind) if name in ("judge", "dual read") else pinned_names(engine.kind)
            )
            with make() as connection:
                left = {"sql_mode"} if name == "dual read" else set()
                calm[name] = values(connection, known(connection, pinned - left))
        settings = drawn(engine.kind, random.Random(7))
        disturbed = (
            "SET autocommit = 1; SET SESSION TRANSACTION READ WRITE; SET timestamp = 86400, insert_id = 9;"
            f" CREATE TEMPORARY TABLE `{login.database}`.t (id int PRIMARY KEY) ENGINE = InnoDB;"
            " SET SESSION sql_mode = ''"
        )
        mysql_session._known.clear()
        with hostile(spare_server, settings, disturbed):
            for name, make in kinds(login).items():
                with make() as connection:
                    assert values(connection, list(calm[name])) == calm[name], name
                    cursor = connection.cursor()
                    cursor.execute("SELECT COUNT(*), @@insert_id, NOW() > '2020-01-01' FROM t")
                    assert [tuple(map(int, row)) for row in cursor.fetchall()] == [(1, 0, 1)], name
            with login.connect() as plain:  # the control: what a session has that isn't pinned
                found = values(plain, list(calm["source"]))
                assert sum(found[name] != calm["source"][name] for name in found) > 20
                assert int(values(plain, ["insert_id"])["insert_id"]) == 9


def test_revisions_run_in_the_same_session_on_a_hostile_server(
    engine: BinlogEngine, spare_server: MariaDBServer, one_row: Database, tmp_path: Path
) -> None:
    with plain_user(one_row) as login:
        names = ["sql_mode", "foreign_key_checks", "default_storage_engine", "sql_select_limit", "time_zone"]
        with closing(opened(source_of(login, tls="prefer"), REVISES)) as connection:
            calm = values(connection, names)
        with hostile(spare_server, drawn(engine.kind, random.Random(8))):
            found = asked_in_a_revision(login, tmp_path / "alembic", lambda raw: values(raw, names))
        assert found == calm


def test_a_setting_that_does_not_hold_is_refused_by_name(
    engine: BinlogEngine, old_binlog: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a proxy in between might do: it answers that all is well, and sets nothing."""
    done = Cursor.execute

    def deaf(self: Any, query: Any, args: Any = None) -> Any:
        if str(query).startswith("SET SESSION"):
            return done(self, "DO 0")
        return done(self, query, args)

    monkeypatch.setattr(Cursor, "execute", deaf)
    with pytest.raises(ConnectionFailed, match="wait_timeout") as refused:
        connect(source_of(old_binlog, tls="prefer"))
    assert "SET GLOBAL wait_timeout" in refused.value.remedy
    with pytest.raises(VerifyError, match="wait_timeout"), open_session(server_of(old_binlog), "target"):
        pass


def test_rows_as_of_another_time_are_refused_by_name(spare_mariadb: MariaDBServer) -> None:
    """Of MariaDB only. No session can say that it wants the newest rows: the server's DEFAULT says which."""
    one_row = spare_mariadb.admin
    with one_row.connect() as admin, admin.cursor() as cursor:
        cursor.execute("SET GLOBAL system_versioning_asof = '2020-01-01 00:00:00'")
        try:
            remedy = "SET GLOBAL system_versioning_asof = DEFAULT"
            with pytest.raises(ConnectionFailed, match="system_versioning_asof") as refused:
                connect(source_of(one_row))
            assert remedy in refused.value.remedy
            with pytest.raises(VerifyError, match=remedy), open_session(server_of(one_row), "source"):
                pass
        finally:
            cursor.execute("SET GLOBAL system_versioning_asof = DEFAULT")
    with connect(source_of(one_row)) as connection:
        pin(connection, REVISES, "here")


def test_hostile_settings_are_settings_that_matter(engine: BinlogEngine) -> None:
    """Most of what the tests disturb is pinned; the rest shows that it is harmless."""
    names = {*HOSTILE["both"], *HOSTILE[engine.kind]}
    assert names <= {*pinned_names(engine.kind), *HARMLESS}
