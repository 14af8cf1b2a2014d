"""Maps some rows of the source for a look, and writes nothing: no lease, no slot, no event log, no target table.

A row-wise mapping is tried row by row, a joined one grain by grain, each with all the rows that its target rows
depend on. What can't be mapped or stored is told by column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from migrator.errors import RequestError
from migrator.model.reach import Reach, entangled
from migrator.model.requests.request import Scope
from migrator.model.table import TableSchema
from migrator.run.commands.dump_order import key_of
from migrator.run.commands.grain_proof import REMEDY, prove
from migrator.run.commands.trial_map import TrialMap, united, without
from migrator.run.commands.trial_rows import TrialRows, texts, tuples
from migrator.run.migration import plans
from migrator.run.parts import Parts
from transforms.analysis.grain_numbers import NUMBER
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.on_spark.pipeline import map_rows, parquet_frame
from transforms.on_spark.session import named_jvm_end
from transforms.registry import Mapping as TargetMappings

Tables = dict[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Trial:
    """The result of mapping one row, or one grain.

    Attributes:
        name: of what: ``orders order_id=1``.
        old: the rows read, by source table, the one they begin at first; their keys and the columns that the mapping
            reads.
        new: target rows; None where the mapping fails on these rows.
        problems: ``(column, cause)`` of what can't be mapped or stored; the column is empty where none can be
            named.
    """

    name: str
    old: Mapping[str, pa.Table]
    new: pa.Table | None
    problems: Sequence[tuple[str, str]] = field(default=())


def trials(
    parts: Parts, table: str, limit: int, keys: Sequence[str] = (), source: str | None = None
) -> Iterator[Trial]:
    """Tries the mapping of a target table.

    Args:
        parts: only structure of both sides, chunk reader and Spark are used.
        table: the target table.
        limit: rows or grains at most, of each source table they begin at.
        keys: keys of the rows to begin at, as text; none: the first ones.
        source: the table they begin at; needed with keys where there are several.

    Raises ``MappingError``, ``RequestError``, ``SourceError``, ``TargetError``, ``ConnectionFailed``.
    """
    plan = _plan(parts, table)
    begins = _begins(plan)
    chosen = _chosen(begins, source, keys)
    reader = parts.source(list(plan.schemas.values())).chunk_reader()
    grain_of: dict[tuple[object, ...], str] = {}
    shown: set[tuple[object, ...]] = set()
    try:
        for name in chosen:
            rows = TrialRows(parts.spark(), reader, plan)
            look = _Look(parts, plan, rows, TrialMap(parts.spark(), plan, rows), limit, keys)
            reach = begins[name]
            if reach is None:
                yield from look.rows(name)
            else:
                yield from (
                    _with_clashes(trial, plan, reach, grain_of) for trial in look.grains(reach, shown)
                )
        if plan.reaches and not keys and (wrong := prove(parts, plan, limit).wrong):
            key = ", ".join(plan.target.key)
            yield Trial("these grains together", {}, None, [(key, f"{wrong}; {REMEDY}")])
    finally:
        reader.close()


def _begins(plan: MappingPlan) -> dict[str, Reach | None]:
    """The tables that a look may begin at, each with the reach that has it first; None of a row-wise mapping."""
    found: dict[str, Reach | None] = {}
    for reach in plan.reaches:
        for index in reach.roots():
            found[reach.nodes[index].schema.id.name] = reach.begun_at(index) if index else reach
    return found or dict.fromkeys(plan.reads)


def _plan(parts: Parts, table: str) -> MappingPlan:
    if table not in parts.mapping:
        raise RequestError(
            f"the mapping makes no table {table!r}",
            cause=f"it makes {', '.join(target.name for target in parts.mapping)}",
            remedy="name one of them",
        )
    alone = TargetMappings()
    alone.add(parts.mapping[table])
    return plans(replace(parts, mapping=alone))[2][table]


def _chosen(begins: Mapping[str, object], source: str | None, keys: Sequence[str]) -> list[str]:
    names = list(begins)
    if (source is None and keys and len(names) > 1) or (source is not None and source not in begins):
        raise RequestError(
            f"{source!r} is no table to begin at" if source else "--key needs to know of which table",
            cause=f"rows of this target begin at {', '.join(names)}",
            remedy=f"name one of them: --source {names[0]}",
        )
    return names if source is None else [source]


@dataclass(frozen=True)
class _Look:
    parts: Parts
    plan: MappingPlan
    source: TrialRows
    map: TrialMap
    limit: int
    keys: Sequence[str]

    def rows(self, table: str) -> Iterator[Trial]:
        """Row by row, those that a row-wise mapping reads of one table."""
        found = self._begun(table)
        for index in range(found.num_rows):
            row = found.slice(index, 1)
            yield self._tried(_named(self.plan.schemas[table], row), {table: row}, {})

    def grains(self, reach: Reach, shown: set[tuple[object, ...]]) -> Iterator[Trial]:
        """Grain by grain, each with all rows linked to it.

        ``shown``: values of a grain that tables share which are shown already, from another of them; gets these.
        """
        root = reach.root
        for begun in self._grains(reach):
            values = set(tuples(begun, reach.grain)) if reach.shared else set()
            if values and values <= shown:
                continue
            shown |= values
            old, others = self._linked(reach, begun)
            rest = others if entangled(self.plan.reaches) else {}
            more = f" and {begun.num_rows - 1} more" if begun.num_rows > 1 else ""
            yield self._tried(_named(root.schema, begun.slice(0, 1)) + more, old, rest)

    def _begun(self, table: str) -> pa.Table:
        """The rows to begin at."""
        if not self.keys:
            return self.source.first(table, self.limit)
        schema = self.plan.schemas[table]
        keys = tuple(dict.fromkeys(key_of("--key", text, schema) for text in self.keys))
        self.parts.catalog.check_scope(schema, Scope(keys=keys))
        found = self.source.of_keys(table, keys)
        if not found.num_rows:
            raise RequestError(
                f"no row of {schema.id} has such a key",
                where=f"--key {self.keys[0]}",
                remedy="correct the key",
            )
        return found

    def _grains(self, reach: Reach) -> Iterator[pa.Table]:
        """Per grain the rows of its own table."""
        table = reach.root.schema.id.name
        begun = self._begun(table)
        columns = list(reach.grain)
        if not columns:
            begun, columns = self.map.numbered(reach, begun), [NUMBER]
        wanted = begun.select(columns).group_by(columns, use_threads=False).aggregate([])
        key = list(reach.root.schema.key)
        seen: set[tuple[object, ...]] = set()
        for index in range(min(self.limit, wanted.num_rows)):
            value = wanted.slice(index, 1)
            if any(column.null_count for column in value.columns):
                continue  # NULL is looked up by no link: such rows are a grain that only the whole table shows
            if columns == [NUMBER]:
                whole = self.map.numbered(reach, self.source.whole(table))
                found = whole.filter(pc.equal(whole[NUMBER], value[NUMBER][0]))
                yield found.drop_columns([NUMBER])
                continue
            found = self.source.linked(table, columns, value)
            own = set(tuples(found, key))
            if (
                not own <= seen
            ):  # the source may take values for one that differ here ('A', 'a'): one grain, shown once
                yield found
            seen |= own

    def _linked(self, reach: Reach, begun: pa.Table) -> tuple[Tables, Tables]:
        """All rows linked to a grain's own, and the same without the grain's own, by table."""
        found = [begun]
        for node in reach.nodes[1:]:
            if node.above is None:
                above = begun.select(list(reach.grain))
            else:
                above = found[node.above].select(list(node.above_columns))
            found.append(self.source.linked(node.schema.id.name, node.columns, above))
        every: Tables = {}
        for node, rows in zip(reach.nodes, found, strict=True):
            name = node.schema.id.name
            every[name] = united(every.get(name), rows, list(node.schema.key))
        others = dict(every)
        for index in reach.roots():
            schema = reach.nodes[index].schema
            others[schema.id.name] = without(others[schema.id.name], found[index], list(schema.key))
        return every, others

    def _tried(self, name: str, old: Tables, rest: Tables) -> Trial:
        """Maps rows; of rows that stand for other grains too, by half, only what the grain itself makes is kept."""
        shown = {
            table: self._shown(table, self.source.without_values(table, rows)) for table, rows in old.items()
        }
        try:
            with named_jvm_end():
                new = self.map.mapped(old)
                if rest:
                    key = list(self.plan.target.key)
                    new = without(new, self.map.mapped(rest), key)
        except (PySparkException, Py4JError) as error:
            return Trial(name, shown, None, self._failing(old) or [("", spark_cause(error))])
        return Trial(name, shown, new, self._unstorable(new))

    def _shown(self, table: str, rows: pa.Table) -> pa.Table:
        """Returns the key and the columns that the mapping reads: others (a password, say) are nobody's to see."""
        read = {*self.plan.reads.get(table, ()), *self.plan.schemas[table].key}
        return rows.select([name for name in rows.column_names if name in read])

    def _failing(self, tables: Tables) -> list[tuple[str, str]]:
        """The columns that can't be computed, each asked alone."""
        found = []
        with TemporaryDirectory() as folder:
            # From files: of rows in memory Spark computes every column while it plans, asked for or not.
            frames = {name: self._stored(name, rows, Path(folder)) for name, rows in tables.items()}
            for column in self.plan.columns:
                alone = map_rows(self.map.spark, self.plan, frames).select(
                    F.col(f"`{column.name.replace('`', '``')}`")
                )
                try:
                    with named_jvm_end():
                        alone.toArrow()
                except (PySparkException, Py4JError) as error:
                    found.append((column.name, spark_cause(error)))
        return found

    def _stored(self, table: str, rows: pa.Table, folder: Path) -> DataFrame:
        path = folder / f"{len(list(folder.iterdir()))}.parquet"
        pq.write_table(self.source.without_values(table, rows), path)
        return parquet_frame(self.map.spark, [path], self.plan.schemas[table])

    def _unstorable(self, new: pa.Table) -> list[tuple[str, str]]:
        key = self.plan.target.key
        problems = [
            (column.name, "NULL, and the target's column is NOT NULL")
            for column in self.plan.columns
            if (column.name in key or not column.nullable) and new[column.name].null_count
        ]
        if len(set(tuples(new, key))) < new.num_rows:
            problems.append((", ".join(key), "two rows of one key"))
        return problems


