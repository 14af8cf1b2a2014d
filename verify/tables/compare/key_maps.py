"""Numbers of key maps on the mapped side: a mapping gives old keys, the target holds the numbers they got.

The judge reads the maps as they are in the target. A key without a number there gets a negative one, which no map
gives: its row is missing, or on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.frames import constants
from transforms.registry import TargetMapping
from verify.readers.engines import JUDGED
from verify.settings import ServerSettings
from verify.tables.compare.compare import place

_OLD, _NEW = "~old key", "~new key"

Entries = list[tuple[str, int]]


class KeyMapReader:
    """The key maps of a migration. Each read of a map gets only the entries added since the last one.

    Args:
        settings: the target.
        migration: its name.
    """

    def __init__(self, settings: ServerSettings, migration: str):
        self._settings, self._migration = settings, migration
        self._known: dict[str, Entries] = {}

    def entries(self, name: str) -> Entries:
        """Old keys and numbers of a map as it is now. Raises ``VerifyError``, ``ConnectionFailed``."""
        known = self._known.get(name, [])
        read, after = JUDGED[self._settings.server.kind].key_map, known[-1][1] if known else 0
        self._known[name] = [*known, *read(self._settings, self._migration, name, after)]
        return self._known[name]


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
        self.where_named = partial(TargetMapping.where_named, target)

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
