"""The source database: its catalog, its log, its chunks, its watermarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from migrator.model.chunk import Chunk, ChunkRequest, Witness
from migrator.model.event import LogRecord, MarkKind
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.load import Load
from migrator.model.position import Position
from migrator.model.reach import Reference
from migrator.model.requests.request import Scope
from migrator.model.table import Column, TableId, TableSchema


class SourceCatalog(Protocol):
    """Structure and readiness of the source. Read-only apart from ``prepare`` and ``adopt``."""

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        """Row schemas of the named tables. Raises ``SourceError`` naming the tables that don't exist."""
        ...

    def references(self, tables: Sequence[TableSchema]) -> list[Reference]:
        """The foreign keys from one of these tables to another, or to itself."""
        ...

    def preflight(self, tables: Sequence[str]) -> list[Finding]:
        """Everything that stands in the way, all at once. Changes nothing."""
        ...

    def prepare(self, tables: Sequence[TableSchema]) -> None:
        """Makes what log reading needs and is ours (publication, slot, watermark row). May be repeated."""
        ...

    def adopt(self, tables: Sequence[TableId]) -> None:
        """Does for tables that replaced captured ones of their names what ``prepare`` did for those. May be repeated.

        What isn't ours to do stays undone: preflight and the log reader tell of it. Raises ``SourceError``,
        ``ConnectionFailed``.
        """
        ...

    def estimated_rows(self, table: TableSchema) -> int:
        """The server's own estimate, without a scan; 0 when it has none."""
        ...

    def check_scope(self, table: TableSchema, scope: Scope) -> None:
        """Asks the source whether it can read these rows. Raises ``RequestError`` naming field, value and cause."""
        ...

    def doubted(self, column: Column, rule: Rule) -> str:
        """SQL over a row's columns that is true, among others, of values that break a rule of a target column.

        Empty where the source can't be asked.
        """
        ...

    def position(self) -> Position:
        """A place at or after every transaction visible now, for lag and ``--until caught-up``."""
        ...


class LogReader(Protocol):
    """The source log from a position on, in commit order. One thread uses it at a time."""

    def start(self, after: Position | None) -> Position:
        """Begins after ``after``; when None, where everything before is visible to new snapshots, near the
        log's end.

        Returns the actual start. Raises ``GapError`` when the log no longer holds that place, ``ConnectionFailed``.
        """
        ...

    def read(self, timeout_s: float) -> list[LogRecord]:
        """The next records in log order; empty when nothing came within ``timeout_s``.

        A transaction larger than the adapter's bound comes as several parts. The schema of a table comes before
        its first change. Raises ``SourceError``, ``SchemaError`` (named, with the position), ``ConnectionFailed``.
        """
        ...

    def acknowledge(self, position: Position) -> None:
        """Everything up to ``position`` is durable on our side; the source may forget it."""
        ...

    def finish(self) -> None:
        """The run ends, and perhaps nobody reads after it: a last look for what the log doesn't show.

        Raises what ``read`` raises. What it reads for that is handed to nobody.
        """
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


class ChunkReader(Protocol):
    """Reads chunks beside the log. One thread uses it at a time, another than the log reader's."""

    def bounded(self, request: ChunkRequest, schema: TableSchema) -> ChunkRequest:
        """The request with the bounds it lacks: ``end``, and of one that goes ``ahead`` also ``until``.

        Cheap: keys are looked up in the index, no row is read. What is found may be out of date at once,
            harmlessly: rows that come or go in between change how many a chunk has, and ``limit_rows`` still
            bounds them. Raises what ``read`` raises.
        """
        ...

    def read(self, request: ChunkRequest, schema: TableSchema) -> Chunk:
        """Reads one chunk in a read view of its own, together with its witness and its high position.

        Its rows are those after ``after`` up to ``top``, as far as ``limit_rows`` goes (see
        ``ChunkRequest.ending``).

        Raises ``SourceError`` when a value can't be represented, ``SchemaError`` when the table no longer has
        this schema, ``ConnectionFailed``.
        """
        ...

    def witness(self) -> Witness | None:
        """A witness of now, so that the core may forget the keys of transactions that are visible by now."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


class WatermarkWriter(Protocol):
    """Writes DBLog's watermark row, where that placement is configured."""

    def write(self, token: str, kind: MarkKind) -> None:
        """Commits the watermark; on return it is in the log."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


class SourceMeter(Protocol):
    """Tells where the source's log ends, often, over one session of its own. One thread uses it at a time."""

    def end(self) -> Position:
        """A place at or after every transaction visible now; as ``SourceCatalog.position``, within some seconds.

        Raises a ``MigratorError`` where the source gives no answer; the next call connects again.
        """
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...


class LoadMeter(Protocol):
    """Tells how busy the source is. One thread uses it at a time."""

    def sample(self) -> Load:
        """The load now; cheap, and without our own sessions. Raises ``ConnectionFailed``."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...
