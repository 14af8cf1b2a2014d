"""A second server that follows a scenario's source: to be promoted, or to be mistaken for the source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.faults.session import execute, query
from scenarios.world import Replica, Server

_SAME_TIMEOUT_S = 60.0
_SYNCHRONISED_TIMEOUT_S = 90.0
_POLL_S = 0.05
_SYNCHRONISE_EVERY_S = 0.3
SERVER_ID = 102
"""A replica may not call itself what its primary does."""
_FOLLOW = {
    "mysql": (
        "CHANGE REPLICATION SOURCE TO SOURCE_HOST = '{0}', SOURCE_PORT = {1}, SOURCE_USER = '{2}',"
        " SOURCE_AUTO_POSITION = 1, GET_SOURCE_PUBLIC_KEY = 1"
    ),
    "mariadb": (
        "CHANGE MASTER TO MASTER_HOST = '{0}', MASTER_PORT = {1}, MASTER_USER = '{2}', MASTER_USE_GTID = slave_pos"
    ),
}
_END = {"mysql": "@@GLOBAL.gtid_executed", "mariadb": "@@GLOBAL.gtid_binlog_pos"}
_HAS = {"mysql": "GTID_SUBSET(%s, @@GLOBAL.gtid_executed)", "mariadb": "MASTER_GTID_WAIT(%s, 0) = 0"}


def replica_settings(kind: str) -> dict[str, str]:
    """Returns the settings with which a replica's own log can be read on from when it is promoted."""
    if kind == "postgresql":
        # By the server's own worker: what a client asks for keeps no copy that doesn't last at once.
        return {"hot_standby_feedback": "on", "sync_replication_slots": "on"}
    return {"server-id": str(SERVER_ID), **({"log-slave-updates": ""} if kind == "mariadb" else {})}


def follow(stack: ExitStack, folder: Path, primary: Database, server: Server) -> Replica:
    """Starts a replica of a server that has its database and no table yet; both have no password.

    Raises ``MigratorError`` for what can't be started, or doesn't catch up.
    """
    settings = replica_settings(primary.kind)
    if isinstance(server, EmbeddedPostgres):
        standby = stack.enter_context(EmbeddedPostgres(folder, settings=settings, standby_of=server))
        return _Standby(primary, replace(primary, host=standby.host, port=standby.port), standby)
    server_class = EmbeddedMySQL if primary.kind == "mysql" else EmbeddedMariaDB
    other = stack.enter_context(server_class(folder, settings=settings))
    login = _FOLLOW[primary.kind].format(primary.host, primary.port, primary.user)
    # Not in the database to come: it is replicated as well.
    own = replace(primary, host=other.host, port=other.port)
    execute(replace(own, database="mysql"), [login, "START REPLICA"])
    found = _BinlogReplica(primary, own, other)
    found.await_same()
    return found


class _Standby:
    """A ``Replica``: a standby of PostgreSQL, version 17 or later (before, no slot outlives a failover)."""

    def __init__(self, primary: Database, database: Database, server: EmbeddedPostgres):
        self.primary = primary
        self.database = database
        self.server = server

    def hand_over(self) -> None:
        """See ``Replica``. A slot's copy lasts once the slot stands where the standby's log still is."""
        slots = "SELECT count(*) FROM pg_replication_slots WHERE failover"

        def lasting() -> bool:
            # The snapshot comes last: a transaction behind it would leave the slot behind what the standby
            # reserves.
            moved = "SELECT pg_logical_emit_message(true, 'scenario', '')"
            execute(self.primary, [moved, "SELECT pg_log_standby_snapshot()"])
            threading.Event().wait(_SYNCHRONISE_EVERY_S)
            copies = query(self.database, f"{slots} AND synced AND NOT temporary")
            return copies == query(self.primary, slots)

        _await(lasting, "the standby has lasting copies of all slots", _SYNCHRONISED_TIMEOUT_S)

    def await_same(self) -> None:
        """See ``Replica``."""
        ((end,),) = query(self.primary, "SELECT pg_current_wal_flush_lsn()::text")
        _await(
            lambda: query(self.database, "SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [end]) == [(True,)],
            "the standby has all that its primary has",
        )

    def promote(self) -> None:
        """See ``Replica``."""
        self.server.promote()

    def pause(self) -> None:
        """See ``Replica``."""
        execute(self.database, ["SELECT pg_wal_replay_pause()"])

    def resume(self) -> None:
        """See ``Replica``."""
        execute(self.database, ["SELECT pg_wal_replay_resume()"])

    def lose_log(self, slot: str, written: Callable[[], object]) -> str:
        """See ``Replica``. The copy of the pipeline's slot is dropped, as if nobody had made one."""
        dropped = query(
            self.database,
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s",
            [slot],
        )
        if not dropped:
            raise MigratorError("the promoted standby has no such slot", where=slot)
        written()
        return f"without the slot {slot}"


class _BinlogReplica:
    """A ``Replica``: of MySQL or MariaDB, with a binary log of its own that has all that it applied."""

    def __init__(self, primary: Database, database: Database, server: Server):
        self.primary = primary
        self.database = database
        self.server = server

    def hand_over(self) -> None:
        """See ``Replica``. Its log holds by itself what it applied."""

    def await_same(self) -> None:
        """See ``Replica``."""
        # Neither server needs the database for it, which may be still to come.
        ((end,),) = query(replace(self.primary, database="mysql"), f"SELECT {_END[self.primary.kind]}")
        own = replace(self.database, database="mysql")
        has = f"SELECT {_HAS[self.primary.kind]}"
        _await(lambda: query(own, has, [end]) == [(1,)], "the replica has all that its primary has")

    def promote(self) -> None:
        """See ``Replica``."""
        execute(self.database, ["STOP REPLICA", "RESET REPLICA ALL"])

    def pause(self) -> None:
        """See ``Replica``."""
        execute(self.database, ["STOP REPLICA SQL_THREAD"])

    def resume(self) -> None:
        """See ``Replica``."""
        execute(self.database, ["START REPLICA SQL_THREAD"])

    def lose_log(self, slot: str, written: Callable[[], object]) -> str:
        """See ``Replica``. What was applied before the promotion is purged, once everybody else has read it."""
        first = str(query(self.database, "SHOW BINARY LOGS")[0][0])
        written()
        if query(self.database, "SHOW GLOBAL VARIABLES LIKE 'slave_connections_needed_for_purge'"):
            execute(self.database, ["SET GLOBAL slave_connections_needed_for_purge = 0"])
        reading = "SELECT count(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'"
        # One that is connected keeps its file until it has read it.
        _await(lambda: query(self.database, reading) != [(0,)], "the recorder reads the replica's log")

        def purged() -> bool:
            execute(self.database, ["FLUSH BINARY LOGS"])
            newest = query(self.database, "SHOW BINARY LOGS")[-1][0]
            execute(self.database, [f"PURGE BINARY LOGS TO '{newest}'"])
            return first not in {row[0] for row in query(self.database, "SHOW BINARY LOGS")}

        _await(purged, f"the promoted replica gives up {first}")
        return f"without {first} of its log"


def _await(condition: Callable[[], bool], what: str, timeout_s: float = _SAME_TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise MigratorError(f"not within {timeout_s:g} s: {what}", where="replica")
        threading.Event().wait(_POLL_S)
