"""Transactions that capture has to wait for where it begins: all that have an xid, prepared ones too."""

from __future__ import annotations

import time

from migrator.adapters.sources.postgres.reflection import Query
from migrator.errors import SourceError

_SHOWN = 5
_OPEN = """
SELECT what FROM (
  SELECT pg_catalog.format('prepared transaction %L of %I (since %s)', gid, owner, prepared) AS what,
         prepared AS since, true AS prepared_one
  FROM pg_catalog.pg_prepared_xacts
  UNION ALL
  SELECT pg_catalog.format('session %s of %s (since %s)', pid, usename, xact_start), xact_start, false
  FROM pg_catalog.pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_catalog.pg_backend_pid()
) waited_for
WHERE prepared_one OR NOT $1::bool ORDER BY since
"""
_NOW = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::int8"
_ALL_ENDED = "SELECT pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text::int8"
_WAIT_S, _MOMENT_S = 5.0, 0.05


def await_writers(query: Query, where: str) -> None:
    """Waits until every transaction has ended that is open now.

    Why: a table joins the publication beside writers, in the place of another one or as a new one. What a transaction
    wrote before that is never sent, and a chunk that is read before its commit doesn't have it either. Raises
    ``SourceError``, to be tried again.
    """
    ((until,),) = query(_NOW, [])
    deadline = time.monotonic() + _WAIT_S
    while query(_ALL_ENDED, [])[0][0] < until:
        if time.monotonic() > deadline:
            raise SourceError(
                "a table that joins the migration can't be read beside transactions that are still open",
                where=where,
                cause=open_transactions(query),
                remedy="wait, or end them, prepared ones with COMMIT PREPARED or ROLLBACK PREPARED; reading begins by"
                " itself then",
                retryable=True,
            )
        time.sleep(_MOMENT_S)  # there is nothing to wait on that wouldn't take a lock


def open_transactions(query: Query, prepared_only: bool = False) -> str:
    """The oldest of them in words, of all databases; empty when there are none."""
    found = [str(what) for (what,) in query(_OPEN, [prepared_only])]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join([*found[:_SHOWN], *more])
