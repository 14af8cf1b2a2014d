"""Target columns that hold numbers of a key map: mappings give old keys as text, the target gets their numbers.

What stands here decorates a target. Everything before it (mapping, joined diffs, netting) works with old
keys, which are a pure function of the source; everything behind it with numbers. A number is given before the
batch that first needs it, durably and for good: a batch that is applied again finds it, and so does a dump
that is made again. If the batch never commits, a number stays unused, as a sequence's may.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.target import TargetColumn, TargetTable
from migrator.ports.key_maps import KeyMaps
from migrator.ports.mirror import JoinedTarget, Mirror
from migrator.ports.target import OrphansAside, Stage, Stager, Target, TargetBatch, TargetRows

_NUMBERS = {"smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}

Surrogates = Mapping[str, Mapping[str, str]]
"""Target table -> column -> key map."""


class NumberedTarget:
    """``ports.target.Target`` whose ``surrogates`` hold numbers; to the rest of the pipeline they are text.

    Args:
        target: what writes.
        maps: where the numbers are.
        surrogates: at least one.
    """

    def __init__(self, target: Target, maps: KeyMaps, surrogates: Surrogates):
        self._target, self._maps, self._surrogates = target, maps, surrogates
        self._tables: dict[str, TargetTable] = {}

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """See the port."""
        return self._target.preflight(tables, beside)

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """See the port. Raises ``TargetError`` also for a surrogate that is no whole number."""
        found = self._target.tables(names)
        self._tables |= {table.id.name: table for table in found}
        return [self._as_text(table) for table in found]

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """See the port; of surrogates nothing, whose numbers are given later."""
        chosen = self._surrogates.get(table.id.name, {})
        found = self._target.holds(self._tables.get(table.id.name, table))
        return {name: rules for name, rules in found.items() if name not in chosen}

    def refused(self, table: TargetTable, rows: Any, untried: Collection[str] = ()) -> TargetError | None:
        """See the port. No number is given: each key has another one here."""
        numbered = self._tables.get(table.id.name, table)
        for column in _among(numbered, self._surrogates.get(table.id.name, {}), rows):
            keys = rows[column.name].combine_chunks().dictionary_encode()
            rows = _set(rows, column.name, keys.indices.cast(_NUMBERS[column.spark_type]))
        return self._target.refused(numbered, rows, untried)

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """See the port."""
        self._target.prepare_mirror(targets)

    def open(self, epoch: int) -> Ledger:
        """See the port."""
        return self._target.open(epoch)

    def apply(self, batch: TargetBatch) -> None:
        """See the port."""
        mapped = batch.joined
        joined = None if mapped is None else lambda mirror: map(self._numbered, mapped(mirror))
        self._target.apply(replace(batch, rows=tuple(map(self._numbered, batch.rows)), joined=joined))

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """See the port."""
        self._target.fill(lambda mirror: map(self._numbered, piece(mirror)))

    def set_orphans_aside(self, orphans: OrphansAside) -> None:
        """See the port."""
        self._target.set_orphans_aside(orphans)

    def close(self) -> None:
        """See the port."""
        self._maps.close()
        self._target.close()

    def _as_text(self, table: TargetTable) -> TargetTable:
        chosen = self._surrogates.get(table.id.name, {})
        for name in chosen:
            column = table.column(name)
            if column is None or column.generated or column.spark_type not in _NUMBERS:
                raise TargetError(
                    f"the column {name} of {table.id} can't hold numbers of a key map",
                    where=f"surrogates= of {table.id.name}",
                    cause="there is no such column" if column is None else f"it is {column.native_type}",
                    remedy="name a column of smallint, integer or bigint that the target doesn't compute",
                )
        columns = tuple(replace(c, spark_type="string") if c.name in chosen else c for c in table.columns)
        return replace(table, columns=columns)

    def _numbered(self, rows: TargetRows) -> TargetRows:
        chosen = self._surrogates.get(rows.table.id.name)
        if not chosen:
            return rows
        table = self._tables[rows.table.id.name]

        def part(found: pa.Table | None) -> pa.Table | None:
            return None if found is None else self._part(table, chosen, found)

        doubted = rows.doubted  # keys that a verifier read in the target: numbers already
        if doubted is not None:
            for column in _among(table, chosen, doubted):
                doubted = _possible_numbers(doubted, column)
        return replace(
            rows,
            table=table,
            chunk=part(rows.chunk),
            before=part(rows.before),
            after=part(rows.after),
            doubted=doubted,
        )

    def _part(self, table: TargetTable, chosen: Mapping[str, str], rows: pa.Table) -> pa.Table:
        for column in _among(table, chosen, rows):
            keys = rows[column.name].combine_chunks().dictionary_encode()
            known = [key for key in keys.dictionary.to_pylist() if key is not None]
            numbers = self._maps.numbers(chosen[column.name], known) if known else {}
            try:
                values = pa.array([numbers[key] for key in known], _NUMBERS[column.spark_type])
            except (OverflowError, pa.ArrowInvalid) as error:
                raise TargetError(
                    f"the key map {chosen[column.name]} has more numbers than {table.id} can hold",
                    where=f"{table.id}, column {column.name} ({column.native_type})",
                    cause=str(error),
                    remedy="give the column a wider type in a revision of the target",
                ) from None
            rows = _set(rows, column.name, pc.take(values, keys.indices))
        return rows


class NumberedStager:
    """``ports.target.Stager`` that leaves tables with surrogates to the driver, which has the key maps."""

    def __init__(self, stager: Stager, surrogates: Surrogates):
        self._stager, self._surrogates = stager, surrogates

    def staging(self, table: TargetTable, segment: int) -> Stage | None:
        """See the port."""
        return None if table.id.name in self._surrogates else self._stager.staging(table, segment)


def with_key_maps(
    target: Target, stager: Stager | None, surrogates: Surrogates, maps: Callable[[], KeyMaps]
) -> tuple[Target, Stager | None]:
    """Target and stager as the pipeline takes them; the same ones where no mapping has surrogates."""
    if not surrogates:
        return target, stager
    numbered = NumberedTarget(target, maps(), surrogates)
    return numbered, None if stager is None else NumberedStager(stager, surrogates)


def _among(table: TargetTable, chosen: Mapping[str, str], rows: pa.Table) -> Iterator[TargetColumn]:
    yield from (c for c in table.columns if c.name in chosen and c.name in rows.column_names)


def _possible_numbers(rows: pa.Table, column: TargetColumn) -> pa.Table:
    """Rows whose text is a number that a map may have given; the judge has others for keys without one."""
    wanted = _NUMBERS[column.spark_type]
    rows = rows.filter(pc.match_substring_regex(rows[column.name], "^[0-9]{1,18}$"))
    rows = _set(rows, column.name, rows[column.name].cast(pa.int64()))
    rows = rows.filter(pc.less_equal(rows[column.name], 2 ** (wanted.bit_width - 1) - 1))
    return _set(rows, column.name, rows[column.name].cast(wanted))


def _set(rows: pa.Table, name: str, values: pa.Array | pa.ChunkedArray) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)
