"""Old rows for a round trip: small tables as a whole, of large ones some rows and what is linked to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.model.reach import Reach, Reference
from migrator.model.table import TableSchema
from migrator.ports.source import ChunkReader
from migrator.run.commands.grain_proof import Grains, grains_of, mapped_grains
from migrator.run.commands.trial_map import TrialMap, united
from migrator.run.commands.trial_rows import TrialRows
from transforms.analysis.plan import MappingKind, MappingPlan

_PLACES = 10
"""Places over the keys of a large table from which rows are taken."""


class Unlinked(Exception):
    """The reason why the rows that belong to a sample can't be found."""


class OldRows:
    """Rows of the old database, and what the forward mapping makes of them.

    Args:
        spark: the session.
        reader: of the old database.
        plans: the forward mapping's, by new table.
        references: foreign keys between old tables.
        rows: a table of at most so many rows is small.
    """

    def __init__(
        self,
        spark: SparkSession,
        reader: ChunkReader,
        plans: Mapping[str, MappingPlan],
        references: Sequence[Reference],
        rows: int,
    ):
        self._spark, self._reader, self._rows = spark, reader, rows
        self._references = references
        self._schemas = {name: schema for plan in plans.values() for name, schema in plan.schemas.items()}
        self._readers = {name: plan for plan in plans.values() for name in plan.schemas}
        self._read: dict[str, tuple[pa.Table, bool]] = {}

    def schema(self, table: str) -> TableSchema | None:
        """A table that the forward mapping reads; None if it doesn't."""
        return self._schemas.get(table)

    def forget(self) -> None:
        """Rows are read anew from here on."""
        self._read.clear()

    def sample(self, table: str) -> tuple[pa.Table, bool]:
        """Some rows, and whether these are all."""
        if table not in self._read:
            source = TrialRows(self._spark, self._reader, self._readers[table])
            rows = source.without_values(table, source.first(table, self._rows + 1))
            whole = rows.num_rows <= self._rows
            if not whole:
                rows = source.without_values(table, source.spread(table, self._rows, _PLACES))
            self._read[table] = rows, whole
        return self._read[table]

    def mapped(
        self, plan: MappingPlan, table: str, sample: pa.Table, whole: bool
    ) -> tuple[pa.Table, pa.Table | None]:
        """Returns the new rows that a sample of a table takes part in, and further rows of the table that were read.

        Raises ``Unlinked`` where it can't be known which these are, ``SourceError``.
        """
        source = TrialRows(self._spark, self._reader, plan)
        mapping = TrialMap(self._spark, plan, source)
        if all(self.sample(name)[1] for name in plan.schemas):
            return mapping.mapped({name: self.sample(name)[0] for name in plan.schemas}), None
        if plan.kind is MappingKind.ROW_WISE:
            return mapping.mapped(self._parts(plan, source, table, sample)), None
        begun = self._begun(plan, source, table, sample)
        samples: list[Grains] = []
        for reach, firsts in begun:
            samples.append(grains_of(mapping, reach, firsts, sum(one.count() for one in samples)))
        read = None
        for one in samples:
            for node, rows in zip(one.reach.nodes, one.rows, strict=True):
                if node.schema.id.name == table:
                    read = united(read, source.without_values(table, rows), list(node.schema.key))
        return mapped_grains(mapping, samples, lambda _: True), read

    def _parts(
        self, plan: MappingPlan, source: TrialRows, table: str, sample: pa.Table
    ) -> dict[str, pa.Table]:
        """Rows for a row-wise mapping: each makes its own target rows, so others may be left out."""
        found = {}
        for name in plan.schemas:
            rows, all_of_them = self.sample(name)
            if name == table:
                found[name] = sample
            elif all_of_them:
                found[name] = rows
            else:
                linked = self._referred(source, name, table, sample)
                if linked is not None:
                    found[name] = linked
                elif table not in plan.schemas:
                    raise _unlinked(plan, name, table, self._rows)
        return found

    def _begun(
        self, plan: MappingPlan, source: TrialRows, table: str, sample: pa.Table
    ) -> list[tuple[Reach, dict[int, pa.Table]]]:
        """The grains that a sample takes part in: per reach rows of the tables that have the grain."""
        found = []
        for reach in plan.reaches:
            roots = {index: sample for index in reach.roots() if reach.nodes[index].schema.id.name == table}
            if roots:
                found.append((reach, self._with_values(plan, source, reach, roots)))
                continue
            places = [at for at, node in enumerate(reach.nodes) if node.schema.id.name == table]
            for at in places:
                rows = source.with_values(table, sample)
                while (above := reach.nodes[at].above) is not None:
                    node = reach.nodes[at]
                    values = rows.select(list(node.columns))
                    rows = source.linked(reach.nodes[above].schema.id.name, node.above_columns, values)
                    at = above
                found.append((reach, {at: rows}))
        if found:
            return found
        for reach in plan.reaches:
            name = reach.root.schema.id.name
            rows, all_of_them = self.sample(name)
            if not all_of_them:
                linked = self._referred(source, name, table, sample)
                if linked is None:
                    raise _unlinked(plan, name, table, self._rows)
                rows = linked
            found.append((reach, self._with_values(plan, source, reach, {0: rows})))
        return found

    def _with_values(
        self, plan: MappingPlan, source: TrialRows, reach: Reach, rows: dict[int, pa.Table]
    ) -> dict[int, pa.Table]:
        """The same rows with the values that the mapping computes of them."""
        return {
            index: source.with_values(reach.nodes[index].schema.id.name, found)
            for index, found in rows.items()
        }

    def _referred(self, source: TrialRows, name: str, table: str, sample: pa.Table) -> pa.Table | None:
        """Rows of a large table that foreign keys tie to the sample; None if none do."""
        for one in self._references:
            if (one.child.name, one.parent.name) == (table, name):
                return source.linked(name, one.parent_columns, sample.select(list(one.columns)))
            if (one.child.name, one.parent.name) == (name, table):
                return source.linked(name, one.columns, sample.select(list(one.parent_columns)))
        return None


def _unlinked(plan: MappingPlan, name: str, table: str, rows: int) -> Unlinked:
    return Unlinked(
        f"it comes back from {plan.target.name}, which is made of {name}; that has more than {rows} rows, and no"
        f" foreign key ties it to {table}: try more with --rows"
    )
