"""The log reader of a MariaDB source: from a position on, transactions in commit order.

It follows the server's GTID replication: the position's GTID state is announced, the server sends what comes after.
A cut connection is an error that may be retried: the caller starts again after the last position it holds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from migrator.adapters.mariadb.captured_tables import CapturedTables, CatalogTable
from migrator.adapters.mariadb.catalog import log_end, query, read_table, visible_end
from migrator.adapters.mariadb.charsets import load_charsets
from migrator.adapters.mariadb.packet_stream import PacketStream
from migrator.adapters.mariadb.position import LogPlace, gtid_text, parse_position
from migrator.adapters.mariadb.settings import MariaSource, connect, named_errors
from migrator.adapters.mariadb.transactions import TransactionAssembler
from migrator.adapters.mariadb.watermark import WatermarkTable
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError
from migrator.model.event import LogRecord
from migrator.model.position import Position
from migrator.model.table import TableId, TableSchema


class MariaLogReader:
    """Reads the binary log. One thread uses it at a time.

    Args:
        source: the server and database.
        tables: the captured tables.
    """

    def __init__(self, source: MariaSource, tables: Sequence[TableSchema]):
        self._source = source
        self._tables = tuple(tables)
        self._stream: PacketStream | None = None
        self._assembler: TransactionAssembler | None = None
        self._raw: list[bytes] = []
        self._at = 0
        self._failure: MigratorError | None = None

    def start(self, after: Position | None) -> Position:
        """Begins after ``after``, or where the visible transactions end when None; returns the actual start.

        Raises ``GapError`` when the log no longer holds that place, ``ConnectionFailed``.
        """
        self.close()
        connection = connect(self._source)
        with named_errors(self._source, "the source log can't be opened"), connection:
            end = log_end(connection)
            begin = after if after is not None else visible_end(connection)
            charsets = load_charsets(connection)
            ((fold_case,),) = query(connection, "SELECT @@GLOBAL.lower_case_table_names <> 0")
            known = {schema.id: read_table(connection, schema.id) for schema in self._tables}
        place = parse_position(begin)
        self._refuse_regression(place, parse_position(end))
        catalog = {table: found for table, found in known.items() if found is not None}
        tables = CapturedTables(self._tables, catalog, self._read_catalog, charsets, bool(fold_case))
        marks = (
            WatermarkTable(self._source.migration, charsets)
            if self._source.placement == "watermark"
            else None
        )
        self._stream = PacketStream(self._source, place.gtids)
        self._assembler = TransactionAssembler(
            self._source.database, tables, marks, place.gtids, self._source.part_rows
        )
        self._raw = self._stream.take_first()
        return begin

    def read(self, timeout_s: float) -> list[LogRecord]:
        """The next records in log order; empty when nothing came within ``timeout_s``.

        At most about ``part_rows`` row changes at once. Raises ``SourceError``, ``SchemaError`` (named, with the
        position), ``GapError``, ``ConnectionFailed`` (retryable: start again after the last position).
        """
        if self._stream is None or self._assembler is None:
            raise SourceError("the log reader was not started", remedy="call start() first")
        deadline = time.monotonic() + timeout_s
        try:
            while True:
                if self._failure is None and self._at == len(self._raw):
                    self._raw, self._at = self._stream.events(max(0.0, deadline - time.monotonic())), 0
                    if not self._raw:
                        return self._assembler.take()
                if self._failure is None:
                    self._failure = self._feed(self._assembler)
                records = self._assembler.take()
                if records:
                    return records
                if self._failure is not None:
                    raise self._failure
        except ConnectionFailed:
            self.close()
            raise

    def _feed(self, assembler: TransactionAssembler) -> MigratorError | None:
        """Hands events over until ``part_rows`` changes wait; a failure is returned, to be raised after them."""
        while self._at < len(self._raw) and assembler.rows < self._source.part_rows:
            event = self._raw[self._at]
            self._at += 1
            try:
                assembler.feed(event)
            except MigratorError as error:
                return error
        return None

    def acknowledge(self, position: Position) -> None:
        """Nothing to do: MariaDB keeps its binlogs by its own settings (preflight warns of short ones)."""

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        if self._stream is not None:
            self._stream.close()
        self._stream = self._assembler = None
        self._raw, self._at, self._failure = [], 0, None

    def _refuse_regression(self, place: LogPlace, end: LogPlace) -> None:
        """Raises ``GapError`` when the log ends before the place: the server would wait there in silence."""
        for domain, gtid in place.gtids.items():
            last = end.gtids.get(domain)
            if last is None or last.sequence < gtid.sequence:
                raise GapError(
                    "the source log ends before the place to go on from",
                    where=str(place),
                    cause=f"the server's log ends at GTID {gtid_text(end.gtids) or 'none'}: it was reset or "
                    "restored, or this is a replica that lags behind the server read before",
                    remedy="connect to the server read before, wait for the replica, or start a new dump",
                )

    def _read_catalog(self, table: TableId) -> CatalogTable | None:
        connection = connect(self._source)
        with named_errors(self._source, "the catalog can't be read"), connection:
            return read_table(connection, table)
