"""Scenarios as files: one short YAML file a hazard, its keys the fields of ``scenarios.scenario``.

Unknown keys of a fault or a workload go to their ``options``; anywhere else they are errors. All problems of a file
are reported together, each with its line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from pathlib import Path
from typing import Any, get_args

import yaml

from migrator.errors import ConfigError
from scenarios.scenario import (
    WORK_TO_COME,
    Answered,
    Asked,
    CutOver,
    Ending,
    Engine,
    Expectation,
    FaultSpec,
    Scenario,
    Step,
    Verified,
    WorkloadSpec,
    cut_over_checks,
)

CATALOG = Path(__file__).parents[1] / "catalog"
"""The scenarios that the tool brings."""

_NAME = re.compile(r"[a-z][a-z0-9_]*")
_CHECKS = re.compile(r"D[1-8]")
_REMEDY = "correct the lines named; docs/reference/scenarios-reference.md describes the keys"


def load(path: Path) -> Scenario:
    """Reads one scenario. Raises ``ConfigError`` with every problem of the file."""
    return parse(path, text_of(path))


def text_of(path: Path) -> str:
    """The file as it is. Raises ``ConfigError`` for one that can't be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the scenario {path} can't be read",
            where=str(path),
            cause=getattr(error, "strerror", None) or str(error),
            remedy="name a scenario of `migrator scenario list`, or a YAML file",
        ) from error


def parse(path: Path, text: str) -> Scenario:
    """A scenario from a file's text. Raises ``ConfigError`` with every problem."""
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ConfigError(
            f"{path} is no valid YAML",
            where=f"line {mark.line + 1}" if mark else str(path),
            cause=str(getattr(error, "problem", None) or error),
            remedy="correct the line named",
        ) from error
    reader = _Reader(loader)
    scenario = reader.scenario(path.stem, root)
    loader.dispose()
    if reader.problems or scenario is None:
        raise ConfigError(
            f"{len(reader.problems)} problem(s) in {path}", where="; ".join(reader.problems), remedy=_REMEDY
        )
    return scenario


def paths() -> dict[str, Path]:
    """The files of the catalog and of its folders, by scenarios' names."""
    return {path.stem: path for path in sorted(CATALOG.rglob("*.yaml"), key=lambda path: path.stem)}


def all() -> list[Scenario]:
    """All scenarios of the catalog, by name. Raises ``ConfigError`` for the first file with problems."""
    return [load(path) for path in paths().values()]


