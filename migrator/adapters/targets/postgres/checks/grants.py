"""The least rights of the login that writes a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.postgres.mirror.tables import SCHEMA as MIRROR_SCHEMA
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.sequences import sequence_grant
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.model.grants import Grants
from migrator.model.table import TableId

# Foreign keys are known to the server alone: on it, the script looks for the tables that they tie to ours.
_TIED = (
    "DO $$ DECLARE tied regclass; BEGIN FOR tied IN SELECT DISTINCT other FROM pg_catalog.pg_constraint c,"
    " unnest(ARRAY[c.conrelid, c.confrelid]) other WHERE c.contype = 'f' AND {ours}"
    " LOOP EXECUTE format('GRANT SELECT ON %s TO %I', tied, {role}); EXECUTE format('GRANT USAGE ON SCHEMA %s TO %I',"
    " (SELECT relnamespace::regnamespace FROM pg_catalog.pg_class WHERE oid = tied), {role}); END LOOP; END $$"
)
_RELAXED = (
    "DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_constraint c WHERE c.contype = 'f' AND {ours})"
    " THEN EXECUTE format('GRANT SET ON PARAMETER session_replication_role TO %I', {role}); END IF; END $$"
)
_MAINTAIN = (
    "DO $$ BEGIN IF current_setting('server_version_num')::int >= 170000"
    " THEN EXECUTE format('GRANT MAINTAIN ON %s TO %I', {tables}, {role}); END IF; END $$"
)


def target_grants(
    settings: PostgresTarget, names: Sequence[str], joined: bool, upkeep: bool = True
) -> Grants:
    """Returns the grants for writing these tables; ``joined``: with a mirror, ``upkeep``: they are vacuumed."""
    role, database, schema = (
        quoted(settings.server.user),
        quoted(settings.server.database),
        quoted(settings.server.schema),
    )
    version = TableId(settings.server.schema, "alembic_version")
    needed = [
        f"GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {role}",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        *(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {qualified(TableId(settings.server.schema, name))} TO {role}"
            for name in names
        ),
        f"GRANT SELECT ON {qualified(version)} TO {role}",
        f"CREATE SCHEMA migrator AUTHORIZATION {role}",
    ]
    if joined:
        needed.append(f"CREATE SCHEMA {MIRROR_SCHEMA} AUTHORIZATION {role}")
    tables = [qualified(TableId(settings.server.schema, name)) for name in names]
    listed = ", ".join(f"{_text(table)}::regclass" for table in tables)
    ours = f"(c.conrelid = ANY (ARRAY[{listed}]) OR c.confrelid = ANY (ARRAY[{listed}]))"
    found = {"ours": ours, "role": _text(settings.server.user), "tables": _text(", ".join(tables))}
    needed += [_TIED.format(**found), _RELAXED.format(**found)]
    if upkeep:
        needed.append(_MAINTAIN.format(**found))
    return Grants(
        f"PostgreSQL target {settings.server.database}: as an administrator, after your Alembic revisions",
        role,
        f"CREATE ROLE {role} LOGIN PASSWORD '...';",
        tuple(needed),
        ((sequence_grant(settings), "if this login is to run `migrator sequences`"),),
    )


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
