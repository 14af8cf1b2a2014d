"""The modules of the product, which the rules of ``test_tidy`` and ``test_tidy_structure`` look at. Read once."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "transforms", "verify", "scenarios")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))


def name_of(path: Path) -> str:
    """Path from the root of the tree."""
    return path.relative_to(ROOT).as_posix()


SOURCES = {name_of(path): path.read_text() for path in MODULES}


@cache
def parsed(source: str) -> ast.Module:
    """A module's tree, which nobody changes. Parsing all of them takes longer than any rule.

    They are kept from Python's search for garbage, which would look through all of them again and again.
    """
    tree = ast.parse(source)
    gc.freeze()
    return tree


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """Trees are let go once a module's rules have seen them: all together they are 200 MB."""
    yield
    gc.unfreeze()
    parsed.cache_clear()


def broken_by(rule: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What a rule finds in the modules that break it."""
    found = {name: rule(source) for name, source in SOURCES.items()}
    return {name: places for name, places in found.items() if places}
