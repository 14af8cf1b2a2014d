"""Chunks and log must come from one server.

An address may lead elsewhere from one connection to the next: a virtual address that moves, a name with two servers
behind it, a proxy that spreads reads over replicas. A chunk read on a replica that lags lacks changes that the log
brought before reading began, so nothing would ever correct its rows; and where witnesses are places in one server's
own log (MariaDB), or ids that a standby doesn't list (PostgreSQL), another server's witness means nothing.

Where the log names tables by numbers, chunks must also come from the tables whose changes the log brings: another
table may have got the name of one meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping

from migrator.errors import ConnectionFailed, ReplacedError
from migrator.model.table import TableId


class SameServer:
    """The server that the log is read from, as the chunk readers of the same run know it.

    The log reader's thread writes and the others read: one reference, assigned at once. An executor gets a copy, of
    the moment when its task was pickled.
    """

    def __init__(self) -> None:
        self._log = ""
        self._tables: Mapping[TableId, int] = {}

    def follows(self, tables: Mapping[TableId, int]) -> None:
        """The log reader takes the changes of these tables, by the numbers that the source gave them."""
        self._tables = dict(tables)

    def check_table(self, table: TableId, number: int) -> None:
        """Checks that rows come from the table whose changes the log brings, not from another that has its name by
        now.

        Raises ``ReplacedError``.
        """
        if self._tables.get(table, number) != number:
            raise ReplacedError(
                f"table {table} was replaced by another table of its name",
                [table],
                cause=f"the log is read of table number {self._tables[table]}, the name now leads to number {number}",
                remedy="start again: the message then says what leads on from here",
            )

    def reads_log(self, server: str) -> None:
        """The log reader has connected to this server."""
        self._log = server

    def log(self) -> str:
        """The server that the log is read from; empty before it is."""
        return self._log

    def check(self, server: str, where: str) -> None:
        """Checks that a connection for chunks leads to the log's server; anything goes while no log is read.

        Args:
            server: what that connection says who it leads to, in the words that the log reader uses.
            where: the address of the source.

        Raises ``ConnectionFailed``, retryable: while an address moves, log and chunks get there one after the
        other.
        """
        if self._log and server != self._log:
            raise ConnectionFailed(
                "the chunks' connection leads to another server than the log's",
                where=where,
                cause=f"the log is read from {self._log}, this connection leads to {server}",
                remedy="let [source] host and port lead to one server, without a proxy that spreads reads",
                retryable=True,
            )
