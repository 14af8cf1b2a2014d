"""The log reader of a MariaDB source, and the dialect in which its server writes and prints rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.place.proof import Proof, gtid_events
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.charsets import load_charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader, Server
from migrator.adapters.sources.binlog.wire.packet_stream import PacketStream
from migrator.adapters.sources.mariadb.catalog import (
    UntoldPlaceError,
    log_end,
    read_table,
    server_name,
    visible_end,
)
from migrator.adapters.sources.mariadb.log_request import open_stream
from migrator.adapters.sources.mariadb.log_walk import gtids_at
from migrator.adapters.sources.mariadb.position import (
    LogPlace,
    gtid_text,
    last_of,
    parse_gtids,
    parse_position,
)
from migrator.adapters.sources.mariadb.track import DomainTrack, proof_of
from migrator.errors import GapError
from migrator.model.position import Position
from migrator.model.table import TableId

MARIADB = Dialect(
    character=frozenset(
        (
            types.STRING,
            types.VAR_STRING,
            types.VARCHAR,
            types.BLOB,
            types.GEOMETRY,
            types.VARCHAR_COMPRESSED,
            types.BLOB_COMPRESSED,
        )
    ),
    double_text=value_text.double_text,
    collations="COLLATION_CHARACTER_SET_APPLICABILITY",
    mariadb=True,
    hidden=r"DB_ROW_HASH_\d+",  # of a UNIQUE over texts of any length
)


class MariaLogReader(BinlogReader):
    """Reads the binary log of MariaDB by GTID."""

    _dialect = MARIADB

    def _ask_server(self, connection: Any) -> Server:
        return Server(load_charsets(connection, MARIADB.collations), logs_cascades=False)

    def _visible(self, connection: Any) -> Position:
        try:
            return visible_end(connection)
        except UntoldPlaceError as untold:
            return LogPlace(gtids_at(self._source, untold.snapshot), "", 0).position()

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)

    def _server_name(self, connection: Any) -> str:
        return server_name(connection)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)

    def _follow(self, begin: Position, end: Position) -> DomainTrack:
        self._check_holds(begin, end)
        place = parse_position(begin)
        return DomainTrack(place.gtids, place.undecided, place.proof)

    def _check_holds(self, begin: Position, end: Position) -> None:
        place, last = parse_position(begin), parse_position(end)
        for domain, gtid in place.gtids.items():
            found = last.gtids.get(domain)
            if found is None or found.sequence < gtid.sequence:
                raise GapError(
                    "the source log ends before the place to go on from",
                    where=str(place),
                    cause=f"the server's log ends at GTID {gtid_text(last.gtids) or 'none'}: it was reset or "
                    "restored, or this is a replica that lags behind the server read before",
                    remedy="connect to the server read before, wait for the replica, or "
                    "start the migration anew (docs/how-to/start-anew.md)",
                )

    def _read_again(self, begin: Position, server: str) -> Proof | None:
        place = parse_position(begin)
        wanted, before = last_of(place)
        if wanted is None:
            return None
        asked = {**place.read_from(), wanted.domain: before}
        gtids = {domain: gtid for domain, gtid in asked.items() if gtid is not None}
        for event in gtid_events(open_stream(self._source, gtids), self._source.server.silence_s):
            found = proof_of(event)
            if found is None:
                continue
            (gtid,) = parse_gtids(found.gtid).values()
            if gtid == wanted:
                return replace(found, before="" if before is None else str(before))
            if gtid.domain == wanted.domain and gtid.sequence >= wanted.sequence:
                return found
        return None

    def _open_stream(self, begin: Position) -> PacketStream:
        return open_stream(self._source, parse_position(begin).read_from())
