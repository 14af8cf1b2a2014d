"""Random settings at every level: what is dumped, streamed, written and judged is what a neutral session sees."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql

from migrator.connections.postgres import session as postgres_session
from tests.drawn import seeds
from tests.fix_hostile_postgres import HOSTILE, plain, set_at, set_environment
from tests.integration.connections.postgres.postgres_passage import (
    Passage,
    second,
    source_as_judged,
    target_as_judged,
    texts,
)
from tests.integration.exact import assert_same
from tests.servers import Database

pytestmark = pytest.mark.integration

LEVELS = ("SYSTEM", "DATABASE", "ROLE")
LEFT_ALONE = {
    "debug_discard_caches": "makes everything a hundred times slower",
    "post_auth_delay": "waits",
    "jit_debugging_support": "needs a debugger",
    "jit_profiling_support": "needs a profiler",
    "allow_system_table_mods": "harms the server",
    "max_stack_depth": "a limit that may not be larger than the machine's",
    "temp_file_limit": "a limit that is meant",
    "tcp_user_timeout": "cuts the test's own sessions",
    "log_min_messages": "fills the disk",
    "vacuum_buffer_usage_limit": "has a gap between 0 and 128 kB",
    "log_statement_stats": "excludes others",
    **dict.fromkeys(
        ("transaction_deferrable", "transaction_isolation", "transaction_read_only"), "can't be set"
    ),
}


def _drawn(rng: random.Random, rows: list[tuple[Any, ...]]) -> dict[str, str]:
    """A value for some of the settings."""
    drawn = {}
    for name, kind, least, most, words, standard in rows:
        if name in LEFT_ALONE or rng.random() < 0.4:
            continue
        if name in HOSTILE:
            drawn[name] = rng.choice(HOSTILE[name])
        elif kind == "bool":
            drawn[name] = rng.choice(("on", "off"))
        elif kind == "enum":
            drawn[name] = rng.choice(words)
        elif kind in ("integer", "real"):
            low, high = float(least), min(float(most), 4 * max(float(standard), 16.0))
            number = rng.choice((low, high, rng.uniform(low, max(low, high))))
            drawn[name] = f"{number:.3f}" if kind == "real" else str(int(number))
    return drawn


def _spoil(databases: tuple[Database, ...], seed: int) -> dict[str, dict[str, str]]:
    """Sets random values at every level; returns them for the failure's sake."""
    rng = random.Random(seed)
    with plain(databases[0]) as session:
        rows = session.execute(
            "SELECT name, vartype, min_val, max_val, enumvals, boot_val FROM pg_settings"
            " WHERE context IN ('user', 'superuser') AND name NOT LIKE '%.%' ORDER BY name"
        ).fetchall()
        drawn = {level: _drawn(rng, rows) for level in LEVELS}
        set_at(session, "SYSTEM", None, drawn["SYSTEM"])
        for database in databases:
            set_at(session, "DATABASE", sql.Identifier(database.database), drawn["DATABASE"])
        set_at(session, "ROLE", sql.Identifier(databases[0].user), drawn["ROLE"])
    return drawn


def _carried(passage: Passage, spoilt: object, plainly: Mapping[str, Any], folder: Path) -> None:
    """All the promises about one passage under spoilt settings."""
    assert texts(passage.new) == texts(passage.old) == plainly["texts"], spoilt
    assert_same(source_as_judged(passage.old, folder), plainly["source"], str(spoilt))
    assert_same(target_as_judged(passage.new, folder), plainly["target"], str(spoilt))


@pytest.fixture(scope="module")
def plainly(hostile_server: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What is carried and judged where nothing is set."""
    hostile_server.create_database("plain_old")
    old = Database(hostile_server.host, hostile_server.port, "plain_old", "postgres", "", "postgresql")
    folder = tmp_path_factory.mktemp("plainly")
    with second(old, "plain_new") as new:
        passage = Passage(old, new)
        passage.carry()
        assert texts(new) == texts(old)
        found = {
            "texts": texts(old),
            "source": source_as_judged(old, folder),
            "target": target_as_judged(new, folder),
        }
    hostile_server.drop_database("plain_old")
    return found


@pytest.mark.parametrize("seed", seeds(4))
def test_random_settings_change_nothing(
    hostile: Database, seed: int, plainly: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with second(hostile, f"{hostile.database}_new") as new:
        passage = Passage(hostile, new)
        spoilt = _spoil((hostile, new), seed)
        if seed % 2:
            set_environment(monkeypatch, tmp_path)
        passage.carry()
        _carried(passage, spoilt, plainly, tmp_path)


def test_without_the_pins_they_change_values(
    hostile: Database, plainly: Mapping[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control. Only what lets sessions live is still asked for."""
    monkeypatch.setattr(postgres_session, "pin", lambda pins=None: "SELECT 1")
    monkeypatch.setattr(
        postgres_session,
        "parts",
        lambda *_: {
            "options": "-c statement_timeout=0 -c idle_session_timeout=0 -c lock_timeout=0",
            "hostaddr": "",
        },
    )
    values = {name: HOSTILE[name][0] for name in ("TimeZone", "array_nulls", "extra_float_digits")}
    with second(hostile, f"{hostile.database}_new") as new:
        passage = Passage(hostile, new)
        with plain(hostile) as session:
            set_at(session, "ROLE", sql.Identifier("postgres"), values)
        passage.carry()
        assert texts(new) != texts(hostile)
