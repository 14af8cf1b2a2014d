"""Our own rows in the log: watermarks, and the marks of the migration that goes the other way.

A migration that writes into this database moves its ledger in each of its transactions, and does so once before it
writes anything else. So a transaction that begins with a row of that ledger is known before its rows are.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.events.table_map import parse_table_map, table_of
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.rows.row_decoder import DecodeRows, build_decoder
from migrator.adapters.sources.binlog.transactions.watermark import WATERMARK_COLUMNS, WATERMARK_TABLE
from migrator.connections.mysql.settings import BinlogSource
from migrator.errors import SourceError
from migrator.model.event import LogRecord, MarkKind, WatermarkSeen
from migrator.model.table import TableId

LEDGER = "migrator_ledger"
"""The ledger's table, in the database that a migration writes into."""
_LEDGER_COLUMNS = ("migration",)


@dataclass(frozen=True, slots=True)
class Decoding:
    """The servers' facts that rows are read with."""

    charsets: Charsets
    dialect: Dialect
    fold_case: bool


class OwnRows:
    """Recognises them.

    Args:
        source: names the migration, the one that goes the other way, and the placement.
        decoding: how rows are read.
    """

    def __init__(self, source: BinlogSource, decoding: Decoding):
        self._migration, self._counterpart = source.migration, source.counterpart
        self._ledger = TableId(source.server.database, LEDGER)
        self._decoding = decoding
        self._columns: dict[TableId, tuple[str, ...]] = {}
        if source.placement == "watermark":
            self._columns[WATERMARK_TABLE] = WATERMARK_COLUMNS
        if source.counterpart:
            self._columns[self._folded(self._ledger)] = _LEDGER_COLUMNS
        self._decoders: dict[bytes, tuple[DecodeRows, int]] = {}

    def has(self, table_map: bytes) -> bool:
        """Returns whether a TABLE_MAP event is of one of these tables."""
        return bool(self._columns) and self._folded(table_of(table_map)[1]) in self._columns

    def seen(self, table_map: bytes, event: Event) -> tuple[list[LogRecord], bool]:
        """The watermarks in a row event of one of them, and whether the other migration marks its transaction."""
        table = self._folded(table_of(table_map)[1])
        after = self._after(table, table_map, event)
        if table != WATERMARK_TABLE:
            return [], any(str(row[0]) == self._counterpart for row in after)
        return [
            WatermarkSeen(str(token), MarkKind(kind))
            for migration, token, kind in after
            if migration == self._migration
        ], False

    def _folded(self, table: TableId) -> TableId:
        if not self._decoding.fold_case:
            return table
        return TableId(table.schema.lower(), table.name.lower())

    def _after(self, table: TableId, table_map: bytes, event: Event) -> list[Any]:
        """The after images of a row event: the wanted columns."""
        if event.type in events.DELETE_ROWS:
            return []
        decode, columns = self._decoder(table, table_map)
        update = event.type in events.UPDATE_ROWS
        at = 9 + (2 if update else 1) * ((columns + 7) // 8)
        if event.type in events.ROWS_V2:
            at += int.from_bytes(event.body[8:10], "little")
        rows = decode(event.body, at, len(event.body))
        return list(rows[1::2] if update else rows)

    def _decoder(self, table: TableId, table_map: bytes) -> tuple[DecodeRows, int]:
        shape = table_map[6:]
        if shape not in self._decoders:
            layout = parse_table_map(table_map, self._decoding.dialect.character)
            names, wanted = tuple(column.name for column in layout.columns), self._columns[table]
            if names[: len(wanted)] != wanted:
                raise SourceError(
                    f"the table {table} has other columns than expected",
                    where=str(table),
                    cause=", ".join(names),
                    remedy="upgrade the control schema",
                )
            places = ["" if name in wanted else None for name in names]
            decode = build_decoder(layout.columns, places, self._decoding.charsets, self._decoding.dialect)
            self._decoders[shape] = decode, len(names)
        return self._decoders[shape]