def path_of(name: str) -> Path:
    """The file of a scenario: a name of the catalog, or a path. Raises ``ConfigError`` naming those there are."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    known = paths()
    if name not in known:
        raise ConfigError(
            f"there is no scenario {name!r}", where=str(CATALOG), remedy=f"name one of: {', '.join(known)}"
        )
    return known[name]


class _Reader:
    """Turns YAML nodes into values, collecting problems instead of stopping at the first."""

    def __init__(self, loader: yaml.SafeLoader):
        self._loader = loader
        self.problems: list[str] = []

    def scenario(self, name: str, root: Any) -> Scenario | None:
        if not isinstance(root, yaml.MappingNode):
            self.problems.append("line 1: a scenario is a mapping of keys to values")
            return None
        if not _NAME.fullmatch(name):
            self.problems.append(
                f"file name: {name!r} is not [a-z][a-z0-9_]*, which a scenario's name must be"
            )
        values = self._fields(root, Scenario, _SCENARIO, "", None)
        if self.problems:
            return None
        self._check(values, root)
        if "cut_over" in values:
            expect = values.get("expect", Expectation())
            checks = cut_over_checks(expect.ending, values["cut_over"], values["workload"])
            values["expect"] = replace(expect, checks=checks)
        return None if self.problems else Scenario(name=name, **values)

    def _check(self, values: Mapping[str, Any], root: yaml.MappingNode) -> None:
        """Checks what concerns several keys at once."""
        line = root.start_mark.line + 1
        faults: tuple[FaultSpec, ...] = values.get("faults", ())
        for number, fault in enumerate(faults, 1):
            if fault.at and fault.after_changes:
                self.problems.append(
                    f"line {line}: faults[{number}]: either `at` or `after_changes`, not both"
                )
        if bool(values.get("waits_for")) != bool(values.get("until_then")):
            self.problems.append(
                f"line {line}: until_then: who waits for work to come names the scenario of today's stop, nobody else"
            )
        if "cut_over" in values and any(fault.after_changes for fault in faults):
            self.problems.append(
                f"line {line}: faults: in a cut-over they fire at a point, or from the start"
            )
        expect: Expectation = values.get("expect", Expectation())
        if expect.ending not in ("resumes", "restarts") and expect.verify:
            self.problems.append(f"line {line}: expect.verify: only a run that catches up can be verified")
        if expect.ending != "resumes" and not expect.error:
            self.problems.append(
                f"line {line}: expect.error: ending {expect.ending} needs the regular expression of its named error"
            )

    def workload(self, node: yaml.Node, at: str) -> WorkloadSpec | None:
        found: WorkloadSpec | None = self._object(node, WorkloadSpec, _WORKLOAD, at, "options")
        return found

    def faults(self, node: yaml.Node, at: str) -> tuple[FaultSpec, ...]:
        found = [
            self._object(child, FaultSpec, _FAULT, f"{at}[{number}]", "options")
            for number, child in enumerate(self._items(node, at), 1)
        ]
        return tuple(fault for fault in found if fault is not None)

    def expectation(self, node: yaml.Node, at: str) -> Expectation | None:
        found: Expectation | None = self._object(node, Expectation, _EXPECTATION, at, None)
        return found

    def text(self, node: yaml.Node, at: str) -> str:
        return str(self._scalar(node, at, str, "a text"))

    def pattern(self, node: yaml.Node, at: str) -> str:
        text = self.text(node, at)
        try:
            re.compile(text)
        except re.error as error:
            self._problem(node, at, f"{text!r} is no regular expression: {error}")
        return text

    def whole(self, node: yaml.Node, at: str) -> int:
        value = self._scalar(node, at, int, "a whole number")
        if isinstance(value, int) and value < 0:
            self._problem(node, at, f"{value} is below 0")
        return value if isinstance(value, int) else 0

    def number(self, node: yaml.Node, at: str) -> float:
        value = self._scalar(node, at, (int, float), "a number")
        if isinstance(value, int | float) and value < 0:
            self._problem(node, at, f"{value} is below 0")
        return float(value) if isinstance(value, int | float) else 0.0

    def flag(self, node: yaml.Node, at: str) -> bool:
        return bool(self._scalar(node, at, bool, "true or false"))

    def wholes(self, node: yaml.Node, at: str) -> tuple[int, ...]:
        return tuple(self.whole(child, f"{at}[{n}]") for n, child in enumerate(self._items(node, at), 1))

    def texts(self, node: yaml.Node, at: str) -> tuple[str, ...]:
        return tuple(self.text(child, f"{at}[{n}]") for n, child in enumerate(self._items(node, at), 1))

    def checks(self, node: yaml.Node, at: str) -> tuple[str, ...]:
        found = self.texts(node, at)
        wrong = [code for code in found if not _CHECKS.fullmatch(code)]
        if wrong or not found:
            self._problem(node, at, f"{', '.join(wrong) or 'nothing'}: checks are D1 to D8, at least one")
        return found

    def engines(self, node: yaml.Node, at: str) -> tuple[str, ...]:
        found = self.texts(node, at)
        wrong = [engine for engine in found if engine not in get_args(Engine)]
        if wrong or not found:
            self._problem(
                node, at, f"{', '.join(wrong) or 'nothing'}: engines are {', '.join(get_args(Engine))}"
            )
        return found

    def ending(self, node: yaml.Node, at: str) -> str:
        return self._one_of(node, at, get_args(Ending))

    def cut_over(self, node: yaml.Node, at: str) -> CutOver | None:
        found: CutOver | None = self._object(node, CutOver, _CUT_OVER, at, None)
        return found

    def steps(self, node: yaml.Node, at: str) -> tuple[Step, ...]:
        found = [
            self._object(child, Step, _STEP, f"{at}[{number}]", None)
            for number, child in enumerate(self._items(node, at), 1)
        ]
        return tuple(step for step in found if step is not None)

    def asked(self, node: yaml.Node, at: str) -> str:
        return self._one_of(node, at, get_args(Asked))

    def answered(self, node: yaml.Node, at: str) -> str:
        return self._one_of(node, at, get_args(Answered))

    def awaited(self, node: yaml.Node, at: str) -> str:
        return self._one_of(node, at, WORK_TO_COME)

    def verified(self, node: yaml.Node, at: str) -> str:
        return self._one_of(node, at, tuple(filter(None, get_args(Verified))))

    def words(self, node: yaml.Node, at: str) -> dict[str, str]:
        """A mapping of texts; numbers and flags as the file spells them, which is how a server takes them."""
        return {
            name: value.value if isinstance(value, yaml.ScalarNode) else self.text(value, f"{at}.{name}")
            for name, value in self._pairs(node, at)
        }

    def sections(self, node: yaml.Node, at: str) -> dict[str, dict[str, Any]]:
        return {
            name: {key: self._plain(value) for key, value in self._pairs(section, f"{at}.{name}")}
            for name, section in self._pairs(node, at)
        }

    # -- nodes --------------------------------------------------------------------------------------------------

    def _object(
        self, node: yaml.Node, kind: type, readers: Mapping[str, _Read], at: str, rest: str | None
    ) -> Any:
        before = len(self.problems)
        values = self._fields(node, kind, readers, at, rest)
        return None if len(self.problems) > before else kind(**values)

    def _fields(
        self, node: yaml.Node, kind: type, readers: Mapping[str, _Read], at: str, rest: str | None
    ) -> dict[str, Any]:
        values: dict[str, Any] = {}
        options: dict[str, Any] = {}
        for name, value in self._pairs(node, at):
            place = f"{at}.{name}" if at else name
            if name in readers:
                values[name] = readers[name](self, value, place)
            elif rest is not None:
                options[name] = self._plain(value)
            else:
                self._problem(value, place, f"unknown key; there are {', '.join(readers)}")
        if rest is not None:
            values[rest] = options
        for field in fields(kind):
            needed = field.default is MISSING and field.default_factory is MISSING and field.name in readers
            if needed and field.name not in values:
                self._problem(node, f"{at}.{field.name}" if at else field.name, "is missing")
        return values

    def _pairs(self, node: yaml.Node, at: str) -> list[tuple[str, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            self._problem(node, at, "is not a mapping of keys to values")
            return []
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value in found:
                self._problem(key, f"{at}.{key.value}" if at else key.value, "stands there twice")
            found[str(key.value)] = value
        return list(found.items())

    def _items(self, node: yaml.Node, at: str) -> list[yaml.Node]:
        if not isinstance(node, yaml.SequenceNode):
            self._problem(node, at, "is not a list")
            return []
        return list(node.value)

    def _one_of(self, node: yaml.Node, at: str, allowed: Sequence[str]) -> str:
        found = self.text(node, at)
        if found not in allowed:
            self._problem(node, at, f"{found!r} is none of {', '.join(allowed)}")
        return found

    def _scalar(self, node: yaml.Node, at: str, wanted: Any, name: str) -> Any:
        value = self._plain(node)
        if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
            self._problem(node, at, f"{value!r} is not {name}")
            return None
        return value

    def _plain(self, node: yaml.Node) -> Any:
        try:
            return self._loader.construct_object(node, deep=True)
        except yaml.YAMLError as error:
            self._problem(node, "", str(getattr(error, "problem", None) or error))
            return None

    def _problem(self, node: yaml.Node, at: str, text: str) -> None:
        self.problems.append(f"line {node.start_mark.line + 1}: {at}: {text}")


_Read = Callable[[_Reader, yaml.Node, str], Any]

_WORKLOAD: Mapping[str, _Read] = {
    "name": _Reader.text,
    "keys": _Reader.whole,
    "sessions": _Reader.whole,
    "changes": _Reader.whole,
    "rate_per_s": _Reader.number,
    "hot_percent": _Reader.whole,
}
_FAULT: Mapping[str, _Read] = {
    "do": _Reader.text,
    "at": _Reader.text,
    "after_changes": _Reader.whole,
    "heal_after_s": _Reader.number,
}
_EXPECTATION: Mapping[str, _Read] = {
    "ending": _Reader.ending,
    "error": _Reader.pattern,
    "checks": _Reader.checks,
    "verify": _Reader.verified,
}
_STEP: Mapping[str, _Read] = {"ask": _Reader.asked, "ends": _Reader.answered, "said": _Reader.pattern}
_CUT_OVER: Mapping[str, _Read] = {"way": _Reader.whole, "steps": _Reader.steps}
_SCENARIO: Mapping[str, _Read] = {
    "title": _Reader.text,
    "workload": _Reader.workload,
    "hazards": _Reader.wholes,
    "engines": _Reader.engines,
    "faults": _Reader.faults,
    "expect": _Reader.expectation,
    "settings": _Reader.sections,
    "server": _Reader.words,
    "waits_for": _Reader.awaited,
    "until_then": _Reader.text,
    "grants": _Reader.texts,
    "per_change": _Reader.flag,
    "cut_over": _Reader.cut_over,
}
