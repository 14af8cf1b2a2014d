"""The load of a PostgreSQL server: sessions that are active, and how far its standbys are behind in replaying."""

from __future__ import annotations

from typing import Any

import psycopg

from migrator.adapters.sources.postgres.connection import connect, query_failure
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.model.load import Load

_SAMPLE = """
SELECT
    others.active,
    (SELECT CASE WHEN count(*) > 0 THEN coalesce(max(extract(epoch FROM replay_lag)), 0) END
     FROM pg_catalog.pg_stat_replication WHERE NOT starts_with(application_name, $1)),
    others.lately
FROM (
    SELECT count(*) FILTER (WHERE state = 'active') AS active,
        coalesce(bool_or(state_change > clock_timestamp() - interval '30 milliseconds'), false) AS lately
    FROM pg_catalog.pg_stat_activity
    WHERE backend_type = 'client backend'
        AND NOT starts_with(application_name, $1) AND NOT starts_with(application_name, $2)
) AS others
WHERE pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')
"""
"""Our own sessions left out, by their names; those of the target, too, which may be on this server. No row without
the right to see others' (``GRANT pg_monitor``). A standby that has replayed everything shows no lag.
A session of short statements is seldom caught in one: it worked lately if its state changed within less time
than is between two samples, so that a statement counts once."""


class PostgresLoadMeter:
    """Implements ``LoadMeter`` on one connection, made when first needed and again after a failure."""

    def __init__(self, source: PostgresSource):
        self._source = source
        self._connection: psycopg.Connection[Any] | None = None

    def sample(self) -> Load:
        """See ``LoadMeter.sample``."""
        source = self._source
        try:
            if self._connection is None:
                self._connection = connect(source, "load")
                self._connection.execute("SET statement_timeout = '5s'")
            row = self._connection.execute(
                _SAMPLE, [f"{source.slot}_", f"migrator {source.migration} "]
            ).fetchone()
        except psycopg.Error as error:
            self.close()
            raise query_failure(source, "the source's load can't be read", error) from error
        if row is None:
            return Load()
        return Load(int(row[0]), None if row[1] is None else float(row[1]), bool(row[2]))

    def close(self) -> None:
        """See ``LoadMeter.close``."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
