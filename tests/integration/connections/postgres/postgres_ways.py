"""Every way in which we connect to PostgreSQL, and what its session is to be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.postgres import connection as source_connection
from migrator.adapters.sources.postgres.log.replication import ReplicationStream
from migrator.adapters.sources.postgres.watched import (
    BriefConnection,
    PatientConnection,
    WatchedConnection,
)
from migrator.adapters.targets.postgres.key_maps import key_maps
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.session import Session
from migrator.connections.postgres import session as postgres_session
from migrator.schema.engines import as_engine
from tests.fix_postgres_source import source_of
from tests.integration.judged import settings_of as judged
from tests.integration.target_bench import settings_of as target_of
from tests.servers import Database
from verify.dual_read.engine_side import engine_of
from verify.readers.postgres import pins as judge
from verify.readers.postgres.session import open_views

Shows = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Way:
    """A way in which we connect: what its session is to be, and a session of it that shows settings."""

    pins: Mapping[str, str]
    opened: Callable[[Database], Any]


def setting(name: str) -> str:
    """The query for a setting's value, whatever its session is like."""
    return f"SELECT pg_catalog.current_setting('{name}')"


@contextmanager
def _source(database: Database) -> Iterator[Shows]:
    with source_connection.connect(source_of(database), "test") as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


@contextmanager
def _walsender(database: Database) -> Iterator[Shows]:
    stream = ReplicationStream(source_of(database))
    try:
        yield lambda name: str(stream._simple(setting(name))[0][0])
    finally:
        stream.close()


@contextmanager
def _chunks(database: Database) -> Iterator[Shows]:
    watched = WatchedConnection(source_of(database), "SELECT 1")

    def shown(name: str) -> str:
        def ask(cursor: Any) -> str:
            cursor.execute(setting(name))
            return str(cursor.fetchone()[0])

        return str(watched.call("asking", ask))

    try:
        yield shown
    finally:
        watched.close()


def _held(kind: type[BriefConnection]) -> Callable[[Database], Any]:
    @contextmanager
    def opened(database: Database) -> Iterator[Shows]:
        brief = kind(source_of(database), "test")
        try:
            yield lambda name: brief.call("asking", lambda c: str(c.execute(setting(name)).fetchone()[0]))  # type: ignore[index]
        finally:
            brief.close()

    return opened


@contextmanager
def _writer(database: Database) -> Iterator[Shows]:
    session = Session(target_of(database))
    try:
        yield lambda name: str(session.one(setting(name))[0])
    finally:
        session.close()


@contextmanager
def _watching(database: Database) -> Iterator[Shows]:
    session = Session(target_of(database))
    try:
        yield lambda name: str(session._ask(setting(name), ())[0][0])
    finally:
        session.close()


@contextmanager
def _catalog(database: Database) -> Iterator[Shows]:
    with catalog(target_of(database)) as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


def _engine(made: Callable[[Database], Any]) -> Callable[[Database], Any]:
    @contextmanager
    def opened(database: Database) -> Iterator[Shows]:
        engine = made(database)
        with engine.connect() as connection:
            yield lambda name: str(connection.exec_driver_sql(setting(name)).scalar())
        engine.dispose()

    return opened


@contextmanager
def _judge(database: Database) -> Iterator[Shows]:
    with judge.connect_postgres(judged(database)) as connection:
        yield lambda name: str(connection.execute(setting(name)).fetchone()[0])  # type: ignore[index]


@contextmanager
def _views(database: Database) -> Iterator[Shows]:
    with open_views(judged(database)) as views, views.view(bulk=True):
        bulk = views._bulk

        def shown(name: str) -> str:
            with bulk.cursor() as cursor:
                cursor.execute(setting(name))
                return str(cursor.fetchone()[0])

        yield shown


@contextmanager
def _next_view(database: Database) -> Iterator[Shows]:
    """The bulk session after a view was rolled back."""
    with open_views(judged(database)) as views:
        with views.view(bulk=True):
            pass
        bulk = views._bulk

        def shown(name: str) -> str:
            with bulk.cursor() as cursor:
                cursor.execute(setting(name))
                return str(cursor.fetchone()[0])

        yield shown


PINS, CONTROL = postgres_session.PINS, postgres_session.CONTROL
_TARGET = {**PINS, "synchronous_commit": "on"}
WAYS: Mapping[str, Way] = {
    "source": Way(PINS, _source),
    "log": Way(PINS, _walsender),
    "chunks": Way(PINS, _chunks),
    "short looks": Way(PINS, _held(BriefConnection)),
    "long looks": Way(PINS, _held(PatientConnection)),
    "writer and executors": Way(_TARGET, _writer),
    "watching the writer": Way(_TARGET, _watching),
    "reflection and preflight": Way(_TARGET, _catalog),
    "control tables": Way(CONTROL, _engine(lambda d: as_engine(target_of(d).url()))),
    "revisions": Way(
        postgres_session.REVISIONS,
        _engine(lambda d: as_engine(target_of(d).url(), postgres_session.REVISIONS)),
    ),
    "key maps": Way(CONTROL, _engine(lambda d: key_maps(target_of(d))._engine)),
    "judge": Way(judge.PINS, _judge),
    "judge in bulk": Way(judge.PINS, _views),
    "judge in bulk, later": Way(judge.PINS, _next_view),
    "dual read": Way(judge.APPLICATIONS, _engine(lambda d: engine_of(judged(d), 1))),
}
