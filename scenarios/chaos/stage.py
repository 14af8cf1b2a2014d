"""Sets the stage for a project: servers, old schema and rows, the project's copy, logins, a copy of the old rows."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import ConfigError
from migrator.wiring import parts as wiring
from scenarios.chaos import given_rows, old_sides, shadow
from scenarios.database import Database
from scenarios.faults.registry import sides_with_proxy
from scenarios.faults.session import query
from scenarios.play.stage import batch_rows_of, behind_proxy, direct, small_steps
from scenarios.rehearsal import copied, generated, schema, sides
from scenarios.rehearsal.tables import Table
from scenarios.scenario import Scenario
from scenarios.toml_text import merged, toml_text
from scenarios.world import Side


@dataclass(frozen=True)
class Old:
    """The old side of a project.

    Attributes:
        schema: a SQL file or dump, a folder of Alembic revisions, or the address of a database.
        rows: files with rows by table; see ``given_rows.files``.
        number: rows made up for a table without any.
    """

    schema: str
    rows: Mapping[str, Path] = field(default_factory=dict)
    number: int = 100


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that exists before the pipeline's first start.

    Attributes:
        folder: scratch folder.
        config: of the project's copy; it names the addresses that the pipeline uses.
        settings: the same project, but straight to the servers, as their administrators.
        source, target: both sides.
        tables: of the old side.
        start: a copy of the old database as it is now.
        notes: what is otherwise than in production, in words.
    """

    folder: Path
    config: Path
    settings: Settings
    source: Side
    target: Side
    tables: Mapping[str, Table]
    start: Database
    notes: tuple[str, ...]


def set_up(
    stack: ExitStack, folder: Path, project: copied.Wanted, old: Old, scenario: Scenario, seed: int
) -> Stage:
    """Starts and makes everything. Raises ``MigratorError`` with what can't be had."""
    if project.text("source", "log") == "change_tables":
        raise ConfigError(
            "this project can't be run under hazards",
            where="source.log: change_tables",
            cause="the recorder reads the server's log, whose places change tables don't know",
            remedy='take the setting out for these tests (log = "change_tables")',
        )
    ends: dict[str, Side] = {}
    for number, (name, section) in enumerate((("old", "source"), ("new", "target"))):
        settings = scenario.server if name == "old" else {}
        database, server = sides.served(stack, folder, project, name, settings)
        side = Side(database, database, server)
        if section in sides_with_proxy(scenario.faults):
            side = behind_proxy(stack, side, seed + number)
        ends[name] = side
    straight = {name: side.direct for name, side in ends.items()}
    sides.make_logins(project, straight)
    old_sides.loaded(straight["old"], old.schema, folder)
    tables = schema.tables(straight["old"])
    fewer = _fill(straight["old"], tables, old)
    config, notes = copied.copy(
        project, folder / "project", {name: side.via for name, side in ends.items()}, patient=False
    )
    largest = max(
        (int(query(straight["old"], f"SELECT count(*) FROM {_q(name)}")[0][0]) for name in tables), default=0
    )
    steps = small_steps(largest, batch_rows_of(f"{scenario.name}/{seed}"))
    document = merged(merged(merged(tomllib.loads(config.read_text()), steps), _SPARK), scenario.settings)
    config.write_text(toml_text(document))
    settings_ = configuration.load(config)
    admin = direct(settings_, straight["old"], straight["new"])
    wiring.upgrade_user_target(admin)
    sides.grant_printed(settings_, straight, both_ways=False)
    sides.whole_images(straight["old"], list(tables.values()))
    start = shadow.copied(straight["old"])
    return Stage(folder, config, admin, ends["old"], ends["new"], tables, start, (*fewer, *notes))


_SPARK: dict[str, dict[str, object]] = {"spark": {"master": "local[1]"}}


def _fill(old: Database, tables: Mapping[str, Table], order: Old) -> list[str]:
    """Fills the tables; says which ones got fewer rows than wanted, and why."""
    given_rows.filled(old, tables, order.rows)
    empty = {
        name: table for name, table in tables.items() if not query(old, f"SELECT 1 FROM {_q(name)} LIMIT 1")
    }
    if empty:
        found = generated.fill(old, empty, order.number)
        return [
            f"{name}: only {found.rows[name]} row(s) were taken: {why}" for name, why in found.fewer.items()
        ]
    return []


def application(stage: Stage) -> Database:
    """The old side with the application's login."""
    return sides.as_application(replace(stage.source.direct))


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
