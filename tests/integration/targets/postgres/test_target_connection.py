"""Cut connections, unknown outcomes of COMMIT, zombies and frozen leaders."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psycopg
import pyarrow as pa
import pytest

from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.errors import ConnectionFailed, FencedError, TargetError
from tests.integration.target_bench import bench, ints, settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

EXECUTE = b"E\x00\x00\x00\x09\x00"
TABLE = "CREATE TABLE t (id int PRIMARY KEY)"


class CommitCutter:
    """A TCP proxy that resets the connection around the next COMMIT once it is told to.

    The driver has the statement parsed first, then sends it again with Execute: ``before`` cuts instead of
    forwarding the latter, ``after`` forwards it, waits for the server's answer, and keeps it.
    """

    def __init__(self, host: str, port: int):
        self._upstream = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cut_at = ""
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                threading.Thread(target=self._serve, args=(client, server), daemon=True).start()

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        keep = threading.Event()
        answered = threading.Event()
        threading.Thread(target=self._back, args=(client, server, keep, answered), daemon=True).start()
        with suppress(OSError):
            while data := client.recv(65536):
                if self.cut_at and b"COMMIT\x00" in data and EXECUTE in data:
                    if self.cut_at == "after":
                        keep.set()
                        answered.clear()
                        server.sendall(data)
                        answered.wait(30)
                    self.cut_at = ""
                    self.cuts += 1
                    break
                server.sendall(data)
        for end in (client, server):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()

    @staticmethod
    def _back(
        client: socket.socket, server: socket.socket, keep: threading.Event, answered: threading.Event
    ) -> None:
        with suppress(OSError):
            while data := server.recv(65536):
                if keep.is_set():
                    answered.set()
                else:
                    client.sendall(data)


@contextmanager
def cutter(database: Database) -> Iterator[CommitCutter]:
    """A proxy in front of the database."""
    made = CommitCutter(database.host, database.port)
    try:
        yield made
    finally:
        made.close()


def row(number: int) -> pa.Table:
    """One row."""
    return pa.table(ints("id", number))


def test_a_commit_whose_answer_is_lost_is_looked_up(new_pg: Database) -> None:
    with cutter(new_pg) as proxy, bench(new_pg, TABLE, port=proxy.port, tls="disable") as it:
        it.apply(it.part("t", after=row(1)))
        part = it.part("t", after=row(2))
        proxy.cut_at = "after"
        it.apply(part)  # no error: the ledger says that it happened
        assert proxy.cuts == 1
        assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]
        assert it.ledger_segment() == 2
        it.apply(it.part("t", after=row(3)))
        assert it.ledger_segment() == 3


def test_a_commit_that_never_arrived_is_reported_and_can_be_tried_again(new_pg: Database) -> None:
    with cutter(new_pg) as proxy, bench(new_pg, TABLE, port=proxy.port, tls="disable") as it:
        part = it.part("t", after=row(1))
        proxy.cut_at = "before"
        with pytest.raises(ConnectionFailed) as raised:
            it.apply(part)
        assert raised.value.retryable
        assert proxy.cuts == 1
        assert new_pg.query("SELECT id FROM t") == []
        it.apply(part)
        assert new_pg.query("SELECT id FROM t") == [(1,)]


def test_a_terminated_session_is_reported_and_the_next_try_works(new_pg: Database) -> None:
    with bench(new_pg, TABLE) as it:
        it.apply(it.part("t", after=row(1)))
        part = it.part("t", after=row(2))
        new_pg.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name LIKE 'migrator%'"
        )
        with pytest.raises(ConnectionFailed) as raised:
            it.apply(part)
        assert raised.value.retryable
        it.apply(part)
        assert new_pg.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_session_that_dies_inside_the_merge_leaves_nothing_half(new_pg: Database) -> None:
    """A trigger that ends its own session while the batch is being merged."""
    trigger = (
        TABLE,
        "CREATE TABLE u (id int PRIMARY KEY)",
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN IF NEW.id = 13 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION die()",
    )
    with bench(new_pg, *trigger) as it:
        with pytest.raises(ConnectionFailed):
            it.apply(it.part("u", after=row(1)), it.part("t", after=row(13)))
        assert new_pg.query("SELECT id FROM u UNION ALL SELECT id FROM t") == []
        assert it.ledger_segment() == 0
        it.apply(it.part("u", after=row(1)), it.part("t", after=row(14)))
        assert it.ledger_segment() == 1


def test_a_try_after_a_cut_is_fenced_when_another_leader_took_over(new_pg: Database) -> None:
    with cutter(new_pg) as proxy, bench(new_pg, TABLE, port=proxy.port, tls="disable") as it:
        part = it.part("t", after=row(1))
        proxy.cut_at = "before"
        with pytest.raises(ConnectionFailed):
            it.apply(part)
        PostgresTargetWriter(settings_of(new_pg)).open(2)
        with pytest.raises(FencedError, match="epoch 2"):
            it.apply(part)
        assert new_pg.query("SELECT id FROM t") == []


def test_a_batch_that_is_there_does_not_hide_that_another_leads(new_pg: Database) -> None:
    """The ledger may hold it because the new leader applied it; whoever was replaced must not go on either way."""

    def replaced(point: str) -> None:
        if point == "target.unknown":
            PostgresTargetWriter(settings_of(new_pg)).open(2)

    with cutter(new_pg) as proxy, bench(new_pg, TABLE, port=proxy.port, tls="disable") as it:
        it.target._step = replaced
        proxy.cut_at = "after"
        with pytest.raises(FencedError, match="epoch 2"):
            it.apply(it.part("t", after=row(1)))
        assert new_pg.query("SELECT id FROM t") == [(1,)]


def test_a_frozen_leader_holding_the_ledger_is_ended(new_pg: Database) -> None:
    with bench(new_pg, TABLE) as it:
        frozen = psycopg.connect(it.settings.conninfo())
        frozen.execute("SELECT * FROM migrator.ledger FOR UPDATE")
        frozen.execute("INSERT INTO public.t VALUES (666)")
        leader = PostgresTargetWriter(settings_of(new_pg, lock_wait_s=1))
        assert leader.open(2).epoch == 2
        with pytest.raises(psycopg.OperationalError):
            frozen.execute("SELECT 1")
        assert new_pg.query("SELECT id FROM t") == []
        leader.close()
        with pytest.raises(FencedError):
            it.apply(it.part("t", after=row(1)))


def test_a_zombie_that_opens_does_not_end_the_leader(new_pg: Database) -> None:
    with bench(new_pg, TABLE) as it:
        it.target.open(5)
        with psycopg.connect(it.settings.conninfo()) as leading:
            leading.execute("SELECT * FROM migrator.ledger FOR UPDATE")
            with pytest.raises(FencedError):
                PostgresTargetWriter(settings_of(new_pg, lock_wait_s=1)).open(4)
            assert leading.execute("SELECT 1").fetchone() == (1,)


def test_a_lock_held_by_somebody_else_is_retryable(new_pg: Database) -> None:
    with bench(new_pg, TABLE, lock_wait_s=1) as it:
        part = it.part("t", after=row(1))
        with psycopg.connect(new_pg.dsn) as other:
            other.execute("LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(TargetError) as raised:
                it.apply(part)
        assert raised.value.retryable
        it.apply(part)
        assert new_pg.query("SELECT id FROM t") == [(1,)]


def test_an_unreachable_server_is_named_without_the_password(new_pg: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    settings = settings_of(new_pg, port=port, password="s3cret")
    for attempt in (
        lambda: PostgresTargetWriter(settings).open(1),
        lambda: PostgresTargetWriter(settings).preflight(["t"]),
    ):
        with pytest.raises(ConnectionFailed) as raised:
            attempt()
        assert raised.value.retryable
        assert str(port) in str(raised.value)
        assert "s3cret" not in str(raised.value) + repr(settings)


def test_a_ledger_of_a_newer_version_is_refused_by_name(new_pg: Database) -> None:
    with bench(new_pg, TABLE) as it:
        it.apply()
        new_pg.execute("UPDATE migrator.ledger SET format = 99")
        with pytest.raises(TargetError, match="format 99"):
            PostgresTargetWriter(it.settings).open(2)


def test_a_ledger_without_our_row_or_epoch_is_an_error(new_pg: Database) -> None:
    with bench(new_pg, TABLE) as it:
        part = it.part("t", after=row(1))
        it.target.open(3)
        new_pg.execute("UPDATE migrator.ledger SET epoch = 2")
        with pytest.raises(TargetError, match="epoch fell to 2"):
            it.apply(part)
        new_pg.execute("DELETE FROM migrator.ledger")
        with pytest.raises(TargetError, match="no row for migration bench"):
            it.apply(part)
        assert new_pg.query("SELECT id FROM t") == []
