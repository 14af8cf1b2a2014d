"""Next functions of row-wise targets, looked at before anybody asks for them: what is wrong, what would differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from migrator.errors import MappingError
from migrator.model.finding import Finding
from migrator.model.ledger import Ledger
from migrator.model.remaps.remap import filling, in_force
from migrator.run.analysed import look
from migrator.run.lead.carried import mapped_now
from migrator.run.lead.differing import differing
from migrator.run.parts import Parts
from transforms import nexts
from transforms.analysis.fingerprint import fingerprint
from transforms.analysis.plan import MappingPlan


@dataclass(frozen=True, slots=True)
class NextCheck:
    """A next function: ``problems`` that keep it from coming into force, or in what it differs, in words."""

    target: str
    problems: tuple[Finding, ...]
    differs: str = ""


def next_checks(parts: Parts, ledger: Ledger | None) -> Iterator[NextCheck]:
    """Yields what is to be said of each function that is declared as next and isn't in force.

    A problem is fatal where the function's table is being filled: a start is refused then.
    """
    checkpoint = None if ledger is None else ledger.checkpoint
    remaps = () if checkpoint is None else checkpoint.remaps
    waiting = {name for name in parts.mapping.nexts if name not in in_force(remaps)}
    if not waiting:
        return
    asked = {one.target for one in filling(remaps)}
    mapping = nexts.alone(parts.mapping, waiting)
    looked = look(parts.spark, mapping, parts.catalog, parts.target)
    wrong = {one.where: one for one in looked.analysed.problems}
    for target in mapping.targets:
        name = target.name
        misfit = nexts.misfit(parts.mapping, name)
        found = [one for one in (misfit, wrong.get(target.where())) if one is not None]
        if found:
            yield NextCheck(name, tuple(_finding(one, name in asked) for one in found))
        elif name in looked.analysed.plans:
            yield NextCheck(name, (), _differs(parts, ledger, looked.analysed.plans[name]))


def _finding(error: MappingError, fatal: bool) -> Finding:
    return Finding("next", error.where, f"{error.what}: {error.cause}", error.remedy, fatal)


def _differs(parts: Parts, ledger: Ledger | None, plan: MappingPlan) -> str:
    known = () if ledger is None or ledger.checkpoint is None else ledger.checkpoint.mapped or ()
    old = next((one for one in known if one.target == plan.target.name), None)
    if old is None:
        return ""
    (new,) = mapped_now(
        {old.target: plan}, {old.target: old.schema}, lambda one: fingerprint(parts.spark(), one), {}
    )
    columns = {f"{name}.{column}" for name, schema in plan.schemas.items() for column in schema.names()}
    return differing(old, new, columns).said()
