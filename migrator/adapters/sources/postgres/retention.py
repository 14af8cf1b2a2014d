"""The amount of WAL that the server keeps for the migration's slot, and how much it would keep at most."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from migrator.adapters.sources.postgres.connection import connect, query_failure
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.model.position import Position
from migrator.model.retention import Retention

_SLOT = """
SELECT wal_status, safe_wal_size,
    (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END -
    restart_lsn)::bigint, (confirmed_flush_lsn - restart_lsn)::bigint,
    (SELECT setting::bigint FROM pg_settings WHERE name = 'max_slot_wal_keep_size')
FROM pg_replication_slots WHERE slot_name = $1
"""
"""``max_slot_wal_keep_size`` is in MB, -1 without a bound. No rights are needed."""
_REMEDY = "raise max_slot_wal_keep_size on the source, or help the migration to catch up"
_REMEDY_WHERE_HELD = (
    "raise max_slot_wal_keep_size on the source, or end the transaction that has been open there for longest, which"
    " holds the slot back: SELECT pid, xact_start, query FROM pg_stat_activity WHERE backend_xid IS NOT NULL ORDER BY"
    " xact_start (pg_prepared_xacts has prepared ones)"
)
"""Advice where most of the log that the slot keeps is captured: an open transaction began before all of that."""


def slot_retention(source: PostgresSource, position: Callable[[], Position]) -> Retention:
    """Asks the server about the slot now. Raises ``ConnectionFailed``, ``SourceError``."""
    end = position()
    try:
        with connect(source, "retention") as connection:
            connection.execute("SET statement_timeout = '5s'")
            row = connection.execute(_SLOT, [source.slot]).fetchone()
    except psycopg.Error as error:
        raise query_failure(source, "the source's slot can't be looked at", error) from error
    if row is None:
        return Retention(end)
    status, safe, kept, held, bound_mb = row
    endangered = {
        "unreserved": f"slot {source.slot} has more log than max_slot_wal_keep_size and loses it at any moment",
        "lost": f"slot {source.slot} has lost log that the migration needs",
    }
    mend = _REMEDY_WHERE_HELD if 2 * (held or 0) > (kept or 0) else _REMEDY
    remedy = "start anew (docs/how-to/start-anew.md)" if status == "lost" else mend
    bound = int(bound_mb) << 20 if bound_mb is not None and int(bound_mb) >= 0 else None
    return Retention(
        end,
        kept_bytes=None if kept is None else int(kept),
        left_bytes=None if safe is None else int(safe),
        bound_bytes=bound,
        endangered=endangered.get(str(status), ""),
        remedy=remedy,
    )
