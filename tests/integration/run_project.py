"""A migration of the ``orders`` project between two fresh databases, for tests of whole runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import cast

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.progress import Snapshot
from migrator.wiring import parts as wiring
from scenarios import database as scenario
from scenarios.bench import orders
from scenarios.project import make_project
from scenarios.scenario import Engine
from tests.servers import Database

PROJECT = Path(orders.__file__).parent
NOTHING_MORE: Mapping[str, str] = MappingProxyType({})
# What purchase must hold, in plain SQL over the old table: an oracle that shares nothing with the mapping.
EXPECTED = {
    "postgresql": """
        SELECT id, customer, items, lower(state), nullif(comment, ''), (total * 100)::bigint, rebate,
            (extract(epoch FROM created) * 1000000)::bigint, paid <> 0, source FROM orders""",
    "mariadb": """
        SELECT id, customer, items, lower(state), nullif(comment, ''), CAST(total * 100 AS SIGNED), rebate,
            TIMESTAMPDIFF(MICROSECOND, '1970-01-01', created), paid <> 0, source FROM orders""",
}
EXPECTED["mysql"] = EXPECTED["mariadb"]
ACTUAL = {
    "postgresql": """
        SELECT purchase_id, customer_id, item_count, status, note, amount_cents, discount,
            (extract(epoch FROM placed_at) * 1000000)::bigint, is_paid, channel FROM purchase""",
    "mariadb": """
        SELECT purchase_id, customer_id, item_count, status, note, amount_cents, discount,
            CAST(UNIX_TIMESTAMP(placed_at) * 1000000 AS SIGNED), is_paid, channel FROM purchase""",
}
ACTUAL["mysql"] = ACTUAL["mariadb"]


@dataclass(frozen=True)
class Project:
    """Two databases and the project between them."""

    old: Database
    new: Database
    config: Path

    def run_here(self) -> Snapshot:
        """``migrator run --until caught-up`` in this process; raises what stopped it."""
        parts = wiring.parts(configuration.load(self.config))
        migration = Migration(parts)
        migration.run(Stopping(), caught_up(parts.catalog.position))
        return migration.progress.snapshot()

    def process(
        self, *arguments: str, crash_at: str = "", environment: Mapping[str, str] = NOTHING_MORE
    ) -> subprocess.Popen[str]:
        """``migrator ...`` as a process of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "migrator", *arguments, "--config", str(self.config)],
            env={**os.environ, "MIGRATOR_CRASH_AT": crash_at, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def command(self, *arguments: str) -> int:
        """A command in this process; its exit code. Raises ``MigratorError`` for exit code 2."""
        return cli.main([*arguments, "--config", str(self.config)], standalone_mode=False) or 0

    def differences(self) -> list[tuple[object, ...]]:
        """Rows that only one side has, by plain SQL."""
        expected = {tuple(map(_plain, row)) for row in self.old.query(EXPECTED[self.old.kind])}
        actual = {tuple(map(_plain, row)) for row in self.new.query(ACTUAL[self.new.kind])}
        assert expected, "an empty table proves nothing"
        return sorted(expected ^ actual, key=str)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, bool) else value


def scenario_database(database: Database) -> scenario.Database:
    """The same database as the scenarios' writers and loaders take it."""
    kind = cast(Engine, database.kind)
    return scenario.Database(
        kind, database.host, database.port, database.database, database.user, database.password or ""
    )


def make(folder: Path, old: Database, new: Database) -> Project:
    """The project over these databases, the new schema made by its revisions, Spark as the tests' session has
    it."""
    config = make_project(folder, scenario_database(old), scenario_database(new), PROJECT, "orders")
    config.write_text(config.read_text() + '\n[spark]\nmaster = "local[2]"\n')
    wiring.upgrade_user_target(configuration.load(config))
    return Project(old, new, config)


def written(folder: Path, old: Database, new: Database, name: str, mapping: str) -> Project:
    """A project with this mapping over tables that are there already, without revisions."""
    source = folder / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text(mapping)
    sides = scenario_database(old), scenario_database(new)
    config = make_project(folder / "project", *sides, source, name, ("[spark]", 'master = "local[2]"'))
    return Project(old, new, config)


__all__ = ["MigratorError", "Project", "make", "scenario_database", "written"]
