"""The least rights of the login that reads a MySQL or MariaDB source."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.sources.binlog.transactions.watermark import WATERMARK_TABLE
from migrator.connections.mysql.settings import BinlogSource
from migrator.connections.mysql.sql import account, quote, quote_table
from migrator.model.grants import Grants
from migrator.model.table import TableId

_MONITOR = {"mysql": "REPLICATION CLIENT", "mariadb": "BINLOG MONITOR"}


def source_grants(source: BinlogSource, kind: str, names: Sequence[str]) -> Grants:
    """Returns the grants that reading these tables and the log needs."""
    user = account(source.server.user)
    tables = [TableId(source.server.database, name) for name in names]
    needed = [f"GRANT REPLICATION SLAVE ON *.* TO {user}"]
    needed += [f"GRANT SELECT ON {quote_table(table)} TO {user}" for table in tables]
    if source.placement == "watermark":
        version = TableId(WATERMARK_TABLE.schema, "alembic_version")
        needed.append(f"GRANT SELECT ON {quote_table(version)} TO {user}")
        # MariaDB reads the row that it may have to update.
        rights = "SELECT, INSERT, UPDATE" if kind == "mariadb" else "INSERT, UPDATE"
        needed.append(f"GRANT {rights} ON {quote_table(WATERMARK_TABLE)} TO {user}")
    everything = f"{quote(source.server.database)}.*"
    perhaps = [
        (f"GRANT SELECT ON {everything} TO {user}", "if foreign keys cascade to these tables from others"),
        (f"GRANT TRIGGER ON {everything} TO {user}", "if triggers do what those foreign keys would do"),
        (
            f"GRANT {_MONITOR[kind]} ON *.* TO {user}",
            "if `migrator check` is to see filters of the log, and metrics how much of it waits",
        ),
    ]
    if kind == "mariadb":
        numbers = (
            "if defaults take from sequences, which `migrator sequences` is to look at, for each of them"
        )
        perhaps.append((f"GRANT SELECT ON <sequence> TO {user}", numbers))
    if kind == "mysql":
        xa = "if XA transactions may be prepared when the migration begins"
        perhaps.append((f"GRANT XA_RECOVER_ADMIN ON *.* TO {user}", xa))
    return Grants(
        f"{'MySQL' if kind == 'mysql' else 'MariaDB'} source {source.server.database}: as an administrator",
        user,
        f"CREATE USER {user} IDENTIFIED BY '...';",
        tuple(needed),
        tuple(perhaps),
    )
