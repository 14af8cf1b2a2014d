"""The names under which this tool's modules are imported, and the processes that are started from them.

A checkout has the packages ``migrator``, ``transforms``, ``verify`` and ``scenarios`` at its top. The wheel has them
below ``dbmigrator``, where nobody else's module can be in their place. The build rewrites import statements; a
name that is handed over as text goes through ``own``, for the build leaves texts alone.
"""

from __future__ import annotations

import sys

PACKAGES = ("migrator", "transforms", "verify", "scenarios")
"""The packages at the top of a checkout."""
FACADE = "dbmigrator"
"""The package that users import from, in a checkout as in the wheel."""
_OFFERED = {
    "columns": "transforms.columns",
    "dual_read": "verify.dual_read",
    "frames": "transforms.frames",
    "gaps": "transforms.gaps",
    "project_env": "migrator.schema.project_env",
    "schema": "migrator.schema",
    "testing": "transforms.testing",
}
"""Modules of the facade, and whose they are."""
NAMESPACE = __name__.removesuffix("migrator.own_modules").rstrip(".")
"""The package that holds them where the wheel is installed; empty in a checkout."""


def own(module: str) -> str:
    """Returns the name under which one of our modules is imported here, by its name in a checkout."""
    return f"{NAMESPACE}.{module}" if NAMESPACE else module


def is_own(module: str) -> bool:
    """Tells whether a module is ours, by the name under which it is imported here."""
    first, _, below = module.partition(".")
    if first == FACADE and (not below or not NAMESPACE):
        return True
    inside = below if NAMESPACE and first == NAMESPACE else "" if NAMESPACE else module
    return inside in _OFFERED or inside.partition(".")[0] in PACKAGES


def in_checkout(module: str) -> str:
    """Returns the name that one of our modules has in a checkout; another's module keeps its own."""
    if not is_own(module):
        return module
    below = module.removeprefix(f"{FACADE}.")
    return _OFFERED.get(below, below) if below != module else module


def python_m(module: str) -> list[str]:
    """Returns the first words of a command that runs one of our modules as a process.

    ``-P`` keeps the working folder off its path: a user's ``json.py`` there would hide Python's.
    """
    return [sys.executable, "-P", "-m", own(module)]
