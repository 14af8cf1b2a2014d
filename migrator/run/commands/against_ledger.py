"""The mapping as it is now against the ledger: what a start would refuse, or couldn't compare. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from migrator.errors import MigratorError
from migrator.model.finding import Finding
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.run.migration import carried_by
from migrator.run.parts import Parts
from transforms.analysis.plan import MappingPlan


def against_ledger(
    parts: Parts, ledger: Ledger | None, targets: Sequence[TargetTable], plans: Mapping[str, MappingPlan]
) -> list[Finding]:
    """Returns what a start with this mapping would refuse, or warn of, because of rows that the target has.

    Args:
        parts: of the project.
        ledger: as committed now; None before the first run.
        targets: the target tables.
        plans: the checked mappings, by target.
    """
    if ledger is None or parts.late is None:
        return []
    derived: list[str] = []
    joining: list[str] = []

    def keep(act: str, detail: str) -> None:
        if act == "derive anew":
            derived.append(detail)

    def begin(target: str, tables: Sequence[TableId]) -> None:
        joining.append(f"all rows of {', '.join(map(str, tables))} once more, for {target}")

    looking = replace(parts.late, forget_filled=lambda _: True, keep=keep, begin=begin)
    try:
        carried = carried_by(replace(parts, late=looking), ledger.checkpoint, targets, plans)
    except MigratorError as error:
        return [Finding("mapping", error.where, f"{error.what}: {error.cause}", error.remedy)]
    return [
        *(
            _warning(text, "verify once the run has caught up: `migrator verify`")
            for text in carried.warnings
        ),
        *(
            _warning(
                f"the next start derives all rows anew of {text}",
                "put back what was changed if it wasn't meant",
            )
            for text in derived
        ),
        *(
            _warning(f"the next start reads {text}", "take the target out of the mapping if it wasn't meant")
            for text in joining
        ),
    ]


def _warning(problem: str, remedy: str) -> Finding:
    return Finding("mapping", "against the ledger", problem, remedy, fatal=False)
