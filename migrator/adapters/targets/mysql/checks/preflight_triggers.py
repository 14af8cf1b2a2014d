"""Preflight of triggers: warns where the server leaves them out, as it does without a word if rights lack."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from migrator.adapters.targets.mysql.reflect import Catalog
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.connections.mysql.sql import account
from migrator.model.finding import Finding
from migrator.model.table import TableId

_NAME = r"(\*|`(?:[^`]|``)*`)"
_GRANT = re.compile(rf"GRANT (?P<rights>.*) ON (?:TABLE )?{_NAME}\.{_NAME} TO ", re.DOTALL)


def trigger_rights(session: Catalog, settings: MysqlTarget, tables: Sequence[TableId]) -> list[Finding]:
    """Warns of tables whose triggers the login doesn't see.

    ``SHOW GRANTS`` lists the login's own rights and those of its active roles; no catalogue has the latter.
    """
    rights = [str(grant) for (grant,) in session.rows("SHOW GRANTS")]
    unseen = [table for table in tables if not sees_triggers(rights, table)]
    if not unseen:
        return []
    problem = (
        "the user lacks TRIGGER, without which the server shows no triggers: if there are any that change what is"
        " written, only verify notices"
    )
    grants = [f"GRANT TRIGGER ON {qualified(table)} TO {account(settings.server.user)}" for table in unseen]
    subject = ", ".join(str(table) for table in unseen)
    return [Finding("trigger_rights", subject, problem, "; ".join(grants), fatal=False)]


def sees_triggers(grants: Iterable[str], table: TableId) -> bool:
    """Tells whether any of the lines of ``SHOW GRANTS`` gives TRIGGER on a table."""
    for grant in grants:
        found = _GRANT.match(grant)
        if found is None or not re.search(
            r"\bTRIGGER\b|\bALL PRIVILEGES\b", _without_columns(found["rights"])
        ):
            continue
        database, name = found[2], found[3]
        if name == "*" and (database == "*" or _matches(database[1:-1].replace("``", "`"), table.schema)):
            return True
        if (database, name) == (quoted(table.schema), quoted(table.name)):  # of one table: no wildcards
            return True
    return False


def _without_columns(rights: str) -> str:
    """Rights without lists of columns, which may have any names."""
    return re.sub(r"\((?:[^)`]|`(?:[^`]|``)*`)*\)", "", rights)


def _matches(pattern: str, database: str) -> bool:
    r"""Tells whether a grant's database is this one: ``%`` and ``_`` stand for others unless ``\`` precedes them."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    return (
        re.fullmatch("".join(wild.get(part) or re.escape(part[-1]) for part in parts), database, re.DOTALL)
        is not None
    )
