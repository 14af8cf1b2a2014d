"""Structure of both sides' tables as both ways see it: asked before a switch begins, and before it opens a side."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from pyspark.sql import SparkSession

from migrator.config.project import Settings
from migrator.errors import MigratorError, SourceError, TargetError
from migrator.model.cutover.record import Side
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.run.analysed import look, readable, source_tables
from migrator.run.migration import preflight
from migrator.run.steps import no_step
from migrator.wiring import parts as wiring
from migrator.wiring.target import target_writer

_DIGITS = 16


class Structures:
    """The tables of both sides, and whether the mappings of both ways fit them.

    Args:
        settings: of the way there.
        back: of the way back.
        spark: a running session, to plan mapping functions in.
    """

    def __init__(self, settings: Settings, back: Settings, spark: Callable[[], SparkSession]):
        self._there, self._back, self._spark = settings, back, spark
        self._fitting: dict[str, dict[str, str]] = {}
        self._names: dict[str, tuple[list[str], list[str]]] = {}

    def of(self, side: Side) -> dict[str, str]:
        """Returns a digest of each table of a side, by name; other ones once its columns or its key are others.

        Raises ``ConnectionFailed``.
        """
        digests: dict[str, str] = {}
        for name, text in self._described(side):
            known = digests.get(name, "")
            digests[name] = hashlib.sha256(f"{known}{text}".encode()).hexdigest()[:_DIGITS]
        return digests

    def why_not(self, opens: Side) -> str:
        """Returns why a switch to a side can't begin: rights, log settings, or tables that a mapping doesn't fit;
        empty where it can.

        Back to the old side, only the way that brings it what it lacks is asked: another fault mustn't be in the
        way of a return.
        """
        ways = {"there": self._there, "back": self._back} if opens is Side.NEW else {"back": self._back}
        for name, one in ways.items():
            parts = wiring.parts(one)
            try:
                if refused := [found for found in preflight(parts) if found.fatal]:
                    return f"the way {name}: {refused[0].problem} ({refused[0].remedy})"
                if problem := self._unfit(one):
                    return f"the way {name}: {problem}"
            finally:
                parts.target.close()
        return ""

    def _unfit(self, settings: Settings) -> str:
        """Plans a way's functions against the tables as they are; what is wrong, empty where nothing is. Planned once
        for the same tables."""
        tables = {f"{side}.{name}": digest for side in Side for name, digest in self.of(side).items()}
        if self._fitting.get(settings.name) == tables:
            return ""
        parts = wiring.parts(settings)
        try:
            looked = look(self._spark, parts.mapping, parts.catalog, parts.target)
        finally:
            parts.target.close()
        wrong = [*looked.refused.values(), *looked.analysed.problems]
        if wrong:
            return str(wrong[0])
        self._fitting[settings.name] = tables
        return ""

    def _named(self, settings: Settings) -> tuple[list[str], list[str]]:
        """Names of the tables that a way reads, and of those that it writes.

        Its mapping is read once: while nobody can write there is no time for it.
        """
        if settings.name not in self._names:
            mapping = wiring.mapping(settings)
            self._names[settings.name] = (source_tables(mapping), [one.name for one in mapping.targets])
        return self._names[settings.name]

    def _described(self, side: Side) -> Iterator[tuple[str, str]]:
        """Names and texts of the tables that a side's changes are read from, then of those that are written there."""
        reading, writing = (self._there, self._back) if side is Side.OLD else (self._back, self._there)
        catalog, (target, _) = wiring.source_catalog(reading), target_writer(writing, no_step)
        refused: dict[str, MigratorError] = {}
        names, _ = self._named(reading)
        read: list[TableSchema]
        try:
            read = list(catalog.tables(names))
        except SourceError:
            read = list(readable(catalog.tables, names, refused).values())
        yield from ((table.id.name, repr((table.columns, table.key))) for table in read)
        _, names = self._named(writing)
        written: list[TargetTable]
        try:
            written = list(target.tables(names))
        except TargetError:
            written = list(readable(target.tables, names, refused).values())
        finally:
            target.close()
        yield from ((table.id.name, repr((table.columns, table.key))) for table in written)
        yield from ((name, str(error)) for name, error in sorted(refused.items()))
