"""Every fault on a real server or process, with proof that it took effect, and a named error where it can't."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest

from migrator.errors import ConfigError, ConnectionFailed, MigratorError
from scenarios.faults.fault import PlacedFault
from scenarios.faults.process_tree import alive, descendants
from scenarios.faults.processes import await_true
from scenarios.faults.proxy import TcpProxy
from scenarios.faults.registry import check, fault, fault_names, sides_with_proxy
from scenarios.faults.session import SERVER_ERRORS
from scenarios.scenario import FaultSpec
from scenarios.world import World
from tests.integration.fault_world import WITH_CHILDREN, StandInPipeline, make_world
from tests.servers import (
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    PostgresServer,
    fresh_database,
)

pytestmark = pytest.mark.integration
TIMEOUT_S = 10.0


@pytest.fixture(scope="module")
def own_postgres(servers: EmbeddedServers | DockerServers) -> PostgresServer:
    """These tests kill their servers."""
    return servers.postgres("faults_postgres")


@pytest.fixture(scope="module")
def own_mariadb(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    return servers.mariadb("faults_mariadb")


@pytest.fixture(params=["postgresql", "mariadb"])
def own_server(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue({"postgresql": "own_postgres", "mariadb": "own_mariadb"}[request.param])


@pytest.fixture
def database(own_server: Any) -> Iterator[Database]:
    with fresh_database(own_server, "faults") as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v varchar(20))")
        yield fresh


@pytest.fixture
def proxy(database: Database) -> Iterator[TcpProxy]:
    with TcpProxy(database.host, database.port, kind=database.kind) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, database: Database, own_server: Any, proxy: TcpProxy) -> World:
    if own_server.embedded is None:
        pytest.skip("the server runs in a container, which these tests can't kill")
    return make_world(tmp_path, database, own_server.embedded, proxy)[0]


@pytest.fixture
def pg_world(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[tuple[World, StandInPipeline]]:
    """A PostgreSQL world with a running stand-in for the pipeline."""
    assert own_postgres.embedded is not None
    with fresh_database(own_postgres, "faults") as fresh:
        world, pipeline = make_world(tmp_path, fresh, own_postgres.embedded)
        try:
            yield world, pipeline
        finally:
            pipeline.kill()


def placed(world: World, do: str, **options: Any) -> PlacedFault:
    return fault(FaultSpec(do, options=options), world)


def pulse_problem(pipeline: StandInPipeline, wanted: str) -> None:
    await_true(lambda: wanted in pipeline.pulse()[2], f"the process reports {wanted!r}", TIMEOUT_S)


# -- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("do", "options", "named"),
    [
        ("nonsense", {}, "nonsense"),
        ("kill_server", {}, "side"),
        ("kill_server", {"side": "middle"}, "middle"),
        ("latency", {"ms": -1}, "ms"),
        ("latency", {"ms": 5, "jitter": 1}, "jitter"),
        ("throttle", {"bytes_per_s": "many"}, "many"),
        ("reset_around_commit", {"when": "during"}, "during"),
        ("sql", {"side": "source", "sql": []}, "sql"),
        ("half_open", {"resume": "yes"}, "yes"),
        ("stop_continue", {}, "seconds"),
        ("rotate_log", {"side": "target"}, "target"),
    ],
)
def test_a_wrong_option_is_refused_by_name(do: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check(FaultSpec(do, options=options))


def test_a_wrong_point_is_refused_and_the_vocabulary_is_whole() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        check(FaultSpec("kill_pipeline", at="nowhere:3"))
    with pytest.raises(ConfigError, match="capture"):
        check(FaultSpec("kill_pipeline", at="capture.chunk:x"))
    check(FaultSpec("kill_pipeline", at="capture.chunk:3"))
    assert len(fault_names()) >= 33


def test_network_faults_say_which_side_needs_a_proxy(world: World) -> None:
    specs = [FaultSpec("half_open", options={"side": "target"}), FaultSpec("kill_pipeline")]
    assert sides_with_proxy(specs) == {"target"}
    bare = make_world(world.folder / "project", _as_test_database(world), world.source.server)[0]
    with pytest.raises(MigratorError, match="needs a proxy"):
        placed(bare, "refuse").fire()


def _as_test_database(world: World) -> Database:
    at = world.source.direct
    return Database(at.host, at.port, at.database, at.user, at.password, at.kind)


# -- network --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("when", "rows"), [("before", 0), ("after", 1)])
def test_a_reset_around_commit_decides_the_outcome_that_the_client_can_not_know(
    world: World, when: str, rows: int
) -> None:
    connection = world.source.via.connect()
    reset = placed(world, "reset_around_commit", when=when, side="source")
    cursor = connection.cursor()
    cursor.execute("INSERT INTO t VALUES (1, 'x')")
    reset.fire()
    assert reset.effect() == ""
    with pytest.raises(SERVER_ERRORS):
        connection.commit()
    assert reset.effect() == f"reset {when} COMMIT"
    with suppress(*SERVER_ERRORS):
        connection.close()
    database = _as_test_database(world)
    assert len(database.query("SELECT * FROM t")) == rows


def test_a_half_open_connection_never_answers_and_a_new_one_does(world: World) -> None:
    at = world.source.via
    if at.kind == "postgresql":
        connection: Any = psycopg.connect(host=at.host, port=at.port, dbname=at.database, user=at.user)
    else:
        connection = pymysql.connect(
            host=at.host, port=at.port, user=at.user, database=at.database, read_timeout=1
        )
    half_open = placed(world, "half_open", side="source")
    half_open.fire()
    assert half_open.effect() == "1 connections half open"
    answered = threading.Event()

    def ask() -> None:
        with suppress(*SERVER_ERRORS):
            connection.cursor().execute("SELECT 1")
            answered.set()

    threading.Thread(target=ask, daemon=True).start()
    assert not answered.wait(1.5)
    half_open.heal()
    at.connect().close()
    assert not answered.wait(0.2)


def test_a_half_open_link_needs_a_connection(world: World) -> None:
    with pytest.raises(MigratorError, match="none"):
        placed(world, "half_open", side="source").fire()


def test_a_reset_within_a_load_takes_all_of_it_back(world: World) -> None:
    connection = world.source.via.connect()
    reset = placed(world, "reset_after", bytes=3000, direction="to_server", stream="session")
    reset.fire()
    values = ", ".join(f"({n}, 'row {n}')" for n in range(500))
    with pytest.raises(SERVER_ERRORS):
        connection.cursor().execute(f"INSERT INTO t VALUES {values}")
    assert reset.effect()
    assert _as_test_database(world).query("SELECT * FROM t") == []


def test_refuse_throttle_slices_and_latency_reach_the_server(world: World) -> None:
    refuse = placed(world, "refuse")
    refuse.fire()
    with pytest.raises(ConnectionFailed):
        world.source.via.connect()
    refuse.heal()
    for do, options in [
        ("slices", {"bytes": 3}),
        ("latency", {"ms": 20, "jitter_ms": 5}),
        ("throttle", {"bytes_per_s": 50_000}),
    ]:
        condition = placed(world, do, **options)
        condition.fire()
        assert condition.effect()
        connection = world.source.via.connect(autocommit=True)
        cursor = connection.cursor()
        cursor.execute("SELECT 'it works'")
        assert cursor.fetchall()[0][0] == "it works"
        connection.close()
        condition.heal()


def test_one_way_lets_a_statement_in_and_no_answer_out(world: World) -> None:
    connection = world.source.via.connect(autocommit=True)
    one_way = placed(world, "one_way", direction="to_client")
    one_way.fire()
    done = threading.Event()

    def write() -> None:
        connection.cursor().execute("INSERT INTO t VALUES (1, 'x')")
        done.set()

    threading.Thread(target=write, daemon=True).start()
    database = _as_test_database(world)
    await_true(lambda: len(database.query("SELECT * FROM t")) == 1, "the row is written", TIMEOUT_S)
    assert not done.is_set()
    one_way.heal()
    assert done.wait(TIMEOUT_S)
    connection.close()


def test_a_flipped_byte_arrives_flipped(world: World) -> None:
    connection = world.source.via.connect(autocommit=True)
    cursor = connection.cursor()
    text = "a" * 2000
    placed(world, "flip_byte", at_byte=1000).fire()
    cursor.execute(f"SELECT '{text}'")
    ((found,),) = cursor.fetchall()
    assert found != text
    assert found.replace("`", "a") == text  # 0x61 and 0x60
    connection.close()


# -- servers --------------------------------------------------------------------------------------------------------


def test_a_killed_server_comes_back_as_another_process_with_its_data(world: World) -> None:
    database = _as_test_database(world)
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
    database = _as_test_database(world)
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
    database = _as_test_database(world)
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
    database = _as_test_database(world)
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


# -- log ------------------------------------------------------------------------------------------------------------


def test_the_log_goes_on_in_another_file(world: World) -> None:
    rotate = placed(world, "rotate_log")
    rotate.fire()
    before, _, after = rotate.effect().partition(", now ")
    assert before != after


def test_a_purged_log_no_longer_holds_what_the_pipeline_needs(
    tmp_path: Path, database: Database, own_server: Any
) -> None:
    world, pipeline = make_world(tmp_path, database, own_server.embedded)
    pipeline.start()
    ending = threading.Event()

    def write() -> None:
        while not ending.wait(0.02):
            database.execute("DELETE FROM t", "INSERT INTO t VALUES (1, 'x')")

    if database.kind == "postgresql":
        database.execute("SELECT pg_create_logical_replication_slot('migrator_faults', 'pgoutput')")
    first = _log_begin(database)
    needed = _log_needed(database)
    writer = threading.Thread(target=write)
    writer.start()
    try:
        purge = placed(world, "purge_log", side="source")
        purge.fire()
    finally:
        ending.set()
        writer.join()
        pipeline.kill()
    assert pipeline.starts == 2
    assert _log_begin(database) > first
    assert needed in purge.effect()


def _log_needed(database: Database) -> str:
    """The log that the pipeline still needs: the slot's place, or the newest file."""
    if database.kind == "mariadb":
        return str(database.query("SHOW MASTER STATUS")[0][0])
    return _log_begin(database)


