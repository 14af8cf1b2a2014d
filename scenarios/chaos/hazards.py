"""Hazards by plain names for a project: the catalogue's scenarios whose faults fit any schema; profiles of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import get_args

from migrator.errors import ConfigError
from scenarios.chaos.profiles import PROFILES
from scenarios.faults.registry import needs_cluster, needs_replica, needs_zookeeper
from scenarios.play import catalog_files
from scenarios.play.pairs import clash
from scenarios.play.run_result import RESTARTS, RESUMES
from scenarios.scenario import Engine, Expectation, Scenario, WorkloadSpec
from scenarios.toml_text import merged

_LONGEST = 120
_OWN_STATEMENTS = ("sql", "statement", "table", "tables", "key", "statements")
"""Options of faults that name tables of one workload."""
_OF_PROCESSES = ("stop_continue",)
"""Faults of the pipeline's own processes, wherever they are then."""
_OWN_ROWS = ("savepoint", "prepare", "rogue_write", "repair", "deadlock")


@dataclass(frozen=True, slots=True)
class Hazard:
    """One hazard of the catalogue.

    Attributes:
        scenario: its faults and settings.
        left_out: why it doesn't fit a project; empty where it does.
    """

    scenario: Scenario
    left_out: str

    @property
    def name(self) -> str:
        """The plain name."""
        return self.scenario.name

    @property
    def engines(self) -> tuple[Engine, ...]:
        """The engines of an old side with which it can be: every one where nothing of the old side is touched."""
        faults = self.scenario.faults
        apart = faults and all(
            fault.do in _OF_PROCESSES or fault.options.get("side") == "target" for fault in faults
        )
        return get_args(Engine) if apart else self.scenario.engines

    def placed(self, engine: str) -> Scenario:
        """The scenario for an old side of that engine; settings of another engine's server are left out."""
        if engine in self.scenario.engines:
            return self.scenario
        return replace(self.scenario, server={})


@cache
def hazards() -> tuple[Hazard, ...]:
    """Every scenario of the catalogue, those that fit a project first."""
    found = [Hazard(one, _left_out(one)) for one in catalog_files.all()]
    return tuple(sorted(found, key=lambda one: (bool(one.left_out), one.name)))


def chosen(names: Sequence[str], engine: str) -> Scenario:
    """One scenario with the faults of all these hazards, for a source of that engine; without names, none is placed.

    Raises ``ConfigError`` for an unknown name, one that doesn't fit, and two that need different settings.
    """
    known = {one.name: one for one in hazards()}
    found: list[Scenario] = []
    for name in dict.fromkeys(names):
        if name not in known:
            raise ConfigError(
                f"there is no hazard {name!r}",
                where=name,
                remedy=f"name some of: {', '.join(one.name for one in known.values() if not one.left_out)}",
            )
        why = known[name].left_out or _engine(known[name], engine)
        if why:
            raise ConfigError(
                f"the hazard {name} can't be placed in this project",
                where=name,
                cause=why,
                remedy="leave it out; `migrator scenario run --hazard list` names those that can",
            )
        placed = known[name].placed(engine)
        other = next((one for one in found if _collide(one, placed)), None)
        if other is not None:
            raise ConfigError(
                "two hazards can't be in one run",
                where=f"{other.name}, {name}",
                cause="they set the same option of the project or of the server, or wait for the same moment",
                remedy="run them one after the other",
            )
        found.append(placed)
    return _together(found)


def profile(name: str, engine: str, seed: int = 1) -> list[list[str]]:
    """Names of the hazards of each run of a profile.

    Another seed begins with another run, so that a time budget doesn't leave out the same ones each night.
    """
    plan = PROFILES[name]
    able = [
        one
        for one in hazards()
        if not one.left_out
        and not _engine(one, engine)
        and (plan.hazards is None or one.name in plan.hazards)
    ]
    runs: list[list[Scenario]] = []
    for one in able:
        room = next(
            (
                run
                for run in runs
                if len(run) < plan.together and not any(_collide(other, one.placed(engine)) for other in run)
            ),
            None,
        )
        if room is None:
            runs.append([one.placed(engine)])
        else:
            room.append(one.placed(engine))
    together = [[one.name for one in run] for run in runs]
    found = [[], *([one.name] for one in able), *together] if plan.alone else together
    first = (seed - 1) % max(len(found), 1)
    return [*found[first:], *found[:first]]


def _together(found: Sequence[Scenario]) -> Scenario:
    settings: Mapping[str, Mapping[str, object]] = {}
    server: dict[str, str] = {}
    for one in found:
        settings = merged(settings, one.settings)
        server |= one.server
    restarts = any(one.expect.ending == RESTARTS for one in found)
    errors = "|".join(f"(?:{one.expect.error})" for one in found if one.expect.error)
    return Scenario(
        name=_name([one.name for one in found]),
        title="; and: ".join(one.title for one in found) or "Clients write, and nothing breaks",
        workload=WorkloadSpec("project"),
        hazards=tuple(dict.fromkeys(number for one in found for number in one.hazards)),
        faults=tuple(fault for one in found for fault in one.faults),
        expect=Expectation(RESTARTS if restarts else RESUMES, errors, ("D1", "D3", "D6", "D7", "D8")),
        settings=settings,
        server=server,
    )


def _name(names: Sequence[str]) -> str:
    """A name that a folder can have."""
    whole = "_and_".join(names) or "no_fault"
    return whole if len(whole) <= _LONGEST else f"{names[0]}_and_{len(names) - 1}_more"


def _left_out(scenario: Scenario) -> str:
    faults = scenario.faults
    if scenario.waits_for:
        return f"waits for: {scenario.waits_for}"
    if scenario.cut_over is not None:
        return "it is a cut-over: `migrator rehearse` tries a project's own"
    if not faults:
        return "nothing breaks: its own writers are the hazard"
    if scenario.expect.ending not in (RESUMES, RESTARTS):
        return "the run must stop by name there"
    if any(set(fault.options) & set(_OWN_STATEMENTS) for fault in faults) or any(
        word in fault.do for fault in faults for word in _OWN_ROWS
    ):
        return "it names tables of its own workload"
    if scenario.expect.verify == "different" or scenario.grants:
        return "it changes rows behind the migration's back"
    if needs_zookeeper(faults):
        return "it needs a ZooKeeper"
    if needs_cluster(faults):
        return "it needs a Spark cluster"
    if needs_replica(faults):
        return "it needs a replica"
    if any(one.do == "kill_worker" for one in faults):
        return "it needs a mapping with Python functions"
    return "it needs logins with passwords" if any(one.do == "rotate_password" for one in faults) else ""


def _engine(hazard: Hazard, engine: str) -> str:
    able: tuple[str, ...] = hazard.engines
    return "" if engine in able else f"it is for {', '.join(able)}, and the source is {engine}"


def _collide(one: Scenario, other: Scenario) -> bool:
    places = [{fault.at for fault in of.faults if fault.at} for of in (one, other)]
    return clash(one, other) or bool(set(one.server) & set(other.server)) or bool(places[0] & places[1])
