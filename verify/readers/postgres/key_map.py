"""Key maps as a PostgreSQL target holds them."""

from __future__ import annotations

from verify.readers.postgres.pins import connect_postgres
from verify.settings import ServerSettings

_ENTRIES = (
    "SELECT convert_from(old_key, 'UTF8'), new_key FROM migrator.key_map"
    " WHERE migration = %s AND name = %s AND new_key > %s ORDER BY new_key"
)


def key_map_entries(settings: ServerSettings, migration: str, name: str, after: int) -> list[tuple[str, int]]:
    """See ``verify.readers.engines.JudgedEngine.key_map``."""
    with connect_postgres(settings) as connection:
        there = connection.execute("SELECT to_regclass('migrator.key_map') IS NOT NULL").fetchall()[0][0]
        rows = connection.execute(_ENTRIES, (migration, name, after)).fetchall() if there else []
    return [(str(key), int(number)) for key, number in rows]
