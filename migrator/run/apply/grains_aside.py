"""Grains of joined targets on which a mapping fails: found by halves, and set aside where the project asks for it.

All that maps a joined target goes through here: batches, slices of them, pieces of a fill, whole fills. What a
target has of a grain is the mapping of the rows that belong to it. So a grain that is set aside is left out of both
sides: before a batch, as the target has none of its rows, and after it, where it fails again. A grain that a batch
touches is mapped again, and its record goes, or comes anew.

A mapping that fails without any grain, and one that fails on more grains than may go aside, stops the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from migrator.columnar.bad_rows import cut, row_text
from migrator.columnar.grains import Grains, Tables
from migrator.columnar.shown import key_text, shown
from migrator.errors import CORRECTED_MAPPING, MappingError, RowUnmapped
from migrator.model.progress import UNMAPPED, BadRow, GrainName
from migrator.ports.mirror import JoinedTarget, Mirror, Sides
from migrator.ports.target import TargetRows
from migrator.run.apply.halving import failing
from migrator.run.apply.joined_sides import conform
from migrator.run.apply.spark_jobs import SPARK_ERRORS, Job, SparkJobs
from migrator.run.apply.unmapped import read_of
from migrator.run.steps import Step
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.on_spark.pipeline import SIDE, arrow_frame, map_rows
from transforms.on_spark.session import named_jvm_end

_REASON = 500
_ROWS = 1000
_NAMED = 10


class Narrowed:
    """Rows of ever fewer grains, while grains are halved depth first: a half's are looked for in its whole's alone.

    Args:
        grains: of the target.
        tables: all rows.
    """

    def __init__(self, grains: Grains, tables: Tables):
        self._grains = grains
        self._wholes: list[tuple[frozenset[GrainName], Tables]] = []
        self._tables = tables

    def only(self, some: Sequence[GrainName]) -> Tables:
        """Returns the rows of some grains."""
        wanted = frozenset(some)
        while self._wholes and not wanted < self._wholes[-1][0]:
            self._wholes.pop()
        found = self._grains.only(self._wholes[-1][1] if self._wholes else self._tables, wanted)
        if len(wanted) > 1:
            self._wholes.append((wanted, found))
        return found


class GrainsAside:
    """The grains of a migration's joined targets.

    Args:
        spark: the session.
        plans: checked mappings with a grain, by target table.
        jobs: runs jobs while the target's transaction waits.
        most: how many grains of a target may go aside at a time; None: the first failure stops the run.
        step: called at the point ``joined.aside``.
        say: takes a word about the search, which may take minutes, for whoever watches the run.
    """

    def __init__(
        self,
        spark: SparkSession,
        plans: Mapping[str, MappingPlan],
        jobs: SparkJobs,
        most: int | None,
        step: Step,
        say: Callable[[str], None] = lambda _: None,
    ):
        self._spark, self._plans, self._jobs = spark, plans, jobs
        self._most, self._step, self._say = most, step, say
        self._grains: dict[str, Grains] = {}
        self._again: dict[str, set[GrainName]] = {}
        self._anew: set[str] = set()
        self._found: dict[str, list[BadRow]] = {}

    def begin(self) -> None:
        """Forgets what was found in the transaction before, which may have been undone."""
        self._again.clear()
        self._anew.clear()
        self._found.clear()

    def may(self, target: JoinedTarget) -> bool:
        """Tells whether a grain of this target may go aside."""
        return self._most is not None and self._of(target).apart

    def tried(self, target: JoinedTarget, mirror: Mirror, sides: Sides) -> Sides:
        """Rows as they are mapped: without grains set aside before, with all of them after, to be tried again."""
        held = _held(target, mirror)
        if not held:
            return sides
        grains = self._of(target)
        touched = held & {*grains.of(sides.before), *grains.of(sides.after)}
        if not touched:
            return sides
        self._again.setdefault(target.table.id.name, set()).update(touched)
        return Sides(grains.without(sides.before, held), grains.without(sides.after, ()), sides.dumped)

    def tried_all(self, target: JoinedTarget, mirror: Mirror) -> None:
        """Notes that the target is derived anew: grains and rows set aside of it are tried with all others, and the
        mapping may make some of them no more."""
        name = target.table.id.name
        if any(one.target == name for one in mirror.aside):
            self._anew.add(name)

    def awaited(
        self, target: JoinedTarget, mirror: Mirror, sides: Sides, job: Job, again: Callable[[Sides], pa.Table]
    ) -> pa.Table:
        """The mapped rows, without those of grains on which the mapping fails.

        Args:
            target: what is mapped.
            mirror: of the transaction that waits.
            sides: the rows that ``job`` maps.
            job: maps all of them.
            again: maps some of them.

        Raises ``MappingError`` where it isn't grains that are at fault, or too many are.
        """
        plan = self._plans[target.table.id.name]
        try:
            mapped = job()
        except MappingError as error:
            if not self.may(target):
                raise
            left = self._left(target, mirror, sides)
            if left is None:
                raise
            try:
                return again(left)
            except MappingError as rest:
                raise rest from error
        if self.may(target) and _fault(_after(mapped), plan) is not None:
            left = self._left(target, mirror, sides)
            return mapped if left is None else again(left)  # two rows of two grains are named by the target
        return mapped

    def noting(self, target: JoinedTarget, parts: Iterable[TargetRows]) -> Iterator[TargetRows]:
        """The same rows; with the last of them comes which grains went aside, and which were tried again."""
        last: TargetRows | None = None
        for part in parts:
            if last is not None:
                yield last
            last = part
        name = target.table.id.name
        found, again = tuple(self._found.pop(name, ())), frozenset(self._again.pop(name, ()))
        anew = name in self._anew
        self._anew.discard(name)
        if found or again or anew:
            last = last or TargetRows(target.table, None, None, None, False)
            last = replace(last, bad_rows=(*last.bad_rows, *found), grains=again, anew=anew)
        if last is not None:
            yield last

    def _of(self, target: JoinedTarget) -> Grains:
        name = target.table.id.name
        if name not in self._grains:
            self._grains[name] = Grains(target.reaches)
        return self._grains[name]

    def _left(self, target: JoinedTarget, mirror: Mirror, sides: Sides) -> Sides | None:
        """The rows without the grains at fault, whose records are kept; None where the mapping fails without any.

        Rows that are linked to no grain go as well: they may be what it fails on, and no target row is made of them.
        """
        plan, grains, most = self._plans[target.table.id.name], self._of(target), self._most or 0

        narrowed = Narrowed(grains, sides.after)

        tries = count(1)

        def fails(some: Sequence[GrainName]) -> str | None:
            name = plan.target.name
            self._say(f"looking for grains of {name} on which its mapping fails: try {next(tries)}")
            return self._failure(plan, narrowed.only(some), mirror)

        if fails(()) is not None:
            self._say("")
            return None  # whatever the grains are
        held = _held(target, mirror)
        there = grains.of(sides.after)
        groups = [one for one in there if one in held], [one for one in there if one not in held]
        found = dict(failing(groups, fails, most))
        self._say("")
        if len(found) > most:
            raise _too_many(plan, found, most)
        if found:
            self._step("joined.aside")
        records = [_record(target, plan, one, cause, grains, sides.after) for one, cause in found.items()]
        self._found.setdefault(target.table.id.name, []).extend(records)
        return Sides(
            grains.without(sides.before, held), grains.without(sides.after, found.keys()), sides.dumped
        )

    def _failure(self, plan: MappingPlan, tables: Tables, mirror: Mirror) -> str | None:
        def mapped() -> pa.Table:
            frames = {
                name: arrow_frame(self._spark, conform(plan, name, rows), plan.schemas[name])
                for name, rows in tables.items()
                if rows.num_rows
            }
            with named_jvm_end():  # else a grain would be blamed
                return map_rows(self._spark, plan, frames).toArrow()

        try:
            return _fault(self._jobs.once(mapped, mirror.stay), plan)
        except SPARK_ERRORS as error:
            return spark_cause(error)


def _held(target: JoinedTarget, mirror: Mirror) -> set[GrainName]:
    name = target.table.id.name
    return {(one.columns, one.key) for one in mirror.aside if one.grain and one.target == name}


def _after(mapped: pa.Table) -> pa.Table:
    if SIDE not in mapped.column_names:
        return mapped
    return mapped.filter(pc.equal(mapped[SIDE], 1)).drop_columns([SIDE])


def _fault(rows: pa.Table, plan: MappingPlan) -> str | None:
    """The reason for which a target surely refuses mapped rows: NULL in the key, or two rows of one key."""
    key = list(plan.target.key)
    if not rows.num_rows or not {*key} <= {*rows.column_names}:
        return None
    if {name for name, _ in plan.target.surrogates} & {*key}:
        return None  # numbers come later
    for name in key:
        if rows[name].null_count:
            return f"it returned NULL for {name}, a column of the key"
    try:
        counted = rows.select(key).group_by(key).aggregate([([], "count_all")])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # a type that Arrow doesn't group by
        return None
    twice = counted.filter(pc.greater(counted["count_all"], 1))
    if not twice.num_rows:
        return None
    return f"it returned two rows for key {key_text(key, [shown(twice[name][0]) for name in key])}"


def _record(
    target: JoinedTarget, plan: MappingPlan, grain: GrainName, cause: str, grains: Grains, tables: Tables
) -> BadRow:
    """The record of a grain, with its own rows and those linked to them; whoever writes it into the ledger adds the
    place."""
    texts = []
    own, linked = grains.own(tables, grain), grains.only(tables, [grain])
    for name, rows in {**own, **{name: rows for name, rows in linked.items() if name not in own}}.items():
        shows = read_of(plan, name, rows)
        texts += sorted(f"{name}: {row_text(shows.slice(n, 1))}" for n in range(min(rows.num_rows, _NAMED)))
        texts += [f"{name}: ..."] if rows.num_rows > _NAMED else []
    columns, key = grain
    reason = cut(f"{UNMAPPED}{cause} ({plan.target.where()})", _REASON)
    return BadRow(target.table.id.name, columns, key, "", 0, reason, cut("; ".join(texts), _ROWS), grain=True)


def _too_many(plan: MappingPlan, found: Mapping[GrainName, str], most: int) -> RowUnmapped:
    names = [key_text(*one) for one in found][:_NAMED]
    last = list(found.values())[-1]
    return RowUnmapped(
        f"the mapping of target table {plan.target.name!r} fails on more grains than may be set aside: {most}",
        where=f"grains {'; '.join(names)}; {plan.target.where()}",
        cause=last,
        remedy="correct the rows in the source, or the mapping; or let more be set aside: [apply]"
        f" bad_rows_per_table. Then start again: nothing was lost{CORRECTED_MAPPING}",
    )
