"""Faults between a client and a real server: resets, half-open links, delays, flipped bytes."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any

import psycopg
import pymysql
import pytest

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.faults.processes import await_true
from scenarios.faults.session import SERVER_ERRORS
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import TIMEOUT_S, as_test_database, placed

pytestmark = pytest.mark.integration


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
    database = as_test_database(world)
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
    assert as_test_database(world).query("SELECT * FROM t") == []


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
    database = as_test_database(world)
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