def _log_begin(database: Database) -> str:
    if database.kind == "mariadb":
        return str(database.query("SHOW BINARY LOGS")[0][0])
    return str(database.query("SELECT confirmed_flush_lsn::text FROM pg_replication_slots")[0][0])


def test_a_slot_is_dropped_or_known_to_be_missing(world: World) -> None:
    drop = placed(world, "drop_slot")
    with pytest.raises(MigratorError, match="can't be placed here"):
        drop.fire()
    database = _as_test_database(world)
    if database.kind == "postgresql":
        database.execute("SELECT pg_create_logical_replication_slot('migrator_faults', 'pgoutput')")
        drop.fire()
        assert database.query("SELECT * FROM pg_replication_slots") == []
        assert "migrator_faults" in drop.effect()


def segment(event_log: Path, number: int) -> None:
    (event_log / "data" / f"{number:010d}-1-0.parquet").write_text(f"data of {number}")
    (event_log / "segments" / f"{number:010d}.json").write_text(f"manifest of {number}")


def event_log_of(world: World, segments: int) -> Path:
    """An event log whose segments come one after the other and are released but for the newest."""
    event_log = world.config.parent / ".migrator" / "eventlog"
    kept = event_log.parent.glob("kept-*")
    (folder,) = list(kept)
    for name in ("data", "segments"):
        (event_log / name).mkdir(parents=True)
    for number in range(1, segments + 1):
        segment(event_log, number)
        await_true(
            (folder / "segments" / f"{number:010d}.json").exists, f"segment {number} is kept", TIMEOUT_S
        )
    for number in range(1, segments):
        (event_log / "data" / f"{number:010d}-1-0.parquet").unlink()
        (event_log / "segments" / f"{number:010d}.json").unlink()
    (event_log / "released").write_text(f"{segments - 1}\n")
    return event_log


