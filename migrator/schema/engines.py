"""SQLAlchemy engines of ours: no connection is kept open, and a session on PostgreSQL is pinned as any other is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import URL, Engine, create_engine, event, make_url, pool

from migrator.postgres_session import CONTROL, Login, parts, pin_connection


def as_engine(
    database: Engine | URL | str,
    pins: Mapping[str, str] = CONTROL,
    connect_args: Mapping[str, Any] | None = None,
) -> Engine:
    """An engine from a URL; an engine as it is.

    Args:
        database: its URL.
        pins: what the session's settings are, of PostgreSQL.
        connect_args: as the driver takes them.
    """
    if isinstance(database, Engine):
        return database
    url = make_url(database)
    if url.get_backend_name() != "postgresql":
        return create_engine(url, poolclass=pool.NullPool, connect_args=dict(connect_args or {}))
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
