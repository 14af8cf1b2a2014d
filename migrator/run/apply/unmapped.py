"""Source rows on which a row-wise mapping fails: named, or set aside by the target keys that they have.

A target's key often can be mapped though another column can't: Spark computes only what it is asked for. So such a
row is set aside as one that the target refuses, by its target key. One whose key can't be told stops the run: nobody
could tell by a later version that it is settled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from migrator.columnar.bad_rows import KeyText, cut, key_texts, row_text
from migrator.errors import CORRECTED_MAPPING, RowUnmapped
from migrator.model.progress import UNMAPPED, BadRow
from migrator.ports.eventlog import Batch
from migrator.ports.target import TargetRows
from migrator.run.apply.spark_jobs import SPARK_ERRORS, job_failed
from transforms.analysis.plan import MappingPlan
from transforms.frames import computed_late
from transforms.on_spark.pipeline import arrow_frame, failing_row, map_rows

_REASON = 500
_NO_KEY = "\0"


@dataclass(frozen=True, slots=True)
class _Failed:
    """A source row on which a mapping fails: its table's name, the row alone, its error; whether a dump read it."""

    source: str
    row: pa.Table
    error: RowUnmapped
    dumped: bool


def row_at_fault(
    spark: SparkSession, plan: MappingPlan, tables: Mapping[str, pa.Table]
) -> RowUnmapped | None:
    """The error that names a row on which the mapping fails, if one row alone makes it fail."""
    found = _found(spark, plan, tables)
    return None if found is None else found[2]


def _found(
    spark: SparkSession, plan: MappingPlan, tables: Mapping[str, pa.Table]
) -> tuple[str, int, RowUnmapped] | None:
    """The row's table and place, and its error."""
    for name, rows in tables.items():
        try:
            found = failing_row(spark, plan, name, rows)
        except SPARK_ERRORS:
            return None  # the rows don't even get into Spark, so none can be told to be at fault
        if found is not None:
            schema = plan.schemas[name]
            row = rows.slice(found.index, 1).to_pylist()[0]
            key = ", ".join(f"{column}={row[column]!r}" for column in schema.key)
            error = RowUnmapped(
                f"the mapping of target table {plan.target.name!r} fails on a row",
                where=f"{schema.id} with {key}; {plan.target.where()}",
                cause=found.cause,
                remedy="correct the row in the source, or the mapping; then start again: nothing was lost"
                f"{CORRECTED_MAPPING}",
            )
            return name, found.index, error
    return None


