"""Judges an incident without servers: the mapping is applied transaction by transaction, to the grains that changed.

A rough picture of what a run does with joined targets, much faster than a replay. Shrinking asks it many times, and a
replay has the last word.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from migrator.columnar.types import arrow_type
from migrator.embedded.java import java_home
from migrator.errors import MigratorError
from migrator.model.table import TableSchema
from scenarios.chaos.incident.failure import Expected, Failure, Judgement, Wrong, judged
from scenarios.chaos.incident.history import Cell, Change, History, Row, from_place
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.structure import Structure
from transforms.load import load_mapping
from transforms.registry import Mapping as Registry
from transforms.registry import TargetMapping
from transforms.testing import run

State = Mapping[str, Sequence[Row]]
_BEHIND_ALL = 1 << 62
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class _Grain:
    """A joined target with a grain that is columns of one table."""

    target: TargetMapping
    table: str
    columns: tuple[str, ...]


class ByGrains:
    """The judge of one project's incidents.

    Args:
        mapping: the mapping's file.
    """

    def __init__(self, mapping: Path):
        os.environ.setdefault("JAVA_HOME", str(java_home()))
        self._mapping = load_mapping(mapping)
        self._grains = [found for one in self._mapping.targets if (found := _grain(one)) is not None]
        self._mapped: dict[object, frozenset[str]] = {}
        self._needed: frozenset[str] | None = None

    def __call__(self, incident: Incident) -> bool:
        """Tells whether the failure shows. False also where this judge can't tell, and where a target can't be mapped
        any more that could be at the first call: a run would stop there."""
        if not self._all_mapped(incident.structure):
            return False
        try:
            found = self.failure(incident.structure, incident.history, incident.failure.expected)
        except (MigratorError, pa.ArrowException, KeyError):  # a column that is gone, say
            return False
        return judged(incident.failure, found)[0] is Judgement.REPRODUCED

    def failure(self, structure: Structure, history: History, expected: Sequence[Expected] = ()) -> Failure:
        """The failure that mapping by grains leads to. Raises ``MigratorError``, ``pyarrow`` errors, ``KeyError``."""
        wrong, checked = list[Wrong](), 0
        for sought in expected:
            wrong += sought.unless(self._cell(structure, history, sought))
        for grain in self._grains:
            want, have = _ends(self._mapping, grain, structure, history)
            checked += max(len(want), len(have))
            wrong += _differences(grain.target, want, have)
        return Failure(tuple(wrong), len(wrong), checked=checked)

    def _all_mapped(self, structure: Structure) -> bool:
        columns = tuple((name, table.names()) for name, table in structure.tables.items())
        if columns not in self._mapped:
            self._mapped[columns] = frozenset(
                one.name for one in self._mapping.targets if self._maps(one, structure)
            )
        if self._needed is None:
            self._needed = self._mapped[columns]
        return self._mapped[columns] >= self._needed

    def _maps(self, target: TargetMapping, structure: Structure) -> bool:
        try:
            _rows(self._mapping, target, structure, {})
        except (MigratorError, pa.ArrowException, KeyError):
            return False
        return True

    def _cell(self, structure: Structure, history: History, sought: Expected) -> str | None:
        """The value that the mapping makes in the end; empty where it makes no such row."""
        target = self._mapping[sought.target]
        rows = _rows(self._mapping, target, structure, from_place(history, structure, _BEHIND_ALL).start)
        texts = {tuple(map(str, key)): row[sought.column] for key, row in rows.items()}
        value = texts.get(tuple(str(sought.key[name]) for name in target.key), "")
        return None if value is None else str(value)


def _grain(target: TargetMapping) -> _Grain | None:
    """The grain, where it is columns of one table; None for any other, and for row-wise targets."""
    names = [target.grain] if isinstance(target.grain, str) else target.grain
    if target.roles or target.values or not isinstance(names, Sequence):
        return None
    tables = {name.rpartition(".")[0] for name in names}
    if len(tables) != 1 or not tables <= {*target.sources}:
        return None
    return _Grain(target, tables.pop(), tuple(name.rpartition(".")[2] for name in names))


Mapped = dict[tuple[Any, ...], dict[str, Any]]


def _ends(mapping: Registry, grain: _Grain, structure: Structure, history: History) -> tuple[Mapped, Mapped]:
    """The target's rows by key: those of the whole mapping in the end, and those that mapping by grains leads to."""
    links = _links(grain.target, structure)
    before: State = history.start
    rows = _rows(mapping, grain.target, structure, before)
    left = history
    while left.transactions:
        first = left.transactions[0]
        left = from_place(left, structure, first.order + 1)
        touched = _touched(grain, structure, links, first.changes, (before, left.start))
        for key in _rows(mapping, grain.target, structure, _part(grain, links, before, touched)):
            rows.pop(key, None)
        rows |= _rows(mapping, grain.target, structure, _part(grain, links, left.start, touched))
        before = left.start
    return _rows(mapping, grain.target, structure, before), rows


