"""The least rights of the login that writes a PostgreSQL target."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.target_postgres.merge import qualified, quoted
from migrator.adapters.target_postgres.mirror_tables import SCHEMA as MIRROR_SCHEMA
from migrator.adapters.target_postgres.sequences import sequence_grant
from migrator.adapters.target_postgres.settings import PostgresTarget
from migrator.adapters.target_postgres.writer import relax_grant
from migrator.model.grants import Grants
from migrator.model.table import TableId


def target_grants(settings: PostgresTarget, names: Sequence[str], joined: bool) -> Grants:
    """What writing these tables needs; ``joined``: with a mirror beside them."""
    role, database, schema = (
        quoted(settings.user),
        quoted(settings.database),
        quoted(settings.schema),
    )
    version = TableId(settings.schema, "alembic_version")
    needed = [
        f"GRANT CONNECT, TEMPORARY ON DATABASE {database} TO {role}",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        *(
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON {qualified(TableId(settings.schema, name))} TO {role}"
            for name in names
        ),
        f"GRANT SELECT ON {qualified(version)} TO {role}",
        f"CREATE SCHEMA migrator AUTHORIZATION {role}",
    ]
    if joined:
        needed.append(f"CREATE SCHEMA {MIRROR_SCHEMA} AUTHORIZATION {role}")
    relax = relax_grant(settings.user).removeprefix("as a superuser: ")
    return Grants(
        f"PostgreSQL target {settings.database}: as an administrator, after your Alembic revisions",
        role,
        f"CREATE ROLE {role} LOGIN PASSWORD '...';",
        tuple(needed),
        (
            (relax, "if a foreign key begins or ends at one of these tables, as a superuser"),
            (sequence_grant(settings), "if this login is to run `migrator sequences`"),
        ),
    )
