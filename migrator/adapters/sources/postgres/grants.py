"""The least rights of the login that reads a PostgreSQL source."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.sources.postgres.catalog import table_id
from migrator.adapters.sources.postgres.log.relations import WATERMARK_ID
from migrator.adapters.sources.postgres.publication import GENERATED, create_statement
from migrator.adapters.sources.postgres.settings import (
    CHANGE_TABLES,
    CONTROL_SCHEMA,
    WATERMARK,
    PostgresSource,
)
from migrator.adapters.sources.postgres.whole_images import name_of, quoted
from migrator.model.grants import Grants


def source_grants(source: PostgresSource, names: Sequence[str]) -> Grants:
    """Returns the rights to read these tables, and the publication and replica identities that the log needs."""
    role, tables = name_of(source.server.user), [table_id(source, name) for name in names]
    needed = [f"GRANT CONNECT ON DATABASE {name_of(source.server.database)} TO {role}"]
    schemas = dict.fromkeys(table.schema for table in tables)
    needed += [f"GRANT USAGE ON SCHEMA {name_of(schema)} TO {role}" for schema in schemas]
    needed += [f"GRANT SELECT ON {quoted(table)} TO {role}" for table in tables]
    perhaps = [(f"ALTER ROLE {role} BYPASSRLS", "if row-level security hides rows from the login")]
    numbers = f"GRANT SELECT ON ALL SEQUENCES IN SCHEMA {name_of(source.server.schema)} TO {role}"
    perhaps.append((numbers, "if `migrator sequences` is to look at the source's as well"))
    if source.log == CHANGE_TABLES:
        perhaps.append(("the script of `migrator changetables`", "with change tables; it grants the rest"))
    else:
        needed.insert(0, f"ALTER ROLE {role} REPLICATION")
        needed += [f"ALTER TABLE {quoted(table)} REPLICA IDENTITY FULL" for table in tables]
        if source.placement == WATERMARK:
            tables.append(WATERMARK_ID)
            needed += _watermark(role)
        needed.append(create_statement(source.slot, tables).removesuffix(";"))
        stored = f"ALTER PUBLICATION {name_of(source.slot)} SET ({GENERATED})"
        perhaps.append((stored, "on PostgreSQL 18, if a table has stored generated columns"))
        partition = "ALTER TABLE <partition> REPLICA IDENTITY FULL"
        perhaps.append((partition, "if a table is partitioned, for each of its partitions"))
    return Grants(
        f"PostgreSQL source {source.server.database}: as an administrator, and owner of the tables",
        role,
        f"CREATE ROLE {role} LOGIN PASSWORD '...';",
        tuple(needed),
        tuple(perhaps),
    )


def _watermark(role: str) -> list[str]:
    """Returns the rights for a watermark table that somebody else made (docs/how-to/grants.md)."""
    return [
        f"GRANT USAGE ON SCHEMA {CONTROL_SCHEMA} TO {role}",
        f"GRANT SELECT ON {CONTROL_SCHEMA}.alembic_version TO {role}",
        f"GRANT SELECT, INSERT, UPDATE ON {quoted(WATERMARK_ID)} TO {role}",
    ]
