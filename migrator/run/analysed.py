"""The mapping held against the structure of both databases: what each function does, or all that is wrong with them.

Whoever needs the plans of a mapping gets them here, so that no function's problem hides another's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import SparkSession

from migrator.errors import MappingError, MigratorError, SourceError, TargetError
from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.ports.source import SourceCatalog
from migrator.ports.target import Target
from migrator.run.kept_plans import KeptPlans
from migrator.run.mapping_checks import check_key
from transforms.analysis.plan import MappingPlan, analyse
from transforms.registry import Mapping, TargetMapping

Table = TypeVar("Table", TableSchema, TargetTable)


@dataclass(frozen=True, slots=True)
class Structure:
    """Tables of both sides by name, as far as they can be read."""

    old: dict[str, TableSchema]
    new: dict[str, TargetTable]
    references: Sequence[Reference] = ()

    def lacks(self, target: TargetMapping) -> list[str]:
        """Names of the tables of a function that aren't here."""
        names = [name for name in target.sources if name not in self.old]
        return [*names, *([target.name] if target.name not in self.new else [])]


@dataclass(frozen=True, slots=True)
class Analysed:
    """The outcome for a mapping.

    Attributes:
        plans: by target table.
        problems: of declarations and of functions, in the order of the files; never one's because of another's.
        untried: functions whose tables can't be read, each with those tables.
    """

    plans: dict[str, MappingPlan]
    problems: tuple[MappingError, ...]
    untried: dict[str, list[str]]


def source_tables(mapping: Mapping) -> list[str]:
    """Names of the source tables that a mapping reads, in order of first mention."""
    return list(dict.fromkeys(name for target in mapping.targets for name in target.sources))


def analysed(
    spark: Callable[[], SparkSession], mapping: Mapping, structure: Structure, kept: KeptPlans | None = None
) -> Analysed:
    """Looks at every declaration and every function of a mapping; ``spark`` is called if there is one to look at.

    ``kept``: has plans of an earlier start, which are taken over as they are: who maps rows by them proves them.
    """
    plans: dict[str, MappingPlan] = {}
    problems: list[MappingError] = []
    untried: dict[str, list[str]] = {}
    for one in mapping.declared:
        if isinstance(one, MappingError):
            problems.append(one)
        elif lacking := structure.lacks(one):
            untried[one.name] = lacking
        else:
            plan, wrong = _one(spark, one, structure, kept)
            problems += wrong
            if plan is not None and not wrong:
                plans[one.name] = plan
    return Analysed(plans, tuple(problems), untried)


def _one(
    spark: Callable[[], SparkSession], target: TargetMapping, structure: Structure, kept: KeptPlans | None
) -> tuple[MappingPlan | None, list[MappingError]]:
    """Looks at one function: its plan, and what is wrong with it; a wrong key hides nothing else."""
    table, wrong, plan = structure.new[target.name], [], None
    try:
        check_key(target, table)
    except MappingError as error:
        wrong.append(error)
    try:
        if kept is not None:
            plan = kept.find(target, structure.old, table.columns, structure.references)
        plan = plan or analyse(spark(), target, structure.old, table.columns, structure.references)
    except MappingError as error:
        wrong.append(error)
    return plan, wrong


@dataclass(frozen=True, slots=True)
class Looked:
    """A mapping and both structures, as far as they can be read; ``refused``: why a table can't be."""

    structure: Structure
    analysed: Analysed
    refused: dict[str, MigratorError]


def look(
    spark: Callable[[], SparkSession], mapping: Mapping, catalog: SourceCatalog, target: Target
) -> Looked:
    """Looks at all that can be looked at, and says of the rest why not. Raises ``ConnectionFailed``."""
    refused: dict[str, MigratorError] = {}
    old = readable(catalog.tables, source_tables(mapping), refused)
    new = readable(target.tables, [one.name for one in mapping.targets], refused)
    references = catalog.references(list(old.values())) if grained(mapping) and old else []
    structure = Structure(old, new, references)
    return Looked(structure, analysed(spark, mapping, structure), refused)


def grained(mapping: Mapping) -> bool:
    """Tells whether any function has a grain: only those need the source's foreign keys."""
    return any(target.grain is not None for target in mapping.targets)


def readable(
    tables: Callable[[Sequence[str]], Sequence[Table]],
    names: Sequence[str],
    refused: dict[str, MigratorError],
) -> dict[str, Table]:
    """The structure of the tables that can be read; the errors of the others go to ``refused``."""
    found = {}
    for name in names:
        try:
            [found[name]] = tables([name])
        except (SourceError, TargetError) as error:
            refused[name] = error
    return found
