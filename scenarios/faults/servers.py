"""Faults of the database servers: killed, restarted, full, locked, with another password."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable
from contextlib import suppress

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.database import Connection, Database
from scenarios.faults.fault import Fault, Options, impossible, proxy_of, side_of
from scenarios.faults.logins import AskForPassword
from scenarios.faults.processes import await_true
from scenarios.faults.session import SERVER_ERRORS, HeldTransaction, query, run
from scenarios.world import World

_LOCK_WAIT_S = 3.0
_END_TIMEOUT_S = 60.0
_MOST_SESSIONS = 600
_TAKE_TIMEOUT_S = 2.0
_FULL = ("too many", "connection slots")
_RESTART_TIMEOUT_S = 120.0


class ServerFault(Fault):
    """A fault of one server. Option ``side``."""

    def __init__(self, options: Options):
        super().__init__(options)
        self.side = options.side()
        self._effect = ""

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect


class KillServer(ServerFault):
    """SIGKILL to all of a server's processes. Healing starts it again: it recovers what was durable."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        server = side_of(world, self.side).server
        pid = server.pid
        server.kill()
        self._effect = f"process {pid} of the {self.side} killed"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._effect:
            side_of(world, self.side).server.start()


class RestartServer(ServerFault):
    """A clean stop and start, in a thread of its own: the stop may wait for a session of a process held at a point.

    Healing waits until the server is there again.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._thread: threading.Thread | None = None
        self._error: MigratorError | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        server = side_of(world, self.side).server
        before = server.pid

        def restart() -> None:
            try:
                server.stop()
                server.start()
                self._effect = f"the {self.side} restarted: process {before}, now {server.pid}"
            except MigratorError as error:
                self._error = error

        self._thread = threading.Thread(target=restart, name="restart", daemon=True)
        self._thread.start()

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._thread is not None:
            self._thread.join(_RESTART_TIMEOUT_S)
            if self._thread.is_alive():
                raise MigratorError(f"the {self.side} doesn't come back", where=self.name)
        if self._error is not None:
            raise self._error


class LimitConnections(ServerFault):
    """Another client takes every free connection, also those of the pipeline, whose sessions are cut once."""

    def __init__(self, options: Options):
        super().__init__(options)
        self.needs_proxy = self.side
        self._held: list[Connection] = []
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        proxy = proxy_of(world, self.side, self.name)
        database = side_of(world, self.side).direct
        refused = self._take_all(database)
        cut = proxy.cut()
        self._thread = threading.Thread(target=self._keep_taking, args=(database,), daemon=True)
        before = len(self._held)
        self._thread.start()
        with suppress(MigratorError):  # the pipeline was faster with some of them: it keeps those
            await_true(lambda: len(self._held) >= before + cut, "the cut ones are taken", _TAKE_TIMEOUT_S)
        self._effect = f"{len(self._held)} connections taken, {cut} of the pipeline cut: {refused}"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        self.close()

    def close(self) -> None:
        """See ``Fault.close``."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join(_END_TIMEOUT_S)
        while self._held:
            with suppress(*SERVER_ERRORS):  # the server may have ended it
                self._held.pop().close()

    def _take_all(self, database: Database) -> str:
        """Takes connections until the server refuses one; returns its words."""
        while len(self._held) < _MOST_SESSIONS:
            try:
                self._held.append(database.connect(autocommit=True))
            except ConnectionFailed as error:
                if not any(words in error.cause.lower() for words in _FULL):
                    raise
                return error.cause
        self.close()
        raise impossible(
            self.name,
            f"the {self.side} gave {_MOST_SESSIONS} connections and has more",
            "set max_connections in the scenario's `server`",
        )

    def _keep_taking(self, database: Database) -> None:
        while not self._ending.wait(0.01):
            with suppress(MigratorError):  # another fault is stopping the server
                self._take_all(database)


class HoldLock(ServerFault):
    """A competing session runs ``sql`` in a transaction and keeps its locks for ``seconds`` (0: until healed)."""

    commit = False

    def __init__(self, options: Options):
        super().__init__(options)
        self._statements = options.texts("sql")
        self._seconds = options.number("seconds", 0.0)
        self._transaction: HeldTransaction | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        direct = side_of(world, self.side).direct
        self._transaction = HeldTransaction(direct, self._statements, self._seconds, self.commit)
        self._transaction.start(_LOCK_WAIT_S)

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        if self._transaction is not None:
            self._transaction.end(_END_TIMEOUT_S)

    def effect(self) -> str:
        """See ``Fault.effect``."""
        held = self._transaction is not None and self._transaction.open.is_set()
        return f"a transaction held open on the {self.side}" if held else ""

    def close(self) -> None:
        """See ``Fault.close``."""
        if self._transaction is not None:
            with suppress(MigratorError):  # reported by fire or heal already; here it only has to be over
                self._transaction.end(_END_TIMEOUT_S)