def _with_clashes(
    trial: Trial, plan: MappingPlan, reach: Reach, grain_of: dict[tuple[object, ...], str]
) -> Trial:
    """A grain's trial, with the first key that an earlier grain made too: then the grain, or the key, is wrong.

    Args:
        trial: of one grain.
        plan: of the target.
        reach: of the grain.
        grain_of: keys of the earlier grains' rows, with their names; gets this one's.
    """
    if trial.new is None:
        return trial
    keys = dict.fromkeys(tuples(trial.new, list(plan.target.key)))
    clashes = [one for one in keys if grain_of.setdefault(one, trial.name) != trial.name]
    if not clashes:
        return trial
    first = ", ".join(map(str, clashes[0]))
    more = f" (and {len(clashes) - 1} more keys)" if len(clashes) > 1 else ""
    cause = (
        f"{first}{more} is made of {grain_of[clashes[0]]} too: rows of two grains make one target row, and the run"
        f" would stop; declare a coarser grain than that of {reach.root.role}, or make another key of each grain"
    )
    return replace(trial, problems=(*trial.problems, (", ".join(plan.target.key), cause)))


def _named(schema: TableSchema, row: pa.Table) -> str:
    values = [texts(row[name])[0] for name in schema.key]
    pairs = (
        f"{name}={value.hex() if isinstance(value, bytes) else value}"
        for name, value in zip(schema.key, values, strict=True)
    )
    return f"{schema.id.name} {', '.join(pairs)}"
