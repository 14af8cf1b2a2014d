"""The modules of the product, which the rules of ``test_tidy`` and ``test_tidy_structure`` look at. Read once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "transforms", "verify", "scenarios")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    """Path from the root of the tree."""
    return path.relative_to(ROOT).as_posix()


SOURCES = {name_of(path): path.read_text() for path in MODULES}


def broken_by(rule: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What a rule finds in the modules that break it."""
    found = {name: rule(source) for name, source in SOURCES.items()}
    return {name: places for name, places in found.items() if places}