class OpenTransaction(HoldLock):
    """A transaction that runs ``sql``, stays open ``seconds`` (0: until healed) and then ends.

    Option ``end``: ``commit`` (the default) or ``rollback``.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self.commit = options.choice("end", ("commit", "rollback"), "commit") == "commit"


class RotatePassword(ServerFault):
    """The pipeline's user gets another password, and its sessions are ended. Healing brings the old one back.

    The pipeline must log in as a user of its own: everybody else goes on. Where the server trusts that user without
    a password (an embedded PostgreSQL does), it is made to ask.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._undo: Callable[[], None] | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        side = side_of(world, self.side)
        if side.via.user == side.direct.user:
            raise impossible(
                self.name,
                f"the pipeline logs in as {side.via.user!r}, as the harness itself does",
                "give the pipeline a user of its own on this side",
            )
        login = AskForPassword(side.direct, side.via)
        self._undo = login.undo
        login.change_to(secrets.token_hex(8))
        ended = end_sessions(side.direct, user_sessions(side.direct, side.via.user))
        self._effect = f"{side.via.user} has another password, {ended} sessions ended"

    def heal(self, world: World) -> None:
        """See ``Fault.heal``."""
        undo, self._undo = self._undo, None
        if undo is not None:
            undo()


class Deadlock(ServerFault):
    """A competing session and the pipeline's target transaction wait for each other, and the pipeline loses.

    Place it at ``target.begun``: by then the transaction holds the ledger's row, and no row of a table. The
    competing session locks every table of the target's schema, then asks for the ledger.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._transaction: HeldTransaction | None = None

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        direct = side_of(world, self.side).direct
        if direct.kind != "postgresql" or self.side != "target":
            raise impossible(self.name, "it is made for the ledger of a PostgreSQL target")
        tables = query(
            direct,
            "SELECT format('%%I.%%I', schemaname, tablename) FROM pg_tables WHERE schemaname = %s",
            [direct.schema],
        )
        if not tables:
            raise impossible(self.name, f"the schema {direct.schema} has no tables")
        self._transaction = HeldTransaction(
            direct,
            [
                "SET LOCAL deadlock_timeout = '10min'",  # so that it is the pipeline that finds out, and gives way
                "SET LOCAL application_name = 'deadlock'",
                f"LOCK TABLE {', '.join(name for (name,) in tables)} IN EXCLUSIVE MODE",
                "SELECT 1 FROM migrator.ledger FOR UPDATE",
            ],
            0.001,
            commit=False,
        )
        before = _deadlocks(direct)
        self._transaction.start(0.0)
        await_true(
            lambda: _waits_for_ledger(direct), "the competing session waits for the ledger's row", 10.0
        )
        self._effect = "a competing session holds every table and waits for the ledger"
        self._before = before

    def heal(self, world: World) -> None:
        """Waits for its end. Raises ``MigratorError`` when the server found no deadlock."""
        if self._transaction is not None:
            direct = side_of(world, self.side).direct
            self._transaction.end(_END_TIMEOUT_S)
            await_true(lambda: _deadlocks(direct) > self._before, "the server counts a deadlock")

    def close(self) -> None:
        """See ``Fault.close``."""
        if self._transaction is not None:
            with suppress(MigratorError):  # reported by heal; here it only has to be over
                self._transaction.end(_END_TIMEOUT_S)


def _deadlocks(database: Database) -> int:
    ((count,),) = query(database, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
    return int(count)


def _waits_for_ledger(database: Database) -> bool:
    waiting = query(
        database,
        "SELECT 1 FROM pg_stat_activity WHERE application_name = 'deadlock' AND wait_event_type = 'Lock'"
        " AND query LIKE '%ledger%'",
    )
    return bool(waiting)


def user_sessions(database: Database, user: str) -> list[int]:
    """A user's sessions."""
    if database.kind == "postgresql":
        found = query(database, "SELECT pid, usename FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    else:
        found = query(database, "SELECT id, user FROM information_schema.processlist")
    return [int(session) for session, name in found if name == user]


def end_sessions(database: Database, sessions: list[int]) -> int:
    """Ends sessions by their numbers; returns how many there were."""
    ended = 0
    connection = database.connect(autocommit=True)
    try:
        for session in sessions:
            statement = f"SELECT pg_terminate_backend({session})"
            with suppress(MigratorError):  # it ended by itself meanwhile
                run(connection, statement if database.kind == "postgresql" else f"KILL {session:d}")
                ended += 1
    finally:
        connection.close()
    return ended


FAULTS: dict[str, type[Fault]] = {
    "kill_server": KillServer,
    "restart_server": RestartServer,
    "limit_connections": LimitConnections,
    "hold_lock": HoldLock,
    "deadlock": Deadlock,
    "open_transaction": OpenTransaction,
    "rotate_password": RotatePassword,
}
