"""The columns that both mappings of a project fill, in a process of its own: Spark is needed to see them.

``python -m scenarios.rehearsal.filled CONFIG`` prints one line of JSON: by way (``there``, ``back``) and target table
its ``key``, the ``columns`` that are filled, the ``sources`` read, the ``links`` declared.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.config.way_back import way_back
from migrator.errors import MigratorError, together
from migrator.run.analysed import look
from migrator.wiring import parts as wiring
from transforms.on_spark.session import stop_session


@dataclass(frozen=True, slots=True)
class Target:
    """One target table of a mapping: its key, the columns that are filled, and where they come from."""

    key: tuple[str, ...]
    columns: tuple[str, ...]
    sources: tuple[str, ...]
    links: tuple[str, ...]


def parsed(text: str) -> dict[str, dict[str, Target]]:
    """The targets by way and table, of what this module prints."""
    document = json.loads(text.strip().splitlines()[-1])
    return {
        way: {
            name: Target(**{key: tuple(value) for key, value in one.items()}) for name, one in found.items()
        }
        for way, found in document.items()
    }


def _filled(settings: Settings) -> dict[str, Any]:
    parts = wiring.parts(settings)
    looked = look(parts.spark, parts.mapping, parts.catalog, parts.target)
    for refused in looked.refused.values():
        raise refused
    if looked.analysed.problems:
        raise together(looked.analysed.problems)
    return {
        name: {
            "key": plan.target.key,
            "columns": [column.name for column in plan.columns],
            "sources": plan.target.sources,
            "links": plan.target.links or (),
        }
        for name, plan in looked.analysed.plans.items()
    }


def main(config: Path) -> int:
    """Prints what is filled; a named error and exit code 2 otherwise."""
    try:
        settings = configuration.load(config)
        found = {"there": _filled(settings)}
        if settings.back is not None and settings.back.mapping.exists():
            found["back"] = _filled(way_back(settings))
        print(json.dumps(found))
    except MigratorError as error:
        first, *rest = error.lines()
        print("\n".join([f"error: {first}", *(f"  {line}" for line in rest)]), file=sys.stderr)
        return 2
    finally:
        stop_session()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
