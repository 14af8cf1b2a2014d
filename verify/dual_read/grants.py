"""The least rights of a login that asks dual reads and does nothing else: an application's, or a reader's of
its own.

The old side's place in its log is public on every engine. So both logins need to read rows, and the new side's
login also the ledger.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.model.grants import Grants
from verify.readers.mysql.session import quoted as mysql_quoted
from verify.settings import ServerSettings

_MORE = "for each other table that a query reads"


def postgres_source_grants(settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of an old side on PostgreSQL need: reading these tables."""
    role = _quoted(settings.server.user)
    stopped = "if a difference is to be judged while `migrator run` is stopped"
    peek = [(f"ALTER ROLE {role} REPLICATION", f"{stopped}: to look what the slot still holds")]
    if settings.change_tables:
        peek = [
            (f"GRANT USAGE ON SCHEMA migrator_cdc TO {role}", f"{stopped}, with the next one"),
            (f"GRANT SELECT ON ALL TABLES IN SCHEMA migrator_cdc TO {role}", "with the one before"),
        ]
    return _postgres(settings, "source", tables, [], peek)


def postgres_target_grants(settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of a new side on PostgreSQL need: reading these tables and the ledger, which a
    first run makes."""
    role = _quoted(settings.server.user)
    ledger = [f"GRANT USAGE ON SCHEMA migrator TO {role}", f"GRANT SELECT ON migrator.ledger TO {role}"]
    return _postgres(settings, "target", tables, ledger, [])


def mysql_source_grants(product: str, settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of an old side on MySQL or MariaDB need; ``product``: which of them."""
    return _mysql(product, settings, "source", tables)


def mysql_target_grants(product: str, settings: ServerSettings, tables: Sequence[str]) -> Grants:
    """Lists the rights that queries of a new side on MySQL or MariaDB need; ``product``: which of them."""
    return _mysql(product, settings, "target", [*tables, "migrator_ledger"])


def _postgres(
    settings: ServerSettings,
    side: str,
    tables: Sequence[str],
    more: Sequence[str],
    perhaps: Sequence[tuple[str, str]],
) -> Grants:
    role, schema = _quoted(settings.server.user), _quoted(settings.server.schema)
    needed = [
        f"GRANT CONNECT ON DATABASE {_quoted(settings.server.database)} TO {role}",
        f"GRANT USAGE ON SCHEMA {schema} TO {role}",
        *(f"GRANT SELECT ON {schema}.{_quoted(name)} TO {role}" for name in tables),
        *more,
    ]
    others = (f"GRANT SELECT ON {schema}.<table> TO {role}", _MORE)
    return Grants(
        _title("PostgreSQL", side, settings.server.database),
        role,
        f"CREATE ROLE {role} LOGIN PASSWORD '...';",
        tuple(needed),
        (others, *perhaps),
    )


def _mysql(product: str, settings: ServerSettings, side: str, tables: Sequence[str]) -> Grants:
    user, database = f"{mysql_quoted(settings.server.user)}@'%'", mysql_quoted(settings.server.database)
    return Grants(
        _title(product, side, settings.server.database),
        user,
        f"CREATE USER {user} IDENTIFIED BY '...';",
        tuple(f"GRANT SELECT ON {database}.{mysql_quoted(name)} TO {user}" for name in tables),
        ((f"GRANT SELECT ON {database}.<table> TO {user}", _MORE),),
    )


def _title(engine: str, side: str, database: str) -> str:
    first = ", after a first `migrator run`" if side == "target" else ""
    return f"{engine} {side} {database}, dual read only: as an administrator{first}"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
