"""Faults of real servers: killed, full, locked, with another password, with data that a stranger wrote."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import psycopg
import pytest

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.faults.process_tree import alive
from scenarios.faults.processes import await_true
from scenarios.faults.session import SERVER_ERRORS
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import (
    TIMEOUT_S,
    StandInPipeline,
    as_test_database,
    make_world,
    placed,
)
from tests.servers import Database

pytestmark = pytest.mark.integration


# -- servers
# --------------------------------------------------------------------------------------------------------


def test_a_killed_server_comes_back_as_another_process_with_its_data(world: World) -> None:
    database = as_test_database(world)
    database.execute("INSERT INTO t VALUES (1, 'kept')")
    before = world.source.server.pid
    kill = placed(world, "kill_server", side="source")
    kill.fire()
    assert not alive(before)
    with pytest.raises(ConnectionFailed):
        world.source.direct.connect()
    kill.heal()
    assert world.source.server.pid != before
    assert str(before) in kill.effect()
    assert database.query("SELECT v FROM t") == [("kept",)]


def test_a_restarted_server_is_another_process_as_well(world: World) -> None:
    before = world.source.server.pid
    restart = placed(world, "restart_server", side="source")
    restart.fire()
    restart.heal()
    assert not alive(before)
    assert str(world.source.server.pid) in restart.effect()
    world.source.direct.connect().close()


def test_no_connection_is_left_for_anybody(world: World) -> None:
    mine = world.source.via.connect(autocommit=True)
    full = placed(world, "limit_connections", side="source")
    full.fire()
    assert "1 of the pipeline cut" in full.effect()
    with pytest.raises(SERVER_ERRORS):
        mine.cursor().execute("SELECT 1")
    with pytest.raises(ConnectionFailed, match="can't connect") as refused:
        world.source.via.connect()
    assert any(words in refused.value.cause.lower() for words in ("too many", "connection slots"))
    full.heal()
    await_true(lambda: _admitted(world), "a login is admitted again", TIMEOUT_S)


def _admitted(world: World) -> bool:
    try:
        world.source.via.connect().close()
    except ConnectionFailed:
        return False
    return True


def test_a_held_lock_blocks_and_is_given_back(world: World) -> None:
    database = as_test_database(world)
    database.execute("INSERT INTO t VALUES (1, 'x')")
    lock = placed(world, "hold_lock", side="source", sql="UPDATE t SET v = 'locked' WHERE id = 1")
    lock.fire()
    assert lock.effect()
    written = threading.Event()

    def write() -> None:
        database.execute("UPDATE t SET v = 'mine' WHERE id = 1")
        written.set()

    threading.Thread(target=write, daemon=True).start()
    assert not written.wait(0.5)
    lock.heal()
    assert written.wait(TIMEOUT_S)
    assert database.query("SELECT v FROM t") == [("mine",)]


def test_an_open_transaction_ends_as_asked_and_a_wrong_statement_is_reported(world: World) -> None:
    database = as_test_database(world)
    for end, rows in (("rollback", 0), ("commit", 1)):
        transaction = placed(
            world, "open_transaction", side="source", sql=["INSERT INTO t VALUES (1, 'x')"], end=end
        )
        transaction.fire()
        assert database.query("SELECT * FROM t") == []
        transaction.heal()
        assert len(database.query("SELECT * FROM t")) == rows
    with pytest.raises(MigratorError, match="refuses a fault's statement"):
        placed(world, "open_transaction", side="source", sql="UPDATE nowhere SET x = 1").fire()


def test_a_rotated_password_is_refused_until_it_is_the_old_one_again(
    tmp_path: Path, database: Database, own_server: Any
) -> None:
    user, password = f"pipe_{database.database[-8:]}", "first"
    database.execute(
        f"CREATE ROLE {user} LOGIN PASSWORD '{password}'"
        if database.kind == "postgresql"
        else f"CREATE USER {user}@'%' IDENTIFIED BY '{password}'"
    )
    if database.kind == "mariadb":
        database.execute(f"GRANT ALL ON *.* TO {user}@'%'")
    world, _ = make_world(tmp_path, database, own_server.embedded, user=(user, password))
    mine = world.source.via.connect(autocommit=True)
    rotate = placed(world, "rotate_password", side="source")
    rotate.fire()
    assert "1 sessions ended" in rotate.effect()
    with pytest.raises(SERVER_ERRORS):
        mine.cursor().execute("SELECT 1")
    with pytest.raises(ConnectionFailed) as refused:
        world.source.via.connect()
    assert "password" in refused.value.cause.lower()
    world.source.direct.connect().close()  # nobody else is concerned
    rotate.heal()
    world.source.via.connect().close()
    database.execute(f"DROP ROLE {user}" if database.kind == "postgresql" else f"DROP USER {user}@'%'")


def test_a_password_that_the_harness_shares_is_not_rotated(world: World) -> None:
    with pytest.raises(MigratorError, match="user of its own"):
        placed(world, "rotate_password", side="source").fire()


def test_a_deadlock_makes_the_target_transaction_the_victim(pg_world: tuple[World, StandInPipeline]) -> None:
    world, _ = pg_world
    database = as_test_database(world)
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "CREATE SCHEMA migrator",
        "CREATE TABLE migrator.ledger (migration text, epoch int)",
        "INSERT INTO migrator.ledger VALUES ('faults', 1)",
    )
    deadlock = placed(world, "deadlock", side="target")
    with database.connect(autocommit=False) as mine:
        mine.execute("SELECT * FROM migrator.ledger FOR UPDATE")
        deadlock.fire()
        with pytest.raises(psycopg.errors.DeadlockDetected):
            mine.execute("INSERT INTO t VALUES (1)")
    deadlock.heal()


# -- data
# -----------------------------------------------------------------------------------------------------------


def test_statements_run_in_order_and_a_refused_one_is_reported(world: World) -> None:
    sql = placed(
        world,
        "sql",
        side="source",
        sql=["BEGIN", "INSERT INTO t VALUES (1, 'x')", "ROLLBACK", "DELETE FROM t"],
    )
    sql.fire()
    assert sql.effect() == "4 statements run on the source"
    placed(world, "sql", side="target", sql="INSERT INTO t VALUES (2, 'y')").fire()
    undone = placed(
        world, "sql", side="source", sql="INSERT INTO t VALUES (3, 'z')", undo="DELETE FROM t WHERE id = 3"
    )
    undone.fire()
    assert len(as_test_database(world).query("SELECT * FROM t WHERE id = 3")) == 1
    undone.heal()
    insisting = placed(world, "sql", side="target", sql="UPDATE t SET v = 'late' WHERE id = 4", insist=True)
    insisting.fire()
    assert insisting.effect() == ""
    placed(world, "sql", side="source", sql="INSERT INTO t VALUES (4, 'there')").fire()
    await_true(lambda: insisting.effect() != "", "the row that came is changed", TIMEOUT_S)
    insisting.heal()
    assert as_test_database(world).query("SELECT * FROM t WHERE id = 4") == [(4, "late")]
    placed(world, "sql", side="source", sql="DELETE FROM t WHERE id = 4").fire()
    assert as_test_database(world).query("SELECT * FROM t WHERE id = 3") == []
    assert as_test_database(world).query("SELECT id FROM t") == [(2,)]
    with pytest.raises(MigratorError, match="refuses") as refused:
        placed(world, "sql", side="source", sql="INSERT INTO nowhere VALUES (1)").fire()
    assert "nowhere" in refused.value.where