def numbers(event_log: Path) -> list[int]:
    return sorted(int(path.stem) for path in (event_log / "segments").iterdir())


def test_applied_segments_are_delivered_again(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    again = placed(world, "redeliver", segments=3)
    again.prepare()
    event_log = event_log_of(world, 8)
    pipeline.start()
    again.fire()
    again.close()
    assert pipeline.starts == 2
    assert numbers(event_log) == [5, 6, 7, 8]
    assert (event_log / "released").read_text() == "4\n"
    assert (event_log / "data" / "0000000006-1-0.parquet").read_text() == "data of 6"
    assert again.effect().startswith("3 applied segments")


def test_an_old_event_log_is_restored(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint", segments=3)
    restore.prepare()
    event_log = event_log_of(world, 8)
    pipeline.start()
    restore.fire()
    restore.close()
    assert pipeline.starts == 2
    assert numbers(event_log) == [4]
    assert (event_log / "released").read_text() == "3\n"


def test_a_restored_event_log_ends_before_the_target_however_far_capture_was(
    pg_world: tuple[World, StandInPipeline],
) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint")
    restore.prepare()
    event_log = event_log_of(world, 9)
    (event_log / "released").write_text("4\n")
    pipeline.start()
    restore.fire()
    restore.close()
    assert numbers(event_log) == [2]


def test_nothing_is_restored_where_nothing_was_kept(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    restore = placed(world, "restore_checkpoint")
    restore.prepare()
    pipeline.start()
    with pytest.raises(MigratorError, match="0 applied segments were kept"):
        restore.fire()
    restore.close()


# -- data -----------------------------------------------------------------------------------------------------------


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
    assert len(_as_test_database(world).query("SELECT * FROM t WHERE id = 3")) == 1
    undone.heal()
    insisting = placed(world, "sql", side="target", sql="UPDATE t SET v = 'late' WHERE id = 4", insist=True)
    insisting.fire()
    assert insisting.effect() == ""
    placed(world, "sql", side="source", sql="INSERT INTO t VALUES (4, 'there')").fire()
    await_true(lambda: insisting.effect() != "", "the row that came is changed", TIMEOUT_S)
    insisting.heal()
    assert _as_test_database(world).query("SELECT * FROM t WHERE id = 4") == [(4, "late")]
    placed(world, "sql", side="source", sql="DELETE FROM t WHERE id = 4").fire()
    assert _as_test_database(world).query("SELECT * FROM t WHERE id = 3") == []
    assert _as_test_database(world).query("SELECT id FROM t") == [(2,)]
    with pytest.raises(MigratorError, match="refuses") as refused:
        placed(world, "sql", side="source", sql="INSERT INTO nowhere VALUES (1)").fire()
    assert "nowhere" in refused.value.where


# -- processes ------------------------------------------------------------------------------------------------------


def test_the_pipeline_is_killed_and_started_again(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    kill = placed(world, "kill_pipeline")
    with pytest.raises(MigratorError, match="isn't running"):
        kill.fire()
    pipeline.start()
    pid = pipeline.pid
    kill.fire()
    assert not alive(pid)
    assert str(pid) in kill.effect()
    kill.heal()
    assert pipeline.pid != pid


def test_a_stopped_pipeline_stands_still_and_goes_on(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    stop = placed(world, "stop_continue", seconds=0.5)
    stop.fire()
    before = pipeline.pulse()[0]
    assert not threading.Event().wait(0.2)
    assert pipeline.pulse()[0] <= before + 1
    await_true(lambda: pipeline.pulse()[0] > before + 5, "it goes on by itself", TIMEOUT_S)
    stop.close()


@pytest.mark.parametrize("do", ["kill_jvm", "kill_worker"])
def test_the_right_child_is_killed(tmp_path: Path, own_postgres: PostgresServer, do: str) -> None:
    assert own_postgres.embedded is not None
    world, pipeline = make_world(tmp_path, _admin(own_postgres), own_postgres.embedded, program=WITH_CHILDREN)
    pipeline.start()
    try:
        await_true(lambda: len(descendants(pipeline.pid)) == 3, "its children run", TIMEOUT_S)
        before = descendants(pipeline.pid)
        kill = placed(world, do)
        kill.fire()
        (killed,) = [pid for pid in before if str(pid) in kill.effect()]
        assert not alive(killed)
        assert pipeline.running
    finally:
        pipeline.kill()


def test_a_worker_at_work_waits_for_its_end(tmp_path: Path, own_postgres: PostgresServer) -> None:
    assert own_postgres.embedded is not None
    world, pipeline = make_world(tmp_path, _admin(own_postgres), own_postgres.embedded, program=WITH_CHILDREN)
    pipeline.start()
    try:
        await_true(lambda: len(descendants(pipeline.pid)) == 3, "its children run", TIMEOUT_S)
        before = descendants(pipeline.pid)
        kill = placed(world, "kill_worker", at_work=True)
        kill.fire()
        assert kill.effect() == ""
        assert descendants(pipeline.pid) == before
        kill.heal()
        (killed,) = [pid for pid in before if str(pid) in kill.effect()]
        assert not alive(killed)
    finally:
        pipeline.kill()


def test_a_child_that_is_not_there_is_not_killed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    for do in ("kill_jvm", "kill_worker"):
        with pytest.raises(MigratorError, match="the pipeline has no"):
            placed(world, do).fire()


def _admin(server: PostgresServer) -> Database:
    return server.admin


# -- host -----------------------------------------------------------------------------------------------------------


def test_the_disk_is_full_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    full = placed(world, "disk_full", mb=16)
    with pytest.raises(MigratorError, match="wasn't prepared"):
        full.fire()
    full.prepare()
    try:
        pipeline.start()
        assert pipeline.pulse()[2] == "well"
        full.fire()
        # The file that it rewrites has its pages already; a new one gets none.
        with pytest.raises(OSError, match="No space left"):
            (world.config.parent / ".migrator" / "new").write_bytes(b"x" * 100_000)
        full.heal()
        (world.config.parent / ".migrator" / "new").write_bytes(b"x" * 100_000)
        assert "16 MB" in full.effect()
        pipeline.kill()
    finally:
        full.close()
    assert list((world.config.parent / ".migrator").iterdir()) == []


def test_fsync_fails_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    broken = placed(world, "fsync_error")
    assert broken.effect() == ""
    broken.fire()
    pulse_problem(pipeline, "Input/output error")
    broken.heal()
    assert "fsyncs refused" in broken.effect()
    pulse_problem(pipeline, "well")


def test_the_clock_is_off_from_when_it_fires(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    clock = placed(world, "clock", offset_s=-3600)
    pipeline.environment = clock.environment()
    pipeline.start()
    assert abs(pipeline.pulse()[1] - time.time()) < 60
    clock.fire()
    await_true(lambda: abs(pipeline.pulse()[1] + 3600 - time.time()) < 60, "the clock is off", TIMEOUT_S)
    clock.heal()
    await_true(lambda: abs(pipeline.pulse()[1] - time.time()) < 60, "the clock is right", TIMEOUT_S)


def test_a_clock_that_was_not_prepared_is_not_changed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    clock = placed(world, "clock", offset_s=3600)
    with pytest.raises(MigratorError, match="wasn't started with the clock's environment"):
        clock.fire()
    clock.environment()
    with pytest.raises(MigratorError, match="wasn't started with the clock's environment"):
        clock.fire()


def test_no_descriptor_is_left_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    few = placed(world, "descriptors", limit=3)
    few.fire()
    pulse_problem(pipeline, "Too many open files")
    few.heal()
    pulse_problem(pipeline, "well")


def test_a_limit_that_leaves_descriptors_is_no_fault(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    with pytest.raises(MigratorError, match="more can be"):
        placed(world, "descriptors", limit=400).fire()


def test_no_memory_is_left_until_healed(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    none = placed(world, "out_of_memory")
    none.fire()
    pulse_problem(pipeline, "no memory")
    none.heal()
    pulse_problem(pipeline, "well")


def test_a_starved_process_gets_little_done(pg_world: tuple[World, StandInPipeline]) -> None:
    world, pipeline = pg_world
    pipeline.start()
    starve = placed(world, "starve_cpu", seconds=60, percent=2)
    starve.fire()
    await_true(lambda: "stopped 5 times" in starve.effect(), "it is stopped again and again", TIMEOUT_S)
    starve.heal()
    before = pipeline.pulse()[0]
    await_true(lambda: pipeline.pulse()[0] > before + 5, "it goes on", TIMEOUT_S)
    state = Path(f"/proc/{pipeline.pid}/stat").read_text().rpartition(")")[2].split()[0]
    assert state != "T"
