"""Looks before a run for values that the new schema can't hold, and names each by table, key, column and value.

Two looks. A sample of the source is mapped, and the target tries the rows in a copy of its table. And where a
target column is a source column unchanged, and the types alone don't say that all its values fit, the source
is asked for rows that don't (``model.fit``); what it finds is mapped, and tried by the target, in the same
way. So what is named really stops a run, and what is right never is.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.columnar.shown import key_text, shown
from migrator.errors import BesideError, MigratorError, TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule, doubts
from migrator.model.reach import Reach
from migrator.model.target import TargetTable
from migrator.run.commands.grain_proof import Grains, grains_of, mapped_grains
from migrator.run.commands.trial_map import TrialMap
from migrator.run.commands.trial_rows import TrialRows, texts
from migrator.run.parts import Parts
from transforms.analysis.lineage import unchanged
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.on_spark.pipeline import failing_row
from transforms.on_spark.session import named_jvm_end

CHECK = "value"
FUNCTION = "function"
_ROWS = 200
"""Rows of each source table that are mapped as they come, and tried."""
_SUSPECTS = 200
"""Rows of a chunk whose grains are mapped because the source suspects them."""
_COLUMN = re.compile(r"column (\w+): .* in the row with ", re.DOTALL)
"""A value that Spark can't make one of the target's type (see ``transforms.casts``)."""
_REMEDY = (
    "change the value in the mapping if that is meant, or give the column a type that holds it, in a revision of the"
    " target; or correct the source row. Then run `migrator check` again"
)


@dataclass(frozen=True, slots=True)
class Doubted:
    """A target column that is a source column unchanged, some values of which may not fit.

    Attributes:
        column: of the target.
        source: the source column's name.
        rules: which ones its values may break.
        condition: SQL that is true of such rows.
    """

    column: str
    source: str
    rules: tuple[Rule, ...]
    condition: str


def unfit(
    parts: Parts, plan: MappingPlan, table: TargetTable, seconds: float, sampled: pa.Table | None = None
) -> Iterator[Finding]:
    """Yields what of the source the target table can't hold. Changes nothing.

    Args:
        parts: structure of the source, chunk reader, target and Spark are used.
        plan: of the target.
        table: the target table.
        seconds: how long to look through each source table.
        sampled: target rows of whole grains, for a joined mapping.

    Raises ``ConnectionFailed``.
    """
    reader = parts.source(list(plan.schemas.values())).chunk_reader()
    try:
        rows = TrialRows(parts.spark(), reader, plan)
        look = _Look(parts, plan, table, rows, seconds)
        for finding in look.findings(sampled):
            if finding not in look.named:
                look.named.append(finding)
                yield finding
    finally:
        reader.close()


@dataclass(frozen=True)
class _Look:
    parts: Parts
    plan: MappingPlan
    table: TargetTable
    source: TrialRows
    seconds: float
    named: list[Finding] = field(default_factory=list)

    def findings(self, sampled: pa.Table | None) -> Iterator[Finding]:
        try:
            if self.plan.reaches:
                yield from () if sampled is None else self._of(sampled)
            else:
                for name in self.plan.reads:
                    yield from self._mapped(name, self.source.first(name, _ROWS))
        except MigratorError as error:
            yield self._unlooked(error)
        for name, doubted in self._doubted().items() if self.seconds else ():
            try:
                yield from self._searched(name, doubted)
            except MigratorError as error:
                yield self._unlooked(error)

    def _unlooked(self, error: MigratorError) -> Finding:
        if error.retryable:
            raise error
        return Finding(
            CHECK, str(self.table.id), f"{error.what}: {error.cause}", error.remedy or _REMEDY, fatal=False
        )

    def _doubted(self) -> dict[str, list[Doubted]]:
        """Returns, by source table, the columns whose values may not fit, and can be asked for."""
        rules = self.parts.target.holds(self.table)
        found: dict[str, list[Doubted]] = {}
        for column, origins in unchanged(self.parts.spark(), self.plan).items():
            for name, origin in sorted(origins):
                schema = self.plan.schemas[name]
                source_column = next(one for one in schema.columns if one.name == origin)
                broken = doubts(source_column, rules.get(column, ()))
                conditions = [
                    sql for rule in broken if (sql := self.parts.catalog.doubted(source_column, rule))
                ]
                if conditions:
                    found.setdefault(name, []).append(Doubted(column, origin, broken, _any(conditions)))
        return found

    def _searched(self, name: str, doubted: Sequence[Doubted]) -> Iterator[Finding]:
        """Looks through a source table, for columns of which nothing is named yet."""
        until = time.monotonic() + self.seconds
        wanted = list(doubted)

        def condition() -> str:
            return _any([one.condition for one in wanted])

        def unnamed() -> list[Doubted]:
            known = {finding.subject for finding in self.named}
            return [one for one in wanted if self._subject(one.column) not in known]

        wanted = unnamed()
        whole = not wanted
        for rows, final in self.source.where(name, condition) if wanted else ():
            tried = min(rows.num_rows, _SUSPECTS) if self.plan.reaches else rows.num_rows
            if tried:
                yield from self._suspected(name, wanted, rows.slice(0, tried))
            wanted, whole = unnamed(), final and tried == rows.num_rows
            if not wanted or time.monotonic() > until:
                break
        if wanted and not whole:
            columns = ", ".join(dict.fromkeys(one.source for one in wanted))
            yield Finding(
                CHECK,
                f"{self.plan.schemas[name].id}",
                f"not all values of {columns} were looked at within {self.seconds:g} s; {self.table.id} can't hold"
                " all that their types allow",
                "look longer: migrator check --value-seconds 600",
                fatal=False,
            )

    def _suspected(self, name: str, wanted: Sequence[Doubted], rows: pa.Table) -> Iterator[Finding]:
        if not self.plan.reaches:
            yield from self._mapped(name, rows)
            return
        try:
            yield from self._tried(lambda plan: self._of_grains(plan, name, rows))
        except MigratorError as error:
            if error.retryable:
                raise
            yield self._untried(name, wanted, rows, error)

    def _untried(self, name: str, wanted: Sequence[Doubted], rows: pa.Table, error: MigratorError) -> Finding:
        """Names a row of which nobody knows what the mapping makes of it."""
        schema, columns = self.plan.schemas[name], list(dict.fromkeys(one.source for one in wanted))
        key = key_text(schema.key, [texts(rows[part])[0] for part in schema.key])
        values = ", ".join(f"column {column}, value {shown(rows[column][0])!r}" for column in columns)
        kinds = " or ".join(dict.fromkeys(rule.limit.value for one in wanted for rule in one.rules))
        problem = (
            f"{schema.id}, {key}, {values}: {', '.join(one.column for one in wanted)} of {self.table.id} doesn't"
            f" take {kinds}, and whether the mapping leaves the row out wasn't tried ({error.what}: {error.cause})"
        )
        return Finding(CHECK, str(self.table.id), problem, _REMEDY, fatal=False)

    def _of_grains(self, plan: MappingPlan, name: str, rows: pa.Table) -> pa.Table:
        """Returns the target rows of all grains that rows of one table belong to."""
        mapping = TrialMap(self.parts.spark(), plan, self.source)
        samples: list[Grains] = []
        for reach in self.plan.reaches:
            for index in (one for one, node in enumerate(reach.nodes) if node.schema.id.name == name):
                root, first = self._first(reach, index, rows)
                if first.num_rows:
                    count = sum(one.count() for one in samples)
                    samples.append(grains_of(mapping, reach, {root: first}, count))
        if not samples:
            return mapping.mapped({})
        return mapped_grains(mapping, samples, lambda _: True)

    def _first(self, reach: Reach, index: int, rows: pa.Table) -> tuple[int, pa.Table]:
        """The rows that have the grains of a node's rows, and the index of their node."""
        while (above := reach.nodes[index].above) is not None:
            node, upper = reach.nodes[index], reach.nodes[above]
            values = rows.select(list(node.columns)).rename_columns(list(node.above_columns))
            rows = self.source.linked(upper.schema.id.name, node.above_columns, values)
            index = above
        return index, rows

    def _mapped(self, name: str, rows: pa.Table) -> Iterator[Finding]:
        """Maps rows of one table of a row-wise mapping, and has the target try them."""
        spark = self.parts.spark()
        yield from self._tried(
            lambda plan: TrialMap(spark, plan, self.source).mapped({name: rows}),
            lambda: self._where(name, rows),
        )

    def _where(self, name: str, rows: pa.Table) -> str:
        """The row on which a mapping fails, where its error doesn't say it."""
        failing, schema = failing_row(self.parts.spark(), self.plan, name, rows), self.plan.schemas[name]
        if failing is None:
            return ""
        key = [texts(rows[part])[failing.index] for part in schema.key]
        return f"{schema.id}, {key_text(schema.key, key)}: "

    def _tried(
        self, mapped: Callable[[MappingPlan], pa.Table], where: Callable[[], str] = str
    ) -> Iterator[Finding]:
        """Maps rows, column by column less where one can't be made, and has the target try them."""
        plan = self.plan
        while True:
            try:
                with named_jvm_end():
                    new = mapped(plan)
                break
            except (PySparkException, Py4JError) as error:
                cause = spark_cause(error)
            found = _COLUMN.search(cause)
            column = found[1] if found else ""
            left = tuple(one for one in plan.columns if one.name != column)
            if column in plan.target.key or len(left) == len(plan.columns):
                yield Finding(CHECK, str(self.table.id), f"the mapping fails: {where()}{cause}", _REMEDY)
                return
            yield Finding(CHECK, self._subject(column), cause[found.start() if found else 0 :], _REMEDY)
            plan = replace(plan, columns=left)
        yield from self._of(new)

    def _of(self, new: pa.Table) -> Iterator[Finding]:
        """Yields the columns of mapped rows that hold something that the target doesn't take."""
        key = list(self.plan.target.key)
        said = self._said(new)
        if said is None:
            return
        if isinstance(said, BesideError):
            yield Finding(
                FUNCTION, str(self.table.id), f"{said.what} ({said.where}): {said.cause}", said.remedy
            )
            return
        others = [name for name in new.column_names if name not in key]
        wrong = [key] if self._said(new.select(key)) else [[name] for name in others]
        found = False
        for names in wrong:
            rows = new.select(list(dict.fromkeys([*key, *names])))
            error = self._said(rows)
            if error is not None:
                found = True
                yield self._finding(rows, names, error)
        if not found:
            yield self._finding(new, [], said)

    def _said(self, rows: pa.Table) -> TargetError | None:
        left = [column.name for column in self.plan.columns if column.name not in rows.column_names]
        error = self.parts.target.refused(self.table, rows, left) if rows.num_rows else None
        if error is not None and error.retryable:
            raise error
        return error

    def _finding(self, rows: pa.Table, names: Sequence[str], error: TargetError) -> Finding:
        """Names the first row at fault, found by halves; none where only several together are refused."""
        first, last = 0, rows.num_rows
        while last - first > 1:
            middle = (first + last) // 2
            half = self._said(rows.slice(first, middle - first))
            if half is not None:
                last, error = middle, half
                continue
            half = self._said(rows.slice(middle, last - middle))
            if half is None:
                return Finding(CHECK, str(self.table.id), f"{error.what}; {error.cause}", error.remedy)
            first, error = middle, half
        key = self.plan.target.key
        place = key_text(key, [shown(rows[name][first]) for name in key])
        values = "".join(f", column {name}, value {shown(rows[name][first])!r}" for name in names)
        kinds = {column.name: column.native_type for column in self.table.columns}
        kind = f" ({kinds[names[0]]})" if len(names) == 1 else ""
        problem = f"{place}{values}{kind}: {error.cause or error.what}"
        return Finding(CHECK, self._subject(", ".join(names)), problem, _REMEDY)

    def _subject(self, column: str) -> str:
        return f"{self.table.id}.{column}" if column else str(self.table.id)


def _any(conditions: Sequence[str]) -> str:
    return " OR ".join(f"({one})" for one in conditions)
