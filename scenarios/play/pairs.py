"""Two hazards at once: scenarios made of two of the catalog that have the same writers."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import yaml

from scenarios.play.run_result import RESUMES
from scenarios.scenario import Scenario
from scenarios.toml_text import merged


def pairs(scenarios: Sequence[Scenario], count: int, seed: int) -> list[Scenario]:
    """Draws ``count`` different pairs under a seed; fewer if there aren't so many.

    Both scenarios must expect a run that goes on by itself (nobody knows what two halts would lead to), be no
    cut-overs, have faults and the same workload, share an engine, and not set the same option of a server or of the
    project.
    """
    able = [
        scenario
        for scenario in scenarios
        if scenario.expect.ending == RESUMES
        and scenario.faults
        and not scenario.waits_for
        and scenario.cut_over is None
    ]
    found = [
        pair for one, other in itertools.combinations(able, 2) if (pair := _pair(one, other)) is not None
    ]
    return random.Random(f"{seed}/pairs").sample(found, min(count, len(found)))


def scenario_yaml(scenario: Scenario) -> str:
    """A scenario as a file of the catalog would say it; ``catalog_files`` reads it back."""
    document: dict[str, Any] = {"title": scenario.title}
    for name, value in asdict(scenario).items():
        if name not in ("name", "title", "workload", "faults", "cut_over") and value != "":
            document[name] = _plain(value)
    document["expect"] = {key: value for key, value in document["expect"].items() if value != ""}
    document["workload"] = _flat(asdict(scenario.workload))
    document["faults"] = [_flat(asdict(fault)) for fault in scenario.faults]
    return str(yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=110))


def _pair(one: Scenario, other: Scenario) -> Scenario | None:
    engines = tuple(engine for engine in one.engines if engine in other.engines)
    same_keys = set(one.server) & set(other.server)
    alike = one.workload == other.workload and one.expect.verify == other.expect.verify
    if not alike or not engines or same_keys or clash(one, other):
        return None
    checks = tuple(code for code in one.expect.checks if code in other.expect.checks)
    return Scenario(
        name=f"{one.name}_and_{other.name}",
        title=f"{one.title}; and: {other.title}",
        workload=one.workload,
        hazards=tuple(dict.fromkeys([*one.hazards, *other.hazards])),
        engines=engines,
        faults=(*one.faults, *other.faults),
        expect=replace(one.expect, checks=checks),
        settings=merged(one.settings, other.settings),
        server={**one.server, **other.server},
        grants=tuple(dict.fromkeys([*one.grants, *other.grants])),
    )


def clash(one: Scenario, other: Scenario) -> bool:
    """Tells whether two scenarios set the same option of the project."""

    def names(scenario: Scenario) -> set[tuple[str, str]]:
        return {(section, name) for section, values in scenario.settings.items() for name in values}

    return bool(names(one) & names(other))


def _flat(document: dict[str, Any]) -> dict[str, Any]:
    """Puts ``options`` beside the other keys, as in a file, and leaves out values that are the default."""
    options = document.pop("options")
    return {**{k: _plain(v) for k, v in document.items() if v not in ("", None)}, **_plain(options)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(member) for key, member in value.items()}
    return [_plain(member) for member in value] if isinstance(value, tuple | list) else value