Link = tuple[str, tuple[str, ...], str, tuple[str, ...]]


def _links(target: TargetMapping, structure: Structure) -> list[Link]:
    """The links that are followed, in both directions: declared ones, else foreign keys."""
    if target.links is None:
        found: list[Link] = [one for one in structure.linked() if {one[0], one[2]} <= {*target.sources}]
    else:
        found = []
        for link in target.links:
            pairs = [
                [side.strip().rpartition(".") for side in part.split("=")] for part in link.split(" and ")
            ]
            one, other = pairs[0][0][0], pairs[0][1][0]
            columns = tuple(left[2] for left, _ in pairs), tuple(right[2] for _, right in pairs)
            found.append((one, columns[0], other, columns[1]))
    return [*found, *((parent, others, child, columns) for child, columns, parent, others in found)]


def _reached(links: Sequence[Link], state: State, start: Mapping[str, Sequence[Row]]) -> dict[str, list[Row]]:
    """The rows that links lead to from some rows of one table, away from it, each table once."""
    found = {table: list(rows) for table, rows in start.items()}
    queue = deque(found)
    while queue:
        table = queue.popleft()
        for one, columns, other, others in links:
            if one != table or other in found:
                continue
            values = {tuple(row[name] for name in columns) for row in found[table]}
            found[other] = [
                row for row in state.get(other, ()) if tuple(row[name] for name in others) in values
            ]
            queue.append(other)
    return found


def _touched(
    grain: _Grain,
    structure: Structure,
    links: Sequence[Link],
    changes: Iterable[Change],
    states: tuple[State, State],
) -> set[tuple[Cell, ...]]:
    """The grain values that changes reach, in the state before and in the one after."""
    found = set[tuple[Cell, ...]]()
    for change in changes:
        if change.table not in grain.target.sources:
            continue
        for row, state in zip((change.before, change.after), states, strict=True):
            if row is not None:
                rows = _reached(links, state, {change.table: [row]}).get(grain.table, [])
                found.update(tuple(one[name] for name in grain.columns) for one in rows)
    return found


def _part(
    grain: _Grain, links: Sequence[Link], state: State, values: set[tuple[Cell, ...]]
) -> dict[str, list[Row]]:
    """The rows that are linked with the rows of some grain values."""
    chosen = [
        row for row in state.get(grain.table, ()) if tuple(row[name] for name in grain.columns) in values
    ]
    return _reached(links, state, {grain.table: chosen})


def _rows(mapping: Registry, target: TargetMapping, structure: Structure, state: State) -> Mapped:
    tables = {name: arrow(structure.tables[name], state.get(name, ())) for name in target.sources}
    found = run(mapping, target.name, **tables)
    return {tuple(row[name] for name in target.key): row for row in found}


def arrow(table: TableSchema, rows: Sequence[Row]) -> pa.Table:
    """Rows in their logical types. Raises ``pyarrow`` errors for a value that isn't of its type."""
    return pa.table(
        {
            column.name: _array([row.get(column.name) for row in rows], arrow_type(column))
            for column in table.columns
        }
    )


def _array(values: Sequence[Cell], kind: pa.DataType) -> pa.Array:
    if pa.types.is_boolean(kind):
        return pa.array([None if one is None else _FLAGS[str(one)] for one in values], kind)
    if pa.types.is_binary(kind):
        return pa.array(values, kind)
    return pa.array(values, pa.string()).cast(kind)


def _differences(target: TargetMapping, expected: Mapped, have: Mapped) -> list[Wrong]:
    found = []
    for key in {**expected, **have}:
        want, got = expected.get(key), have.get(key)
        if want == got:
            continue
        status = "missing" if got is None else "extra" if want is None else "different"
        columns = tuple(name for name in want if want[name] != got[name]) if want and got else ()
        named = dict(zip(target.key, map(str, key), strict=True))
        found.append(Wrong(target.name, status, columns, named))
    return found
