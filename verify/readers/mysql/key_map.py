"""Key maps as a target on MySQL or MariaDB holds them."""

from __future__ import annotations

from verify.readers.mysql.session import open_session, rows_of
from verify.settings import ServerSettings

_THERE = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'migrator_key_map'"
_ENTRIES = (
    "SELECT CONVERT(old_key USING utf8mb4), new_key FROM migrator_key_map"
    " WHERE migration = %s AND name = %s AND new_key > %s ORDER BY new_key"
)


def key_map_entries(settings: ServerSettings, migration: str, name: str, after: int) -> list[tuple[str, int]]:
    """See ``verify.readers.engines.JudgedEngine.key_map``."""
    with open_session(settings, "target") as session:
        there = rows_of(session, _THERE, (settings.server.database,))
        rows = rows_of(session, _ENTRIES, (migration, name, str(after))) if there else []
    return [(str(key), int(number)) for key, number in rows]
