"""The least rights of the login that writes a MySQL or MariaDB target."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.targets.mysql.key_maps import TABLES as KEY_MAPS
from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.mirror.tables import RIGHTS
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.connections.mysql.sql import account
from migrator.model.grants import Grants
from migrator.model.table import TableId
from migrator.schema import MYSQL_LEDGER
from migrator.schema.dialects import MYSQL_CUTOVER, MYSQL_HISTORY

CONTROL_RIGHTS = {
    MYSQL_LEDGER: ("SELECT", "INSERT", "UPDATE", "CREATE"),
    "migrator_version": ("SELECT", "INSERT", "UPDATE", "CREATE"),
    MYSQL_HISTORY: ("SELECT", "INSERT", "DELETE", "CREATE"),
}
"""Rights on the control tables, by name: the first run makes them."""
_RECORD_RIGHTS = ("SELECT", "INSERT", "UPDATE", "DELETE", "CREATE")
"""Rights on the record of cut-overs, which the first plan makes."""
_SEQUENCES = "`migrator sequences --apply`"
_RESET = "`migrator reset`"


def target_grants(
    settings: MysqlTarget,
    names: Sequence[str],
    joined: bool,
    numbered: bool = False,
    *,
    both_ways: bool = False,
) -> Grants:
    """Returns the grants for writing these tables; ``joined``: with the mirror, ``numbered``: with key maps,
    ``both_ways``: with the record of cut-overs."""
    user = account(settings.server.user)

    def table(name: str) -> str:
        return qualified(TableId(settings.server.database, name))

    control = CONTROL_RIGHTS | ({MYSQL_CUTOVER: _RECORD_RIGHTS} if both_ways else {})
    needed = [
        f"GRANT CREATE TEMPORARY TABLES ON {quoted(settings.server.database)}.* TO {user}",
        *(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table(name)} TO {user}" for name in names),
        f"GRANT SELECT ON {table('alembic_version')} TO {user}",
        *(f"GRANT {', '.join(rights)} ON {table(name)} TO {user}" for name, rights in control.items()),
    ]
    if numbered:
        needed += (f"GRANT SELECT, INSERT, UPDATE, CREATE ON {table(name)} TO {user}" for name in KEY_MAPS)
    if joined:
        mirror = quoted(mirror_database(settings.server.database))
        needed.append(f"CREATE DATABASE IF NOT EXISTS {mirror} CHARACTER SET utf8mb4")
        needed.append(f"GRANT {RIGHTS} ON {mirror}.* TO {user}")
    return Grants(
        f"{'MySQL' if settings.server.kind == 'mysql' else 'MariaDB'} target {settings.server.database}:"
        " as an administrator, after your Alembic revisions",
        user,
        f"CREATE USER {user} IDENTIFIED BY '...';",
        tuple(needed),
        (
            (
                _tied(settings, names, user),
                "to see what foreign keys need: it prints statements, to be run as well",
            ),
            *(
                (
                    f"GRANT TRIGGER ON {table(name)} TO {user}",
                    f"if {name} has triggers: else those that change what is written aren't seen",
                )
                for name in names
            ),
            *(
                (f"GRANT DELETE ON {table(name)} TO {user}", f"if it is to run {_RESET}")
                for name in (MYSQL_LEDGER, *(KEY_MAPS if numbered else ()))
            ),
            *(
                (
                    f"GRANT ALTER, CREATE ON {table(name)} TO {user}",
                    f"if it is to run {_SEQUENCES} and {name} counts",
                )
                for name in names
            ),
        ),
    )


def _tied(settings: MysqlTarget, names: Sequence[str], user: str) -> str:
    """Foreign keys are known to the server alone, and it shows them to those who may see both tables."""
    ours = ", ".join(_text(name) for name in names)
    database = _text(settings.server.database)
    other = "CONCAT('GRANT SELECT ON `', {0}schema, '`.`', {0}name, {1})"
    ends = _text(f"` TO {user};")
    return (
        f"SELECT {other.format('referenced_table_', ends)} AS needed FROM information_schema.key_column_usage"
        f" WHERE table_schema = {database} AND table_name IN ({ours}) AND referenced_table_name NOT IN ({ours})"
        f" UNION SELECT {other.format('table_', ends)} FROM information_schema.key_column_usage"
        f" WHERE referenced_table_schema = {database} AND referenced_table_name IN ({ours})"
        f" AND table_name NOT IN ({ours})"
    )


def _text(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
