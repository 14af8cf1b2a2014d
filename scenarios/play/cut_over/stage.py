"""The stage of a cut-over: that of a run the way there, and what the way back needs: its mapping, rights, logins."""

from __future__ import annotations

import shlex
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.model.server import Server
from migrator.wiring import parts as wiring
from scenarios.database import Database
from scenarios.faults.session import execute, query
from scenarios.play.stage import PIPELINE_USER, Stage, direct
from scenarios.play.stage import set_up as set_up_there
from scenarios.rehearsal.copied import SUPERUSERS
from scenarios.rehearsal.sides import as_application, let_fence
from scenarios.scenario import NUMBERED, Engine, Scenario
from scenarios.toml_text import merged, toml_text
from scenarios.workloads.counters.writers import NEW_NUMBERS
from verify.two_sides.history import NEW, OLD

QUERIES = "queries.yaml"
"""File of the project with what a dual read asks both sides."""
_PATIENT: Mapping[str, Mapping[str, object]] = {
    "cutover": {
        "old_fence": "triggers",  # whose refusal says where to go
        "new_fence": "triggers",
        "pause_s": 90.0,
        "max_lag_s": 60.0,
        "verify": "nothing",
    }
}
"""Settings of all cut-overs that are played: a busy machine must not undo them, and the judge is another one."""
_READS_GATE: Mapping[str, object] = {"reads_comparisons": 12, "reads_slower": 1000.0}
_POINT_READS = 'printf %s "$MIGRATOR_SIDE" > {}'
_SEE_OTHERS = f"GRANT pg_read_all_stats TO {PIPELINE_USER}"
"""The right with which a fence's login sees others' transactions on PostgreSQL; elsewhere an administrator fences."""
_KEEP_A_RECORD = f"GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, TRIGGER ON `{{}}`.* TO '{PIPELINE_USER}'@'%'"
"""The rights with which the tool makes the record of a cut-over elsewhere than on PostgreSQL."""


@dataclass(frozen=True, slots=True)
class BothWays:
    """The stage with both ways.

    Attributes:
        there: of the way there.
        back: settings of the way back, straight to the servers.
        applications: both sides as the application logs in, by side.
        pointed: file in which the hook for reads leaves the side that they go to.
    """

    there: Stage
    back: Settings
    applications: Mapping[str, Database]
    pointed: Path

    @property
    def direct(self) -> dict[str, Database]:
        """Returns both sides as an administrator logs in."""
        return {OLD: self.there.source.direct, NEW: self.there.target.direct}


def set_up(stack: ExitStack, scenario: Scenario, engine: Engine, seed: int) -> BothWays:
    """Starts and makes everything. Raises ``MigratorError`` with what can't be had."""
    fencer = {} if engine == "postgresql" else {"cutover": {"old_fencer": SUPERUSERS[engine]}}
    settings_of_all = merged(merged(_PATIENT, fencer), scenario.settings)
    scenario = replace(scenario, settings=settings_of_all)
    stage = set_up_there(stack, scenario, engine, seed)
    for name in ("reverse.py", QUERIES):
        shutil.copy(stage.workload.project / name, stage.config.parent)
    pointed = stage.config.parent / "reads"
    if scenario.cut_over is not None and scenario.cut_over.reads_alone:
        reads_hook = _POINT_READS.format(shlex.quote(str(pointed)))
        _set(stage.config, {"reads_hook": reads_hook, **_READS_GATE})
    if engine != "postgresql":
        _accept_administrators(stage.config, stage.source.direct)
    settings = configuration.load(stage.config, stage.environment)
    sides = {OLD: stage.source.direct, NEW: stage.target.direct}
    tables = {
        OLD: [one.old.table for one in stage.workload.tracked],
        NEW: [one.new.table for one in stage.workload.tracked],
    }
    if scenario.workload.options.get(NUMBERED):
        execute(sides[NEW], [NEW_NUMBERS])
    execute(sides[NEW], [f'ALTER TABLE "{table}" REPLICA IDENTITY FULL' for table in tables[NEW]])
    let_fence(settings, sides, tables)
    reads, writes = wiring.grants(way_back(settings))
    for side, script in ((NEW, reads), (OLD, writes)):
        execute(sides[side], script.needed)
        for statement, _ in script.perhaps:
            if statement.startswith("SELECT"):  # it prints further statements
                execute(sides[side], [str(row[0]).rstrip(";") for row in query(sides[side], statement)])
    execute(sides[NEW], [_SEE_OTHERS])
    if engine == "postgresql":
        execute(sides[OLD], [_SEE_OTHERS])
    else:
        execute(sides[OLD], [_KEEP_A_RECORD.format(sides[OLD].database)])
    straight = direct(configuration.load(stage.config, stage.environment), sides[OLD], sides[NEW])
    back = way_back(straight)
    back = replace(back, source=_at(back.source, sides[NEW]), target=_at(back.target, sides[OLD]))
    logins = {side: as_application(database) for side, database in sides.items()}
    return BothWays(replace(stage, settings=straight), back, logins, pointed)


def _accept_administrators(config: Path, old: Database) -> None:
    """Has the plan accept that an administrator's TRUNCATE fires no trigger: nobody here is one but we."""
    found = query(old, "SELECT CONCAT(User, '@', Host) FROM mysql.user WHERE User = %s", [old.user])
    _set(config, {"accepted_ways": [f"truncate {account}" for (account,) in found]})


def _set(config: Path, settings: Mapping[str, object]) -> None:
    """Puts further settings of cut-overs into a project's file."""
    config.write_text(toml_text(merged(tomllib.loads(config.read_text()), {"cutover": settings})))


def _at(server: Server, database: Database) -> Server:
    return replace(
        server,
        host=database.host,
        port=database.port,
        user=database.user,
        password=database.password or None,
    )
