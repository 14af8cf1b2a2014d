"""Whatever is set around us, every session on PostgreSQL is as it has to be, or is refused by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from migrator.adapters.sources.postgres import connection as source_connection
from migrator.adapters.targets.postgres.session import Session
from migrator.connections.postgres import session as postgres_session
from migrator.embedded.process import scratch_directory
from migrator.errors import ConnectionFailed
from tests.fix_hostile_postgres import (
    HOSTILE,
    known,
    plain,
    set_at,
    set_environment,
)
from tests.fix_postgres_source import source_of
from tests.integration.connections.postgres.postgres_ways import WAYS, Shows, setting
from tests.integration.judged import settings_of as judged
from tests.integration.target_bench import settings_of as target_of
from tests.postgres_settings import HARMLESS, JUDGES
from tests.servers import Database
from verify.readers.postgres import pins as judge
from verify.readers.postgres.session import open_views

pytestmark = pytest.mark.integration

OF_SESSIONS = "user", "superuser", "backend", "superuser-backend"


def _unexplained(database: Database, pins: Mapping[str, str], harmless: Mapping[str, str]) -> set[str]:
    """Settings that a session may have otherwise, and that nobody has thought of."""
    rows = database.query("SELECT name FROM pg_settings WHERE context = ANY(%s)", [list(OF_SESSIONS)])
    return {str(name) for (name,) in rows if "." not in name} - set(pins) - set(harmless)


def test_every_setting_of_the_server_is_pinned_or_harmless_with_a_reason(old_pg: Database) -> None:
    assert _unexplained(old_pg, postgres_session.PINS, HARMLESS) == set()
    assert _unexplained(old_pg, judge.PINS, JUDGES) == set()
    assert not set(postgres_session.PINS) & set(HARMLESS)
    assert not set(judge.PINS) & set(JUDGES)
    assert all(HARMLESS.values())
    assert all(JUDGES.values())


def test_a_setting_that_nobody_thought_of_is_noticed(old_pg: Database) -> None:
    without = {name: value for name, value in judge.PINS.items() if name != "array_nulls"}
    assert _unexplained(old_pg, without, JUDGES) == {"array_nulls"}


def _differing(shows: Shows, pins: Mapping[str, str], there: set[str]) -> dict[str, str]:
    return {name: shows(name) for name in pins if name in there and shows(name) != pins[name]}


@pytest.mark.parametrize("level", ["SYSTEM", "DATABASE", "ROLE", "environment", "all"])
def test_what_is_set_elsewhere_reaches_no_session(
    hostile: Database, level: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    places = {
        "SYSTEM": None,
        "DATABASE": sql.Identifier(hostile.database),
        "ROLE": sql.Identifier("postgres"),
    }
    with plain(hostile) as connection:
        there = known(connection)
        for number, (place, name) in enumerate(places.items()):
            if level in (place, "all"):
                set_at(
                    connection,
                    place,
                    name,
                    {one: values[number % len(values)] for one, values in HOSTILE.items()},
                )
    if level in ("environment", "all"):
        set_environment(monkeypatch, tmp_path)
    for named, way in WAYS.items():
        with way.opened(hostile) as shows:
            assert (named, _differing(shows, way.pins, there)) == (named, {})


def test_each_of_these_settings_reaches_a_session_that_nobody_pins(hostile: Database) -> None:
    """Else the test above shows nothing. Of what ends a session at once only the others' values are looked at."""
    ends = {
        "statement_timeout",
        "idle_session_timeout",
        "idle_in_transaction_session_timeout",
        "exit_on_error",
    }
    with plain(hostile) as connection:
        there = known(connection)
        feared = {name: values[0] for name, values in HOSTILE.items() if name not in ends and name in there}
        set_at(connection, "ROLE", sql.Identifier("postgres"), feared)
    with psycopg.connect(hostile.dsn, autocommit=True) as bare:
        shown = _differing(
            lambda name: str(bare.execute(setting(name)).fetchone()[0]),  # type: ignore[index]
            {name: postgres_session.PINS[name] for name in feared},
            there,
        )
    assert set(shown) == set(feared)


