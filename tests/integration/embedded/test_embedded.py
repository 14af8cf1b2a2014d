"""The throw-away servers: they start, survive a crash with their data, and never outlive their owner."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from kazoo.client import KazooClient

from migrator.adapters.sources.mariadb.preflight import MINIMUM_VERSION
from migrator.embedded import java as java_module
from migrator.embedded import mariadb as mariadb_module
from migrator.embedded import postgres as postgres_module
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.java import java_home, java_version
from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import Program, ServerProcess, make_server_directory, scratch_directory
from migrator.embedded.zookeeper import EmbeddedZooKeeper
from migrator.errors import MigratorError

pytestmark = pytest.mark.integration
DEADLINE_S = 30.0


@pytest.fixture
def scratch() -> Iterator[Path]:
    with scratch_directory("migrator-embedded-test-") as directory:
        yield directory


def gone(pid: int) -> bool:
    """Whether the process has ended (a zombie has)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def await_true(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {DEADLINE_S} s: {what}"
        threading.Event().wait(0.02)


def needed(programs: Callable[[], object]) -> None:
    """What Debian's mirror must be there for is skipped without one."""
    try:
        programs()
    except PackagesUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("version", [15, 16, 17, 18])
def test_postgres_keeps_committed_data_over_a_crash_and_a_restart(scratch: Path, version: int) -> None:
    needed(lambda: postgres_module.postgres_installation(version))
    with EmbeddedPostgres(scratch / "pg", version=version) as server:
        port, pid = server.port, server.pid
        server.create_database('odd "name"')
        with psycopg.connect(server.dsn('odd "name"'), autocommit=True) as connection:
            assert connection.info.server_version // 10000 == version
            assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
            assert connection.execute("SHOW unix_socket_directories").fetchone() == ("",)
            connection.execute("CREATE TABLE t (i int)")
            connection.execute("INSERT INTO t VALUES (1)")
            server.kill()
            assert gone(pid)
            assert not server.running
            with pytest.raises(psycopg.OperationalError):
                connection.execute("SELECT 1")
        server.start()
        assert server.port == port
        with psycopg.connect(server.dsn('odd "name"'), autocommit=True) as connection:
            assert connection.execute("SELECT i FROM t").fetchall() == [(1,)]
            connection.execute("INSERT INTO t VALUES (2)")
        server.restart()
        with psycopg.connect(server.dsn('odd "name"')) as connection:
            assert connection.execute("SELECT i FROM t ORDER BY i").fetchall() == [(1,), (2,)]
        pid = server.pid
    assert gone(pid)
    log = (scratch / "pg" / "postgres.log").read_text()
    assert "database system was interrupted" in log  # the kill really was a crash
    assert log.count("database system is shut down") == 2  # and the two stops were clean


def test_postgres_takes_settings_over_the_defaults(scratch: Path) -> None:
    settings = {"wal_level": "replica", "work_mem": "5MB"}
    with (
        EmbeddedPostgres(scratch / "pg", settings=settings) as server,
        psycopg.connect(server.dsn()) as connection,
    ):
        assert connection.execute("SHOW wal_level").fetchone() == ("replica",)
        assert connection.execute("SHOW work_mem").fetchone() == ("5MB",)
        assert connection.execute("SHOW fsync").fetchone() == ("on",)


def test_postgres_with_passwords_refuses_a_wrong_one(scratch: Path) -> None:
    with EmbeddedPostgres(scratch / "pg", auth="scram-sha-256", password="s3cret 'word") as server:
        with psycopg.connect(server.dsn()) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(server.dsn(password="wrong"))
    assert not list((scratch / "pg").glob("*password*"))


def test_postgres_drops_a_database_that_has_sessions_and_slots(scratch: Path) -> None:
    with EmbeddedPostgres(scratch / "pg") as server:
        server.create_database("crowded")
        with psycopg.connect(server.dsn("crowded"), autocommit=True) as session:
            session.execute("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
            server.drop_database("crowded")
        with psycopg.connect(server.dsn()) as connection:
            names = connection.execute("SELECT datname FROM pg_database").fetchall()
            assert ("crowded",) not in names
            assert connection.execute("SELECT count(*) FROM pg_replication_slots").fetchone() == (0,)


def test_postgres_runs_from_a_wheel_that_its_user_cannot_reach(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout under /root: the server's user may not enter it, so the programs are copied."""
    monkeypatch.setattr(postgres_module, "is_reachable", lambda path, user: False)
    with EmbeddedPostgres(scratch / "pg") as server:
        program = os.readlink(f"/proc/{server.pid}/exe") if os.geteuid() == 0 else None
        assert program is None or program.startswith(str(scratch.resolve()))


@pytest.mark.parametrize("version", [None, "11.8"])
def test_mariadb_keeps_committed_data_over_a_crash_and_a_restart(scratch: Path, version: str | None) -> None:
    needed(lambda: mariadb_module.mariadb_programs(version))
    with EmbeddedMariaDB(scratch / "maria", version=version) as server:
        port, pid = server.port, server.pid
        server.create_database("odd `name`")
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@binlog_format, @@binlog_row_image, @@binlog_row_metadata, @@log_bin")
            assert cursor.fetchone() == ("ROW", "FULL", "FULL", 1)
            cursor.execute("SELECT version()")
            assert version is None or str((cursor.fetchone() or "")[0]).startswith(version)
            cursor.execute(
                "SET lc_messages = 'de_DE', lc_time_names = 'de_DE'"
            )  # its files of languages are found
            cursor.execute("CREATE TABLE t (i int)")
            cursor.execute("INSERT INTO t VALUES (1)")
        server.kill()
        assert gone(pid)
        server.start()
        assert server.port == port
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT i FROM t")
            assert cursor.fetchall() == ((1,),)
        server.restart()
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT i FROM t")
            assert cursor.fetchall() == ((1,),)
        server.drop_database("odd `name`")
        pid = server.pid
    assert gone(pid)
    log = (scratch / "maria" / "mariadb.log").read_text()
    assert "Starting crash recovery" in log
    assert log.count("mariadbd: Shutdown complete") == 2


def test_a_mariadb_that_starts_leaves_the_temporary_tables_of_another_alone(scratch: Path) -> None:
    with EmbeddedMariaDB(scratch / "first") as first, first.connect() as connection:
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMPORARY TABLE mysql.kept (v int) ENGINE=MyISAM")
            cursor.execute("INSERT INTO mysql.kept VALUES (1)")
        with EmbeddedMariaDB(scratch / "second"), connection.cursor() as cursor:
            cursor.execute("FLUSH TABLES")
            cursor.execute("SELECT v FROM mysql.kept")
            assert cursor.fetchall() == ((1,),)
            cursor.execute("DROP TEMPORARY TABLE mysql.kept")


def test_mariadb_takes_settings_over_the_defaults(scratch: Path) -> None:
    settings = {"server-id": "77", "sync-binlog": "1"}
    with (
        EmbeddedMariaDB(scratch / "maria", settings=settings) as server,
        server.connect() as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT @@server_id, @@sync_binlog, @@log_bin")
        assert cursor.fetchone() == (77, 1, 1)


def test_zookeeper_keeps_its_data_over_a_crash(scratch: Path) -> None:
    with EmbeddedZooKeeper(scratch / "zk", java_home=java_home()) as server:
        client = KazooClient(hosts=server.hosts)
        client.start(timeout=DEADLINE_S)
        client.create("/kept", b"value")
        server.kill()
        server.start()
        await_true(lambda: client.connected, "the client is connected again")
        assert client.get("/kept")[0] == b"value"
        client.stop()
        client.close()
    assert not server.running


def test_the_java_that_was_found_runs(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    assert (java_version(java_home()) or 0) >= 17
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "/usr/sbin")  # no Java here: the wheel's turn
    monkeypatch.setenv("XDG_CACHE_HOME", str(scratch))
    home = java_home()
    assert home.is_relative_to(scratch)
    # Spark's launcher passes this argument; the wheel's own bin/java refuses it.
    arguments = [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"]
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    assert subprocess.run(arguments, capture_output=True, check=False).returncode == 0


OWNER = """
import sys, threading
from pathlib import Path
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.mariadb import EmbeddedMariaDB
server = {kind}(Path(sys.argv[1]))
thread = threading.Thread(target=server.start)  # ends at once: the server must not end with the thread
thread.start()
thread.join()
print(server.pid, flush=True)
sys.stdin.read()
"""


def start_owner(kind: str, directory: Path) -> tuple[subprocess.Popen[str], int]:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER.format(kind=kind), str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    )
    assert owner.stdout is not None
    return owner, int(owner.stdout.readline())


@pytest.mark.parametrize("kind", ["EmbeddedPostgres", "EmbeddedMariaDB"])
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_server_ends_when_its_owner_is_killed(scratch: Path, kind: str, end: signal.Signals) -> None:
    owner, pid = start_owner(kind, scratch / "server")
    assert not gone(pid)
    owner.send_signal(end)
    owner.communicate()
    await_true(lambda: gone(pid), "the server ended after its owner")


def test_a_server_ends_when_its_supervisor_is_killed(scratch: Path) -> None:
    with EmbeddedPostgres(scratch / "pg") as server:
        supervisor = int(Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[1])
        pid = server.pid
        os.kill(supervisor, signal.SIGKILL)
        await_true(lambda: gone(pid), "the server ended after its supervisor")


def test_a_server_that_exits_while_starting_is_an_error_with_its_log(scratch: Path) -> None:
    server = EmbeddedPostgres(scratch / "pg", settings={"shared_buffers": "nonsense"})
    with pytest.raises(MigratorError, match="exited while starting") as caught:
        server.start()
    assert "shared_buffers" in caught.value.cause
    assert not server.running


def test_a_server_that_is_never_ready_is_stopped_at_the_deadline(scratch: Path) -> None:
    directory = make_server_directory(scratch / "slow", None)
    server = ServerProcess(
        "the slow server",
        Program(["tail", "-f", "/dev/null"], user=None, directory=directory, log=directory / "log"),
        ready=lambda: "still thinking",
        start_timeout_s=0.5,
    )
    with pytest.raises(MigratorError, match="is not ready") as caught:
        server.start()
    assert caught.value.cause == "still thinking"
    assert not server.running


def test_a_program_that_does_not_exist_is_a_named_error(scratch: Path) -> None:
    server = ServerProcess(
        "the absent server",
        Program([str(scratch / "absent")], user=None, directory=scratch, log=scratch / "log"),
        ready=lambda: "",
    )
    with pytest.raises(MigratorError, match="the absent server can't be started"):
        server.start()
    assert not server.running


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts servers as somebody else")
def test_a_folder_that_the_servers_user_cannot_enter_is_a_named_error(scratch: Path) -> None:
    closed = scratch / "closed"
    closed.mkdir(mode=0o700)
    with pytest.raises(MigratorError, match="can't enter a folder") as caught:
        EmbeddedPostgres(closed / "pg").start()
    assert caught.value.where == str(closed.resolve())


def test_a_version_that_nobody_has_is_an_error_that_names_those_there_are(scratch: Path) -> None:
    with pytest.raises(MigratorError, match="no embedded PostgreSQL 14") as caught:
        postgres_module.postgres_installation(14)
    assert caught.value.remedy == "choose one of 15, 16, 17, 18"
    with pytest.raises(MigratorError, match="no embedded MariaDB 9") as caught:
        EmbeddedMariaDB(scratch / "maria", version="9.9").start()
    assert caught.value.remedy == "choose one of 11.8"


def test_a_missing_wheel_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MigratorError) as caught:
        postgres_module.postgres_installation(18)
    assert "dbmigrator[embedded]" in caught.value.remedy


def test_missing_mariadb_without_root_rights_says_what_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mariadb_module, "find_mariadb", lambda: None)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(shutil, "which", lambda name: None if name == "sudo" else f"/usr/bin/{name}")
    with pytest.raises(MigratorError, match="needs root rights") as caught:
        mariadb_module.install_mariadb()
    assert "sudo apt-get install" in caught.value.remedy


def test_missing_mariadb_without_apt_asks_for_a_version_that_preflight_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    with pytest.raises(MigratorError, match="has no apt-get") as caught:
        mariadb_module.install_mariadb()
    assert f"MariaDB {'.'.join(map(str, MINIMUM_VERSION))} or later" in caught.value.remedy


def test_no_java_at_all_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java_module, "_wheel_java", lambda: None)
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MigratorError) as caught:
        java_home()
    assert "/nowhere is no working Java" in caught.value.cause
    assert "dbmigrator[embedded]" in caught.value.remedy
