"""The load of a MySQL or MariaDB server: threads that run, and how far it is behind where it is a replica itself.

A primary doesn't know how far its replicas are behind.
"""

from __future__ import annotations

from typing import Any

import pymysql

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query
from migrator.errors import ConnectionFailed
from migrator.model.load import Load

_ANSWER_TIMEOUT_S = 5.0
_RUNNING = {
    True: "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'THREADS_RUNNING'",
    False: "SELECT VARIABLE_VALUE FROM performance_schema.global_status WHERE VARIABLE_NAME = 'Threads_running'",
}
"""Queries for the number of threads that run, by whether the server is MariaDB. MySQL's table is there without the
rest of its performance schema, too."""
_SCHEDULER = "@@GLOBAL.event_scheduler = 'ON'"
"""The scheduler of events counts as a thread that runs even while it only waits for the next one."""
_OWN = """SELECT count(*) FROM information_schema.PROCESSLIST
WHERE USER IN (SUBSTRING_INDEX(USER(), '@', 1), 'unauthenticated user') AND COMMAND NOT IN ('Sleep', 'Daemon')"""
"""Every user sees its own sessions. Ours are told by the user, so it should be a user of our own. Who is only
logging in, as our readers do when a dump begins, is nobody's yet."""
_NOT_ALLOWED = 1227
_BEHIND = ("Seconds_Behind_Source", "Seconds_Behind_Master")


class BinlogLoadMeter:
    """Implements ``LoadMeter`` on one connection, made when first needed and again after a failure."""

    def __init__(self, source: BinlogSource):
        self._source = source
        self._connection: Any = None

    def sample(self) -> Load:
        """See ``LoadMeter.sample``."""
        try:
            with named_errors(self._source, "the source's load can't be read"):
                if self._connection is None:
                    self._connection = connect(self._source, read_timeout_s=_ANSWER_TIMEOUT_S)
                return Load(self._others(), self._behind())
        except ConnectionFailed:
            self.close()
            raise

    def close(self) -> None:
        """See ``LoadMeter.close``."""
        connection, self._connection = self._connection, None
        if connection is not None and connection.open:
            connection.close()

    def _others(self) -> int:
        """Threads of others.

        Ours begin and end between two counts: so they are counted before and after, all in one statement. A session
        that stops is still counted as running for a moment after it is shown as asleep, which no order of counting
        helps against: now and then one of ours is taken for another.
        """
        question = f"SELECT ({_OWN}), ({_RUNNING[self._maria]}) - ({_SCHEDULER}), ({_OWN})"
        before, running, after = map(int, query(self._connection, question)[0])
        return max(0, running - max(before, after))

    @property
    def _maria(self) -> bool:
        return "mariadb" in str(self._connection.get_server_info()).lower()

    def _behind(self) -> float | None:
        with self._connection.cursor(pymysql.cursors.DictCursor) as cursor:
            try:
                cursor.execute("SHOW ALL SLAVES STATUS" if self._maria else "SHOW REPLICA STATUS")
            except pymysql.err.OperationalError as error:
                if error.args[0] == _NOT_ALLOWED:
                    return None
                raise
            rows = cursor.fetchall()
        found = [float(row[name]) for row in rows for name in _BEHIND if row.get(name) is not None]
        return max(found, default=None)