def test_a_pooler_that_drops_what_is_asked_for_at_the_start_changes_nothing(
    hostile: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = postgres_session.parts

    def dropped(*arguments: object) -> dict[str, str]:
        return {**asked(*arguments), "options": "-c statement_timeout=0 -c idle_session_timeout=0"}  # type: ignore[arg-type]

    with plain(hostile) as connection:
        there = known(connection)
        set_at(
            connection,
            "ROLE",
            sql.Identifier("postgres"),
            {name: values[0] for name, values in HOSTILE.items()},
        )
    monkeypatch.setattr(postgres_session, "parts", dropped)
    with source_connection.connect(source_of(hostile), "test") as session:
        shown = _differing(
            lambda name: str(session.execute(setting(name)).fetchone()[0]),  # type: ignore[index]
            postgres_session.PINS,
            there,
        )
    assert shown == {}


def _refused(opened: object) -> ConnectionFailed:
    with pytest.raises(ConnectionFailed) as caught:
        opened()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize(
    ("name", "value", "ways"),
    [
        ("session_replication_role", "replica", ("source", "target")),
        ("zero_damaged_pages", "on", ("source", "target", "judge")),
        ("ignore_checksum_failure", "on", ("judge",)),
    ],
)
def test_what_the_login_may_not_set_back_is_refused_and_the_remedy_helps(
    hostile: Database, name: str, value: str, ways: tuple[str, ...]
) -> None:
    opened = {
        "source": lambda: source_connection.connect(source_of(hostile, user="poor"), "test").close(),
        "target": lambda: Session(target_of(hostile, user="poor")).close(),
        "judge": lambda: judge.connect_postgres(judged(_as_user(hostile, "poor"))).close(),
    }
    with plain(hostile) as connection:
        connection.execute("CREATE ROLE poor LOGIN")
        try:
            for level, place in (("SYSTEM", None), ("ROLE", sql.Identifier("poor"))):
                set_at(connection, level, place, {name: value})
                for way in ways:
                    error = _refused(opened[way])
                    assert name in error.what
                    assert not error.retryable
                remedy = re.search(r"ALTER ROLE .*", error.remedy)
                assert remedy is not None
                connection.execute(remedy[0])
                for way in ways:
                    opened[way]()
                connection.execute(f"ALTER ROLE poor IN DATABASE {hostile.database} RESET ALL")
        finally:
            connection.execute("DROP ROLE poor")


def _as_user(database: Database, user: str) -> Database:
    return Database(database.host, database.port, database.database, user, "", database.kind)


@pytest.mark.parametrize("variable", ["PGTZ", "PGDATESTYLE"])
def test_a_variable_that_the_server_refuses_is_named_with_what_to_unset(
    hostile: Database, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "nonsense")
    error = _refused(lambda: source_connection.connect(source_of(hostile), "test"))
    assert variable in error.remedy
    assert not error.retryable
    assert variable in _refused(lambda: judge.connect_postgres(judged(hostile))).remedy
    assert variable in _refused(lambda: Session(target_of(hostile))).remedy


def test_a_bulk_session_of_the_judge_reads_view_after_view(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE seen (id int PRIMARY KEY)")
    query = sql.SQL("SELECT id FROM public.seen ORDER BY id").format()
    with open_views(judged(old_pg)) as views, scratch_directory("migrator-views-") as folder:
        for rows in range(3):
            with views.view(bulk=True) as view:
                old_pg.execute(f"INSERT INTO seen VALUES ({rows})")
                found = view.to_parquet(
                    query, ["id"], folder / f"{rows}.parquet", lambda batch: batch, "seen"
                )
            assert found == rows, "a view is that of its session's snapshot"
