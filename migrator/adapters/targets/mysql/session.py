"""One PyMySQL connection that does everything of a target transaction: statements, parameters, loading of rows.

autocommit is off and transactions begin by ``begin``: the server ends a transaction by itself when it meets a
deadlock, and a statement sent after that must not commit on its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pymysql

from migrator.adapters.targets.mysql.file_text import insert_parts, lines
from migrator.adapters.targets.mysql.infile import LoadingConnection
from migrator.adapters.targets.mysql.refusal import (
    TOO_LARGE,
    Refusal,
    explained,
    not_reached,
)
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.watched_thread import WatchedThread
from migrator.adapters.targets.shared.refused import ConnectionLost
from migrator.connections.mysql.result_set import Columns, read_columns, read_parts
from migrator.connections.mysql.session import READS
from migrator.connections.patience import Line, SilentError, patiently
from migrator.errors import TargetError

_FEW_ROWS = 200
_NO_SUCH_SESSION = 1094
_LOOK_AGAIN_S = 0.02
_DRIVER_ERRORS = (pymysql.err.MySQLError, OSError)
Result = TypeVar("Result")


class Session:
    """An open session. One thread uses it.

    Raises ``ConnectionFailed`` when the server can't be reached; every method raises ``Refusal`` with the server's
    report, or ``ConnectionLost``: the connection was cut, or has been silent although nothing is worked on.
    """

    def __init__(self, settings: MysqlTarget):
        self._settings = settings
        self._left_behind = False
        self._line = Line(settings.server.host, settings.server.port)
        self.id = 0
        try:
            self._connection = self._line.connected(lambda: connected(settings))
        except (*_DRIVER_ERRORS, RuntimeError, ValueError) as error:
            raise not_reached(settings, error) from None
        self.id = int(self._connection.thread_id())
        self._cursor = self._connection.cursor()
        self._named: int | None = None
        self._keyed: bool | None = None
        self._packet_bytes = 1 << 10
        try:
            local_files, packet = self.one("SELECT @@GLOBAL.local_infile, @@SESSION.max_allowed_packet")
        except (Refusal, ConnectionLost) as error:
            self.close()
            raise not_reached(settings, error) from None
        except TargetError:
            self.close()
            raise
        self.loads_files = bool(local_files) and settings.local_files
        self._packet_bytes = int(packet)

    def run(self, statement: str, parameters: Sequence[Any] = ()) -> int:
        """Runs one statement without reading a result; returns how many rows it changed."""

        sql = self._fitting(statement, parameters)
        return self._done(lambda: int(self._cursor.execute(sql)))

    def rows(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Runs one query and returns its rows."""

        sql = self._fitting(statement, parameters)

        def fetched() -> list[tuple[Any, ...]]:
            self._cursor.execute(sql)
            return [tuple(row) for row in self._cursor.fetchall()]

        return self._done(fetched)

    def one(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, ...]:
        """The first row of a query that has one."""
        return self.rows(statement, parameters)[0]

    def columns(self, statement: str) -> Columns:
        """Runs one query and returns its columns, values as the server's text."""
        return self._done(lambda: read_columns(self._connection, statement)).columns

    def parts(self, statement: str, number: int) -> Iterator[Columns]:
        """The same of any size, about so many rows at a time. To be read to its end before the next statement."""
        parts = read_parts(self._connection, statement, number)
        while True:
            part = self._done(lambda: next(parts, None))
            if part is None:
                return
            yield part

    def make_temporary(self, name: str, body: str) -> None:
        """Makes a temporary table; ``body``: its columns and keys. A server may want a primary key of each
        table."""
        if self._keyed is None:
            wanted = self.rows("SHOW SESSION VARIABLES LIKE 'sql\\_require\\_primary\\_key'")
            self._keyed = bool(wanted) and wanted[0][1] == "ON"
        if self._keyed and "PRIMARY KEY" not in body:
            body += ", migrator_row BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE"
        self.run(f"CREATE TEMPORARY TABLE {name} ({body}) ENGINE=InnoDB")

    def begin(self, epoch: int) -> None:
        """Begins a transaction of a leader. What an earlier one may have left is undone, not committed.

        Takes the server's lock by which a newer leader finds this session, as soon as nobody else has it.
        """
        self.run("ROLLBACK")
        if self._named != epoch:
            if self.one("SELECT GET_LOCK(%s, 0)", [self._settings.lock_name(epoch)])[0] == 1:
                self._named = epoch
            self.run("ROLLBACK")
        self.run("START TRANSACTION")

    def end_leader(self, epoch: int, patience_s: float) -> None:
        """Ends the session of the leader of an epoch, if it isn't this one, and waits until it has let go.

        The server answers KILL at once and rolls back afterwards, as long as the writing took: only then are
        its row locks free. After ``patience_s`` seconds it is left to that.
        """
        until = time.monotonic() + patience_s
        ended: int | None = None
        while (holder := self._other_leader(epoch)) is not None and time.monotonic() < until:
            if holder != ended:
                self.end_session(holder)
                ended = holder
            time.sleep(_LOOK_AGAIN_S)

    def _other_leader(self, epoch: int) -> int | None:
        holder = self.one("SELECT IS_USED_LOCK(%s)", [self._settings.lock_name(epoch)])[0]
        return None if holder is None or int(holder) == self.id else int(holder)

    def end_session(self, session: int) -> None:
        """Ends another session of the same user; one that is gone already is no error."""
        try:
            self.run(f"KILL CONNECTION {session:d}")
        except Refusal as refusal:
            if refusal.code != _NO_SUCH_SESSION:
                raise

    def load(self, table: str, columns: Sequence[str], loads: Sequence[str], rows: pa.Table) -> None:
        """Appends rows of text to a table.

        Args:
            table: quoted name.
            columns: names of its columns that are loaded.
            loads: per column the SQL of its value; ``{0}`` stands for the text.
            rows: the columns as text, NULLs kept, in that order.

        Raises ``Refusal`` also for what the server calls a warning: LOAD DATA LOCAL stores what fits and goes on.
        """
        if rows.num_rows > _FEW_ROWS and self.loads_files:
            self._load_file(table, columns, loads, rows)
        else:
            self._insert(table, columns, loads, rows)

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server. Safe to call twice."""
        if not self._left_behind:  # else the call that was left behind closes it, should it ever return
            self._close()

    def _load_file(self, table: str, columns: Sequence[str], loads: Sequence[str], rows: pa.Table) -> None:
        direct = [load == "{0}" for load in loads]
        places = [name if plain else f"@{name}" for name, plain in zip(columns, direct, strict=True)]
        sets = [
            f"{name} = {load.replace('{0}', f'@{name}')}"
            for name, load, plain in zip(columns, loads, direct, strict=True)
            if not plain
        ]
        statement = (
            f"LOAD DATA LOCAL INFILE 'rows' INTO TABLE {table} CHARACTER SET utf8mb4"
            r" FIELDS TERMINATED BY '\t' ESCAPED BY '\\' LINES TERMINATED BY '\n'"
            f" ({', '.join(places)}){' SET ' + ', '.join(sets) if sets else ''}"
        )

        def load() -> int:
            self._connection.pending = lines(rows)
            try:
                return int(self._cursor.execute(statement))
            finally:
                self._connection.pending = None

        loaded = self._done(load)
        self._check_warnings()
        if loaded != rows.num_rows:
            raise Refusal(0, f"{rows.num_rows} rows were sent, the server stored {loaded}")

    def _insert(self, table: str, columns: Sequence[str], loads: Sequence[str], rows: pa.Table) -> None:
        one = f"({', '.join(load.replace('{0}', '%s') for load in loads)})"
        head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
        before = 0
        for values in insert_parts(rows, self._packet_bytes // 4):
            count = len(values) // len(columns)
            try:
                self.run(head + ", ".join([one] * count), values)
                self._check_warnings()
            except Refusal as refusal:
                refusal.before = before
                raise
            before += count

    def _fitting(self, statement: str, parameters: Sequence[Any]) -> str:
        """The statement as it is sent. The server would cut the connection for one that is larger than a packet."""
        sql = str(self._cursor.mogrify(statement, tuple(parameters) or None))
        size = len(sql.encode("utf-8", "surrogateescape")) if 4 * len(sql) >= self._packet_bytes else 0
        if size >= self._packet_bytes:
            raise Refusal(
                TOO_LARGE,
                f"a statement of {size} bytes is larger than the server's max_allowed_packet"
                f" of {self._packet_bytes}",
            )
        return sql

    def _check_warnings(self) -> None:
        if self._cursor.warning_count:
            found = self.rows("SHOW WARNINGS LIMIT 1")
            _, code, message = found[0] if found else ("", 0, "the server gave a warning and didn't keep it")
            raise Refusal(int(code), str(message))

    def _done(self, call: Callable[[], Result]) -> Result:
        try:
            return self._patiently(call)
        except _DRIVER_ERRORS as error:
            raise explained(error) from None

    def _close(self) -> None:
        try:
            self._connection.close()
        except pymysql.err.Error:
            return  # closed already

    def _patiently(self, call: Callable[[], Result]) -> Result:
        """A blocking call of the driver. Raises ``ConnectionLost`` when the server isn't at it any more."""
        if self._left_behind:
            raise ConnectionLost("the connection was given up")
        watched = WatchedThread(self._ask, _DRIVER_ERRORS, self.id, self._line.carried)
        try:
            return patiently(call, self._settings.server.silence_s, watched.works, self._close)
        except SilentError as silent:
            self._left_behind = True
            raise ConnectionLost(str(silent)) from None

    def _ask(self, statement: str) -> list[tuple[Any, ...]]:
        """A query over a connection of its own, with a deadline."""
        connection = self._settings.connected(
            READS, read_timeout=self._settings.server.silence_s, write_timeout=self._settings.server.silence_s
        )
        try:
            with connection.cursor() as cursor:
                cursor.execute(statement)
                return [tuple(row) for row in cursor.fetchall()]
        finally:
            connection.close()


def connected(settings: MysqlTarget) -> Any:
    """A connection in the session state that writing needs. Raises the driver's errors, and
    ``ConnectionFailed``."""
    return settings.connected(settings.session(), LoadingConnection, local_infile=settings.local_files)
