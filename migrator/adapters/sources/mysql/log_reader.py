"""The log reader of a MySQL source, and the dialect in which its server writes and prints rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.place.proof import Proof, gtid_events
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.charsets import load_charsets
from migrator.adapters.sources.binlog.rows.dialect import Dialect
from migrator.adapters.sources.binlog.tables.captured_tables import CatalogTable
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader, Server
from migrator.adapters.sources.binlog.wire.packet_stream import PacketStream
from migrator.adapters.sources.mysql.catalog import executed, log_end, read_table, server_name
from migrator.adapters.sources.mysql.gtid_set import newest, own_last, parse_set
from migrator.adapters.sources.mysql.log_request import open_stream
from migrator.adapters.sources.mysql.position import LogPlace, parse_position
from migrator.adapters.sources.mysql.preflight import logs_cascades
from migrator.adapters.sources.mysql.track import SetTrack, proof_of
from migrator.errors import GapError
from migrator.model.position import Position
from migrator.model.table import TableId


def _double_text(value: float) -> str:
    """Prints a double as MariaDB does, but minus zero keeps its sign."""
    text = value_text.double_text(value)
    return "-0" if text == "0" and str(value)[0] == "-" else text


MYSQL = Dialect(
    character=frozenset((types.STRING, types.VAR_STRING, types.VARCHAR, types.BLOB, types.VECTOR)),
    double_text=_double_text,
    collations="COLLATIONS",
)


class MysqlLogReader(BinlogReader):
    """Reads the binary log of MySQL by GTID."""

    _dialect = MYSQL

    def _ask_server(self, connection: Any) -> Server:
        return Server(load_charsets(connection, MYSQL.collations), logs_cascades(connection))

    def _visible(self, connection: Any) -> Position:
        return LogPlace(executed(connection)).position()

    def _log_end(self, connection: Any) -> Position:
        return log_end(connection)

    def _server_name(self, connection: Any) -> str:
        return server_name(connection)

    def _read_table(self, connection: Any, table: TableId) -> CatalogTable | None:
        return read_table(connection, table)

    def _follow(self, begin: Position, end: Position) -> SetTrack:
        self._check_holds(begin, end)
        place = parse_position(begin)
        return SetTrack(place.gtids, place.undecided, place.proof)

    def _check_holds(self, begin: Position, end: Position) -> None:
        place, last = parse_position(begin), parse_position(end)
        if not place.gtids.within(last.gtids):
            raise GapError(
                "the source log ends before the place to go on from",
                where=str(place),
                cause=f"the server's log ends at {last}: it was reset or restored, or this is a replica that lacks "
                "transactions of the server read before",
                remedy="connect to the server read before, wait for the replica, or "
                "start the migration anew (docs/how-to/start-anew.md)",
            )

    def _read_again(self, begin: Position, server: str) -> Proof | None:
        place = parse_position(begin)
        if place.proof is not None:
            return self._last_of(place, (place.proof.gtid,))
        try:
            return self._last_of(place, newest(place.gtids))
        except GapError:  # of an origin that wrote long ago the log has nothing any more
            own = own_last(place.gtids, server)
            return self._last_of(place, (own,) if own else ())

    def _last_of(self, place: LogPlace, gtids: Sequence[str]) -> Proof | None:
        """The last of these transactions in the log; None: it has none of them."""
        if not gtids:
            return None
        asked = place.read_from().without(parse_set(",".join(gtids)))
        last = None
        for event in gtid_events(open_stream(self._source, asked), self._source.server.silence_s):
            found = proof_of(event)
            if found is not None and found.gtid in gtids:
                last = found
                if len(gtids) == 1:
                    break
        return last

    def _open_stream(self, begin: Position) -> PacketStream:
        """Begins in the file of the last transaction that was read, which is passed over.

        The server begins in the latest file behind which it has all that is missing. A transaction that has no GTID
        (``gtid_mode`` was off for a while) is in no set, and might stand before that; on its way the server
        meets it.
        """
        place = parse_position(begin)
        asked = place.read_from()
        if place.proof is not None:
            with suppress(GapError):  # purged; then what comes after it is enough, see ``_proved``
                return open_stream(self._source, asked.without(parse_set(place.proof.gtid)))
        return open_stream(self._source, asked)
