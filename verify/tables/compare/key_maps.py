"""Numbers of key maps on the mapped side: a mapping gives old keys, the target holds the numbers they got.

The judge reads the maps as they are in the target. A key that has no number there gets one that no map gives, below
zero: its row is missing, or on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from psycopg import sql
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.frames import constants
from transforms.registry import TargetMapping
from verify.readers.mysql.session import open_session, rows_of
from verify.readers.postgres.pins import connect_postgres
from verify.settings import ServerSettings
from verify.tables.compare.compare import place

_OLD, _NEW = "~old key", "~new key"
_MYSQL_THERE = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = 'migrator_key_map'"
)

Entries = list[tuple[str, int]]


class KeyMapReader:
    """The key maps of a migration, each read as far as it has grown since it was read last.

    Args:
        settings: the target.
        migration: whose maps.
    """

    def __init__(self, settings: ServerSettings, migration: str):
        self._settings, self._migration = settings, migration
        self._known: dict[str, Entries] = {}

    def entries(self, name: str) -> Entries:
        """Old keys and numbers of a map as it is now. Raises ``VerifyError``, ``ConnectionFailed``."""
        known = self._known.get(name, [])
        read = self._of_postgres if self._settings.server.kind == "postgresql" else self._of_mysql
        self._known[name] = [*known, *read(name, known[-1][1] if known else 0)]
        return self._known[name]

    def _of_postgres(self, name: str, after: int) -> Entries:
        query = sql.SQL(
            "SELECT convert_from(old_key, 'UTF8'), new_key FROM migrator.key_map"
            " WHERE migration = %s AND name = %s AND new_key > %s ORDER BY new_key"
        )
        with connect_postgres(self._settings) as connection:
            there = connection.execute("SELECT to_regclass('migrator.key_map') IS NOT NULL").fetchall()[0][0]
            rows = connection.execute(query, (self._migration, name, after)).fetchall() if there else []
        return [(str(key), int(number)) for key, number in rows]

    def _of_mysql(self, name: str, after: int) -> Entries:
        query = (
            "SELECT CONVERT(old_key USING utf8mb4), new_key FROM migrator_key_map"
            " WHERE migration = %s AND name = %s AND new_key > %s ORDER BY new_key"
        )
        with open_session(self._settings, "target") as session:
            there = rows_of(session, _MYSQL_THERE, (self._settings.server.database,))
            rows = rows_of(session, query, (self._migration, name, str(after))) if there else []
        return [(str(key), int(number)) for key, number in rows]


def numbered(target: TargetMapping, entries: Callable[[str], Entries]) -> TargetMapping:
    """A mapping whose function gives the numbers that the target is to hold."""
    if not target.surrogates:
        return target
    return replace(target, function=_Numbered(target, entries))


class _Numbered:
    """A mapping's function, its surrogates replaced. Messages still name the user's function."""

    def __init__(self, target: TargetMapping, entries: Callable[[str], Entries]):
        self._target, self._entries = target, entries
        self.where = target.where
        self.mention = partial(TargetMapping.mention, target)

    def __call__(self, *frames: DataFrame) -> DataFrame:
        rows: Any = self._target.function(*frames)
        for column, name in self._target.surrogates:
            if isinstance(rows, DataFrame) and column in rows.columns:
                rows = _replaced(rows, column, self._entries(name))
        return rows  # type: ignore[no-any-return]  # what it is, whoever calls checks


def _replaced(rows: DataFrame, column: str, entries: Entries) -> DataFrame:
    names = rows.columns
    key = F.xxhash64(_OLD)
    unknown = F.lit(-1) - F.shiftrightunsigned(key, 1)
    known = constants(rows.sparkSession, f"`{_OLD} of map` string, `{_NEW}` bigint", entries)
    found = rows.withColumn(_OLD, place(column).cast("string")).join(
        known, F.col(_OLD) == F.col(f"{_OLD} of map"), "left"
    )
    number = F.when(F.col(_OLD).isNotNull(), F.coalesce(F.col(_NEW), unknown))
    return found.select(*(number.alias(name) if name == column else place(name) for name in names))
