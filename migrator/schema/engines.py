"""SQLAlchemy engines of ours: no connection is kept open, and each session is pinned as any other is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url, pool

from migrator.connections.mysql.session import REVISES, pin
from migrator.connections.postgres.session import CONTROL, Login, parts, pin_connection


def as_engine(
    database: Engine | URL | str,
    pins: Mapping[str, str] = CONTROL,
    connect_args: Mapping[str, Any] | None = None,
    creator: Callable[[], Any] | None = None,
) -> Engine:
    """An engine from a URL; an engine as it is.

    Args:
        database: its URL.
        pins: what the session's settings are, of PostgreSQL.
        connect_args: as the driver takes them.
        creator: makes connections to MySQL or MariaDB whose sessions are pinned already.
    """
    if isinstance(database, Engine):
        return database
    url = make_url(database)
    if creator is not None:
        return create_engine(url, poolclass=pool.NullPool, creator=creator)
    if url.get_backend_name() != "postgresql":
        engine = create_engine(url, poolclass=pool.NullPool, connect_args=dict(connect_args or {}))
        # Before SQLAlchemy asks the server what it is.
        event.listen(engine, "connect", lambda connection, _: pin(connection, REVISES, str(url)), insert=True)
        return engine
    engine = create_engine(url, poolclass=pool.NullPool, connect_args={**parts(pins), **(connect_args or {})})
    where = f"{url.username}@{url.host}:{url.port}/{url.database}"
    login = Login(where, url.username or "", url.database or "")

    @event.listens_for(engine, "connect")
    def pinned(connection: Any, _record: object) -> None:
        try:
            pin_connection(connection, login, pins)
        except BaseException:
            connection.close()
            raise

    return engine
