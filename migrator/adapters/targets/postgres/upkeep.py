"""``VACUUM (ANALYZE)`` of a table that a dump has filled.

Until somebody does it, the planner knows nothing of the table, every first reader of a page looks up whether the
transactions that wrote it have committed, and writes the page again to note that.

It takes SHARE UPDATE EXCLUSIVE: nothing that reads or writes rows waits for it. ``TRUNCATE FALSE``: giving
back empty pages at the table's end takes ACCESS EXCLUSIVE.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

import psycopg
from psycopg import sql

from migrator.adapters.targets.postgres.mirror.tables import SCHEMA
from migrator.adapters.targets.postgres.reflect import catalog
from migrator.adapters.targets.postgres.rows.merge import qualified
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.model.table import TableId

_LOOK_S = 0.2
_CANCEL_S = 5.0
# -1 until the first VACUUM or ANALYZE, autovacuum's included; it survives crashes and restarts.
_LACKING = "SELECT reltuples < 0 FROM pg_catalog.pg_class WHERE oid = pg_catalog.to_regclass(%s)"
_OWNER_ALONE = """
SELECT pg_catalog.current_setting('server_version_num')::int < 170000
    AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE')
    AND NOT (SELECT pg_catalog.pg_has_role(d.datdba, 'USAGE') FROM pg_catalog.pg_database d
             WHERE d.datname = pg_catalog.current_database())
FROM pg_catalog.pg_class c WHERE c.oid = pg_catalog.to_regclass(%s)
"""
"""Query whether only the owner may vacuum a table: before version 17 nobody else can be given the right."""
_MIRROR = """
SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = %s AND c.relkind = 'r' AND pg_catalog.starts_with(c.relname, %s) ORDER BY 1
"""


class PostgresUpkeep:
    """See ``ports.upkeep``."""

    def __init__(self, settings: PostgresTarget):
        self._settings = settings

    def mirror(self) -> list[TableId]:
        """See the port."""
        with catalog(self._settings) as connection:
            found = connection.execute(_MIRROR, (SCHEMA, f"{self._settings.migration}.")).fetchall()
        return [TableId(SCHEMA, name) for (name,) in found]

    def lacking(self, table: TableId) -> bool:
        """See the port."""
        with catalog(self._settings) as connection:
            found = connection.execute(_LACKING, (qualified(table),)).fetchone()
        return found is not None and bool(found[0])

    def refresh(self, table: TableId, stopped: Callable[[], bool]) -> str:
        """See the port. A role that may not is told so by a warning; where it never can, autovacuum does it
        alone."""
        name = qualified(table)
        warnings: list[str] = []
        with catalog(self._settings) as connection, ThreadPoolExecutor(1, "vacuum") as pool:
            found = connection.execute(_OWNER_ALONE, (name,)).fetchone()
            if found is not None and found[0]:
                return ""
            connection.add_notice_handler(
                lambda notice: (
                    warnings.append(str(notice.message_primary))
                    if notice.severity_nonlocalized == "WARNING"
                    else None
                )
            )
            statement = sql.SQL("VACUUM (ANALYZE, TRUNCATE FALSE) {}").format(
                sql.Identifier(table.schema, table.name)
            )
            done = pool.submit(connection.execute, statement)
            while not wait([done], _LOOK_S).done:
                if stopped():
                    connection.cancel_safe(timeout=_CANCEL_S)
            try:
                done.result()
            except (psycopg.errors.QueryCanceled, psycopg.errors.LockNotAvailable) as error:
                warnings.append(str(error).strip())
        if not warnings:
            return ""
        user = self._settings.server.user
        return (
            f"{'; '.join(warnings)}: have its owner run VACUUM (ANALYZE) {name},"
            f' or (PostgreSQL 17) GRANT MAINTAIN ON {name} TO "{user}"'
        )
