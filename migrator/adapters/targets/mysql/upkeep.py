"""``ANALYZE TABLE`` of a table that a dump has filled.

InnoDB does it by itself, some time after a tenth of the rows has changed; until then the planner believes in
a small table. ``LOCAL``: it isn't written to the target's own binary log.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from migrator.adapters.targets.mysql.mirror.names import mirror_database
from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.model.table import TableId

_MIRROR = (
    "SELECT table_name FROM information_schema.tables"
    " WHERE table_schema = %s AND table_type = 'BASE TABLE' AND LEFT(table_name, %s) = %s ORDER BY 1"
)
_HARMLESS = (8, 0, 24)
"""The first harmless version. Older MySQL flushes the table it looked at: a long reader would hold up all others."""


class MysqlUpkeep:
    """See ``ports.upkeep``."""

    def __init__(self, settings: MysqlTarget):
        self._settings = settings

    def mirror(self) -> list[TableId]:
        """See the port."""
        database, prefix = mirror_database(self._settings.server.database), f"{self._settings.migration}."
        with catalog(self._settings) as session:
            found = session.rows(_MIRROR, [database, len(prefix), prefix])
        return [TableId(database, str(name)) for (name,) in found]

    def lacking(self, table: TableId) -> bool:
        """See the port: never, for the server does it by itself."""
        return False

    def refresh(self, table: TableId, stopped: Callable[[], bool]) -> str:
        """See the port. It looks at a few pages only, so nothing has to be stopped."""
        with catalog(self._settings) as session:
            if self._flushes(str(session.rows("SELECT VERSION()", [])[0][0])):
                return ""
            found = session.rows(f"ANALYZE LOCAL TABLE {qualified(table)}", [])
        said = [str(text) for _, _, kind, text in found if str(kind).lower() != "status"]
        return f"{'; '.join(said)}: run ANALYZE TABLE {qualified(table)}" if said else ""

    def _flushes(self, version: str) -> bool:
        numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
        return self._settings.server.kind == "mysql" and (
            numbers is None or tuple(map(int, numbers.groups())) < _HARMLESS
        )
