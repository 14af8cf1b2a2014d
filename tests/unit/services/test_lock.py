"""The lock file has a version of every requirement, within its bounds and with hashes, for each Python we name."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
LOCKS = {"requirements.lock": ("keyring", "sasl"), "docker/build-requirements.txt": ()}


def entries(text: str) -> list[tuple[Requirement, int]]:
    """Each locked package with the number of its hashes."""
    parts = re.split(r"(?m)^(?=[a-z0-9])", text)
    return [
        (Requirement(part.split("\\")[0]), part.count("--hash=sha256:")) for part in parts if part.strip()
    ]


def unmet(wanted: list[str], locked: list[tuple[Requirement, int]], python: str) -> list[str]:
    """Requirements that the lock doesn't meet on a version of Python on Linux."""
    where = {"python_full_version": f"{python}.0", "python_version": python, "sys_platform": "linux",
             "platform_python_implementation": "CPython", "implementation_name": "cpython"}  # fmt: skip
    found = {
        canonicalize_name(one.name): next(iter(one.specifier)).version
        for one, _ in locked
        if one.marker is None or one.marker.evaluate(where)
    }
    needs = map(Requirement, wanted)
    return [
        str(one)
        for one in needs
        if not one.specifier.contains(found.get(canonicalize_name(one.name), "0.dev0"), prereleases=False)
    ]


@pytest.mark.parametrize("python", PYTHONS)
def test_every_requirement_is_locked_within_its_bounds(python: str) -> None:
    locked = entries((ROOT / "requirements.lock").read_text())
    extras = [one for extra in LOCKS["requirements.lock"] for one in PROJECT["optional-dependencies"][extra]]
    assert unmet([*PROJECT["dependencies"], *extras], locked, python) == []


@pytest.mark.parametrize("name", LOCKS)
def test_every_entry_has_one_version_and_hashes(name: str) -> None:
    found = entries((ROOT / name).read_text())
    assert len(found) > 2
    for one, hashes in found:
        assert [pin.operator for pin in one.specifier] == ["=="], one
        assert hashes > 0, one
    assert "://" not in re.sub(r"(?m)^\s*#.*", "", (ROOT / name).read_text()), "no address of one index"


def test_a_requirement_beyond_the_lock_is_noticed() -> None:
    locked = entries(
        "click==8.5.1 \\\n    --hash=sha256:00\nnumpy==2.4.6 ; python_full_version < '3.12' \\\n"
    )
    assert unmet(["click>=8.5", "numpy>2"], locked, "3.11") == []
    assert unmet(["click>=9", "numpy>2", "rich>1"], locked, "3.12") == ["click>=9", "numpy>2", "rich>1"]
    assert [hashes for _, hashes in locked] == [1, 0]


def test_the_pythons_are_those_that_ci_tries() -> None:
    ci = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert re.findall(r'"(3\.\d+)"', ci) == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
