"""Transactions that the making of a replication slot waits for: all that have an xid, prepared ones too."""

from __future__ import annotations

from migrator.adapters.postgres.reflection import Query

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


def open_transactions(query: Query, prepared_only: bool = False) -> str:
    """The oldest of them in words, of all databases; empty when there are none."""
    found = [str(what) for (what,) in query(_OPEN, [prepared_only])]
    more = [f"and {len(found) - _SHOWN} more"] if len(found) > _SHOWN else []
    return ", ".join([*found[:_SHOWN], *more])
