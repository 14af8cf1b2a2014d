"""Key maps beside the ledger. Old keys are bytes, so that no collation makes two of them one."""

from __future__ import annotations

from migrator.adapters.targets.mysql.rows.merge import quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.connections.mysql.sql import account
from migrator.schema.key_maps import KEY_BYTES, KeyMapTables, SqlKeyMaps

TABLES = ENTRIES, COUNTERS = "migrator_key_map", "migrator_key_map_counter"
_END = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
_NAMES = "migration VARCHAR(31) NOT NULL, name VARCHAR(64) NOT NULL"


def key_maps(settings: MysqlTarget) -> SqlKeyMaps:
    """The maps of a migration. Connects to nothing yet."""
    database = quoted(settings.server.database)
    tables = KeyMapTables(
        exists="SELECT 1 FROM information_schema.tables WHERE table_schema = DATABASE()"
        f" AND table_name IN ('{ENTRIES}', '{COUNTERS}') HAVING COUNT(*) = 2",
        make=(
            f"CREATE TABLE IF NOT EXISTS {ENTRIES} ({_NAMES}, old_key VARBINARY({KEY_BYTES}) NOT NULL,"
            " new_key BIGINT NOT NULL, PRIMARY KEY (migration, name, old_key),"
            f" UNIQUE (migration, name, new_key)) {_END}",
            f"CREATE TABLE IF NOT EXISTS {COUNTERS} ({_NAMES}, following BIGINT NOT NULL,"
            f" PRIMARY KEY (migration, name)) {_END}",
        ),
        entries=ENTRIES,
        counters=COUNTERS,
        ignore=("IGNORE", ""),
        grant="; ".join(
            f"GRANT SELECT, INSERT, UPDATE, CREATE ON {database}.{quoted(name)} TO {account(settings.server.user)}"
            for name in TABLES
        ),
    )
    return SqlKeyMaps(settings.engine(), tables, settings.migration, settings.server.address)
