"""The names that users import: ``from dbmigrator import Mapping, columns``.

``Mapping`` and ``load_mapping`` are for the mapping and its tests. Modules: ``columns`` is the column library,
``frames`` has constants, ``gaps`` marks what is open, ``testing`` runs a mapping in unit tests, ``dual_read``
compares in an application, ``schema`` makes this tool's tables, ``project_env`` does the work of ``alembic/env.py``.
Each is imported when it is asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from migrator import __version__

if TYPE_CHECKING:
    from dbmigrator import columns, dual_read, frames, gaps, project_env, schema, testing

    from transforms import Mapping, TargetMapping, load_mapping

__all__ = [
    "Mapping",
    "TargetMapping",
    "__version__",
    "columns",
    "dual_read",
    "frames",
    "gaps",
    "load_mapping",
    "project_env",
    "schema",
    "testing",
]
_OF_THE_MAPPING = ("Mapping", "TargetMapping", "load_mapping")


def __getattr__(name: str) -> Any:
    if name in _OF_THE_MAPPING:
        import transforms as of_the_mapping

        return getattr(of_the_mapping, name)
    if name in __all__:
        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
