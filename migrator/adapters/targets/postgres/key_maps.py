"""Key maps beside the ledger. Old keys are bytes, so that no collation makes two of them one."""

from __future__ import annotations

from migrator.adapters.targets.postgres.rows.merge import quoted
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.schema.engines import as_engine
from migrator.schema.key_maps import KeyMapTables, SqlKeyMaps


def key_maps(settings: PostgresTarget) -> SqlKeyMaps:
    """The maps of a migration. Connects to nothing yet."""
    tables = KeyMapTables(
        exists="SELECT 1 WHERE to_regclass('migrator.key_map') IS NOT NULL"
        " AND to_regclass('migrator.key_map_counter') IS NOT NULL",
        make=(
            "CREATE SCHEMA IF NOT EXISTS migrator",
            "CREATE TABLE IF NOT EXISTS migrator.key_map (migration text, name text, old_key bytea,"
            " new_key bigint NOT NULL, PRIMARY KEY (migration, name, old_key), UNIQUE (migration, name, new_key))",
            "CREATE TABLE IF NOT EXISTS migrator.key_map_counter (migration text, name text,"
            " following bigint NOT NULL, PRIMARY KEY (migration, name))",
        ),
        entries="migrator.key_map",
        counters="migrator.key_map_counter",
        ignore=("", "ON CONFLICT DO NOTHING"),
        grant=f"GRANT USAGE, CREATE ON SCHEMA migrator TO {quoted(settings.server.user)};"
        " GRANT SELECT, INSERT, UPDATE ON migrator.key_map, migrator.key_map_counter"
        f" TO {quoted(settings.server.user)}",
    )
    engine = as_engine(settings.url())
    return SqlKeyMaps(engine, tables, settings.migration, settings.server.address)