class UnmappedRows:
    """The rows of one batch after the other that mappings fail on.

    Args:
        spark: the session.
        most: rows of one target and batch that are looked for; more stop the run.
    """

    def __init__(self, spark: SparkSession, most: int):
        self._spark, self._most = spark, most
        self._failed: dict[str, list[_Failed]] = {}
        self._lock = threading.Lock()

    def spared(
        self,
        plan: MappingPlan,
        tables: Mapping[str, pa.Table],
        mapped: Callable[[Mapping[str, pa.Table]], pa.Table],
        dumped: bool,
    ) -> pa.Table:
        """Maps all rows but those that the mapping fails on, which are kept for ``aside``.

        Args:
            plan: of the mapping.
            tables: source rows.
            mapped: maps some of them.
            dumped: whether a dump read them.

        Raises ``MappingError`` where no row alone is at fault, or too many are.
        """
        left = dict(tables)
        while True:
            found = _found(self._spark, plan, left)
            if found is None:
                try:
                    return mapped(left)
                except SPARK_ERRORS as error:
                    raise job_failed(plan, error) from error
            name, place, named = found
            self._keep(plan, _Failed(name, left[name].slice(place, 1), named, dumped))
            others = np.ones(left[name].num_rows, dtype=bool)
            others[place] = False
            left[name] = left[name].filter(pa.array(others))

    def _keep(self, plan: MappingPlan, failed: _Failed) -> None:
        with self._lock:
            kept = self._failed.setdefault(plan.target.name, [])
            kept.append(failed)
            if len(kept) > self._most:
                failed.error.remedy += (
                    f"; or let more rows be set aside: [apply] bad_rows_per_table, now {self._most}"
                )
                raise failed.error

    def met(self, target: str) -> bool:
        """Tells whether the batch has rows that a target's mapping fails on."""
        with self._lock:
            return bool(self._failed.get(target))

    def forget(self) -> None:
        """Forgets the rows of the batch before, which may have been given up half-way."""
        with self._lock:
            self._failed.clear()

    def aside(self, plan: MappingPlan, rows: TargetRows, batch: Batch) -> TargetRows:
        """One target's rows, with the records of those that couldn't be mapped, and their keys among ``before``.

        Raises ``MappingError`` where a row's key can't be mapped, or another row has it.
        """
        with self._lock:
            failed = self._failed.pop(plan.target.name, [])
        newer = [one for one in failed if not one.dumped]
        found: dict[KeyText, tuple[_Failed, pa.Table]] = {}
        logged, vanishing = _keys(rows, rows.after), _keys(rows, rows.before)
        for one in [*newer, *(one for one in failed if one.dumped)]:
            keys = self._mapped_keys(plan, one)
            for place, key in enumerate(key_texts(keys, rows.table.key)):
                known = found.get(key)
                if one.dumped and (key in logged or key in vanishing or (known and not known[0].dumped)):
                    continue  # the log has a later word on it
                if known or key in (_keys(rows, rows.chunk) if one.dumped else logged):
                    raise one.error  # two source rows have one key: neither is right
                found[key] = one, keys.slice(place, 1)
        if not found:
            return rows
        before = [rows.before.select(rows.table.key)] if rows.before is not None else []
        gone = pa.concat_tables(
            [*before, *(keys for _, keys in found.values())], promote_options="permissive"
        )
        records = tuple(_record(rows, plan, key, one, batch) for key, (one, _) in found.items())
        return replace(rows, before=gone, bad_rows=(*rows.bad_rows, *records))

    def _mapped_keys(self, plan: MappingPlan, failed: _Failed) -> pa.Table:
        """Target keys of a row. Raises its error where they can't be mapped either, or are numbers of key maps."""
        if {name for name, _ in plan.target.surrogates} & {*plan.target.key}:
            raise failed.error
        frame = computed_late(arrow_frame(self._spark, failed.row, plan.schemas[failed.source]))
        names = [F.col(f"`{name.replace('`', '``')}`") for name in plan.target.key]
        try:
            keys = map_rows(self._spark, plan, {failed.source: frame}).select(*names).toArrow()
        except SPARK_ERRORS:
            raise failed.error from None
        if not keys.num_rows or any(_NO_KEY in key for key in key_texts(keys, plan.target.key)):
            raise failed.error
        return keys


def _keys(rows: TargetRows, part: pa.Table | None) -> set[KeyText]:
    return set() if not isinstance(part, pa.Table) else set(key_texts(part, rows.table.key))


def _record(rows: TargetRows, plan: MappingPlan, key: KeyText, failed: _Failed, batch: Batch) -> BadRow:
    error = failed.error
    return BadRow(
        rows.table.id.name,
        rows.table.key,
        key,
        batch.checkpoint.position.token,
        batch.last,
        cut(f"{UNMAPPED}{error.cause} ({error.where})", _REASON),
        f"{failed.source}: {row_text(read_of(plan, failed.source, failed.row))}",
    )


def read_of(plan: MappingPlan, source: str, rows: pa.Table) -> pa.Table:
    """Rows of a source table with the columns that the mapping reads, and those of its key: others are nobody's to
    see."""
    named = {*plan.reads.get(source, ()), *plan.schemas[source].key}
    return rows.select([name for name in rows.column_names if name in named])
