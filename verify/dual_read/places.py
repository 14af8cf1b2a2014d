"""Read views of the old database, each opened here between two places in its log.

Everything up to ``low`` is in the view; nothing after ``high`` is. Why that holds differs by engine, so each has a
function of its own. They run on a driver's connection in autocommit mode and leave the view open on it.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from migrator.config.engines import EXAMPLE
from migrator.model.server import Server
from verify.readers.mysql.mariadb_source import MariaDBSource
from verify.readers.mysql.mysql_source import MySQLSource
from verify.readers.mysql.session import rows_of
from verify.readers.pending import gtid_state
from verify.readers.postgres.change_tables import snapshot_place
from verify.readers.postgres.source import place_in
from verify.readers.snapshot import LogPlace
from verify.settings import ServerSettings

_HELD = (
    "SELECT transactionid::text FROM pg_locks"
    " WHERE locktype = 'transactionid' AND mode = 'ExclusiveLock' AND granted"
)
_VISIBLE_S = 2.0
_NOWHERE = ServerSettings(Server(kind=EXAMPLE, host="", port=0, database="", user=""))
"""Settings that no reader uses: each gets a connection that is open already."""


@dataclass(frozen=True, slots=True)
class View:
    """The two places in the log around a read view. ``low`` is None when nobody can say what the view surely
    contains."""

    low: LogPlace | None
    high: LogPlace


OpenView = Callable[[Any], View]


def postgres_view(connection: Any) -> View:
    """PostgreSQL, captured from its log.

    A commit is in the log a moment before it is visible. No pipeline is faster than that moment, except where
    commits wait for a synchronous standby. There, transactions under way must have ended before the view is opened.
    """
    with own_words(connection):
        certain = connection.execute("SHOW synchronous_standby_names").fetchone() == ("",) or ended(
            connection
        )
        low = place_in(connection)
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    with own_words(connection, in_transaction=True):  # by its first query the view is there
        return View(low if certain else None, place_in(connection))


@contextmanager
def own_words(connection: Any, in_transaction: bool = False) -> Iterator[None]:
    """Makes names and operators in our own queries mean what they mean in pg_catalog; the application's queries keep
    their ``search_path``.

    ``in_transaction``: whether one is open. Then it gets its setting, and what it had comes back with its end.
    """
    [[path]] = connection.execute("SHOW search_path").fetchall()
    _set_path(connection, "pg_catalog", in_transaction)
    try:
        yield
    except BaseException:
        if not in_transaction and not connection.closed:
            _set_path(connection, path, False)
        raise
    _set_path(connection, path, in_transaction)


def _set_path(connection: Any, path: str, local: bool) -> None:
    connection.execute("SELECT pg_catalog.set_config('search_path', %s, %s)", (path, local))


def ended(connection: Any, wait_s: float = _VISIBLE_S) -> bool:
    """Returns whether all transactions now under way end within ``wait_s`` seconds. A transaction's locks go after
    its changes became visible."""
    held = {number for (number,) in connection.execute(_HELD).fetchall()}
    deadline = time.monotonic() + wait_s
    while held := held & {number for (number,) in connection.execute(_HELD).fetchall()}:
        if time.monotonic() >= deadline:
            return False
        pause(0.02)
    return True


def change_table_view(connection: Any) -> View:
    """PostgreSQL, captured by triggers: the place is the view's own snapshot."""
    connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    with own_words(connection, in_transaction=True):
        place = snapshot_place(connection)
    return View(place, place)


def mysql_view(connection: Any) -> View:
    """MySQL: a GTID counts as executed once its transaction is visible, as owned before that."""
    reader = MySQLSource(_NOWHERE)
    low = reader.place_before(connection)
    _begin(connection)
    return View(low, reader.place_after(connection))


def mariadb_view(connection: Any) -> View:
    """MariaDB: a consistent snapshot knows its own place in the log; the log's end may lie before what is
    visible."""
    _begin(connection)
    found = dict(rows_of(connection, "SHOW STATUS LIKE 'binlog_snapshot_%'"))
    folded = {str(name).lower(): str(value) for name, value in found.items()}
    place = (folded.get("binlog_snapshot_file", ""), folded.get("binlog_snapshot_position", "0"))
    gtid = rows_of(connection, f"SELECT BINLOG_GTID_POS(%s, {int(place[1])})", (place[0],))[0][0]
    state = gtid_state(str(gtid or ""))
    low = LogPlace(sum(state.values()), str(gtid)) if state else None
    return View(low, MariaDBSource(_NOWHERE).place_after(connection))


def _begin(connection: Any) -> None:
    rows_of(connection, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    rows_of(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def pause(at_most_s: float) -> None:
    """Waits a random moment, so that no writer's rhythm is followed by accident."""
    threading.Event().wait(random.uniform(0, at_most_s))
