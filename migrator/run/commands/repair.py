"""The steps of a repair: which source rows are dumped again so that given target rows become right.

Row-wise targets: a dump request whose doubts are the target's keys. Where each column of the source's key is handed
through to the target's key, the source rows are listed by key (``key_values``); else only all rows of the mapping's
source tables are sure to hold every row that could map to a doubted key.
Joined targets: derived anew from the mirror, set-wise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from migrator.core.hold import MOST_ROWS
from migrator.errors import MappingError, RequestError
from migrator.model.chunk import MOST_LISTED
from migrator.model.event import Key
from migrator.model.progress import BadRow
from migrator.model.requests.request import (
    WHOLE,
    Doubt,
    DumpRequest,
    RequestBook,
    Scope,
    new_token,
)
from migrator.model.table import TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.requests import RequestStore
from migrator.run.commands.key_values import alike, source_value
from migrator.run.migration import plans
from migrator.run.parts import Parts
from transforms.analysis.key_origin import key_origin
from transforms.analysis.plan import MappingKind, MappingPlan
from transforms.registry import Mapping


class Way(Enum):
    """A way in which target rows are derived anew."""

    LISTED = "listed source keys"
    WHOLE = "all rows of its source tables"
    REMAP = "derived anew from the mirror"


@dataclass(frozen=True, slots=True)
class RepairStep:
    """One request of a repair.

    Attributes:
        target: the target table.
        keys: its doubted keys, as text, in the order of ``TargetTable.key``.
        way: see ``Way``.
        tables: source tables read.
        scope: which rows of them.
        rows: about how many source rows that is.
        work: about how many have to be read for it, those of the mirror included.
        why: why not only the rows themselves, or empty.
    """

    target: str
    keys: tuple[tuple[str, ...], ...]
    way: Way
    tables: tuple[TableId, ...]
    scope: Scope
    rows: int
    why: str = ""
    work: int = 0

    def doubts(self) -> tuple[Doubt, ...]:
        """Returns the keys that the step's request decides on. A remap brings all rows of its table: it needs
        none."""
        return () if self.way is Way.REMAP else (Doubt(self.target, self.keys),)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Keys of one target table that are to be repaired, as text, in the order of ``columns``.

    Without columns they are of a joined target, and name grains, too: it is derived anew as a whole.
    """

    target: str
    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]

    def ordered(self, key: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Returns the keys in the order of a table's key."""
        if not self.columns:
            return self.keys
        places = [self.columns.index(name) for name in key]
        return tuple(tuple(one[place] for place in places) for one in self.keys)


def repair_steps(parts: Parts, wanted: Sequence[Wanted]) -> list[RepairStep]:
    """The steps, tables whose rows others point at last. Only reads structure.

    Args:
        parts: of the migration; nothing of it is run.
        wanted: what to repair.

    Raises ``MappingError``, ``SourceError``, ``TargetError``.
    """
    asked = {table_keys.target: table_keys for table_keys in wanted}
    _check_made(asked, parts.mapping)
    schemas, targets, found = plans(parts)
    by_name = {schema.id.name: schema for schema in schemas}
    tables = {table.id.name: table for table in targets}
    steps: list[RepairStep] = []
    # a doubted row stays while another row points at it
    for name in children_first(asked, targets):
        table_keys = asked[name]
        table, plan = tables[table_keys.target], found[table_keys.target]
        sources = [by_name[name] for name in plan.target.sources]
        keys = table_keys.ordered(table.key)
        if plan.kind is MappingKind.GRAIN:
            steps.append(_remapped(parts, table, keys, sources))
            continue
        for first in range(0, len(keys), MOST_LISTED):
            part = keys[first : first + MOST_LISTED]
            listed = _listed(parts, plan, table, part, sources)
            if isinstance(listed, RepairStep):
                steps.append(listed)
            else:
                steps.append(_whole(parts, table, keys[first:], sources, listed))
                break
    return steps


def _check_made(asked: Iterable[str], mapping: Mapping) -> None:
    """Raises ``MappingError`` for a target that left the mapping since its rows were found to be wrong."""
    gone = [name for name in asked if name not in mapping]
    if gone:
        raise MappingError(
            f"the mapping makes no target table {gone[0]!r}",
            where=f"rows of {', '.join(gone)}",
            cause=f"it makes {', '.join(target.name for target in mapping)}; it made the other when its rows were set"
            " aside, or when the report was written",
            remedy="name one of these",
        )


def wanted_of(rows: Sequence[BadRow]) -> list[Wanted]:
    """The keys of rows set aside, by table."""
    by_target: dict[str, list[BadRow]] = {}
    for one in rows:
        by_target.setdefault(one.target, []).append(one)
    return [
        Wanted(
            name,
            () if any(one.grain for one in found) else found[0].columns,
            tuple(one.key for one in found),
        )
        for name, found in by_target.items()
    ]


def start_repair(store: RequestStore, steps: Sequence[RepairStep]) -> list[str]:
    """Files a request for each step; their names (``DumpRequest.name``). Raises as ``RequestStore.update`` does."""
    count = len(steps)

    def started(book: RequestBook) -> RequestBook:
        for step in steps:
            book = book.start(step.tables, step.scope, step.doubts(), new_token())
        return book

    return [request.name() for request in store.update(started).requests[-count:]] if count else []


def check_doubts(parts: Parts, request: DumpRequest) -> None:
    """Checks that a request dumps each row that may map to a target row that it doubts, as the steps above do.

    One that doesn't would have right rows removed. Raises ``RequestError``, and what ``plans`` raises.
    """
    schemas, targets, found = plans(parts)
    by_name = {schema.id.name: schema for schema in schemas}
    tables = {table.id.name: table for table in targets}
    for doubt in request.doubts:
        plan = found.get(doubt.target)
        wrong = plan is None or plan.kind is MappingKind.GRAIN
        if plan is not None and not wrong:
            sources, table = [by_name[name] for name in plan.target.sources], tables[doubt.target]
            wrong = {schema.id for schema in sources} != set(request.tables) or any(
                len(key) != len(table.key) for key in doubt.keys
            )
            if not wrong and request.scope != WHOLE:
                listed = _listed(parts, plan, table, doubt.keys, sources)
                wrong = not isinstance(listed, RepairStep) or listed.scope != request.scope
        if wrong:
            raise RequestError(
                f"dump request {request.id} is refused",
                where=f"{request.id}, rows of {doubt.target}",
                cause="it would have rows of the target removed without dumping all that they may come from",
                remedy="repair by `migrator repair --apply`, which asks for the right rows",
            )


def children_first(names: Iterable[str], tables: Iterable[TargetTable]) -> list[str]:
    """The names of target tables, those whose rows point at others' before these; else in their order."""
    known = {table.id.name: table for table in tables}

    def depth(name: str, seen: frozenset[str]) -> int:
        references = [one.name for one in known[name].references if one.name in known]
        return 1 + max((depth(one, seen | {name}) for one in references if one not in seen), default=0)

    return sorted(names, key=lambda name: -depth(name, frozenset((name,))))


def _remapped(
    parts: Parts, table: TargetTable, keys: tuple[tuple[str, ...], ...], sources: Sequence[TableSchema]
) -> RepairStep:
    """A remap happens with the run's next batch: dumping the smallest source table makes one."""
    rows = {schema.id: parts.catalog.estimated_rows(schema) for schema in sources}
    smallest = min(sources, key=lambda schema: rows[schema.id])
    why = "it is joined: all its rows are mapped from the mirror in one transaction"
    work = sum(rows.values())
    return RepairStep(table.id.name, keys, Way.REMAP, (smallest.id,), WHOLE, rows[smallest.id], why, work)


def _whole(
    parts: Parts,
    table: TargetTable,
    keys: tuple[tuple[str, ...], ...],
    sources: Sequence[TableSchema],
    why: str,
) -> RepairStep:
    rows = sum(parts.catalog.estimated_rows(schema) for schema in sources)
    if rows > MOST_ROWS:
        why += f"; more than {MOST_ROWS:,} rows in one batch will be given up"
    return RepairStep(
        table.id.name, keys, Way.WHOLE, tuple(schema.id for schema in sources), WHOLE, rows, why, rows
    )


def _listed(
    parts: Parts,
    plan: MappingPlan,
    table: TargetTable,
    keys: tuple[tuple[str, ...], ...],
    sources: Sequence[TableSchema],
) -> RepairStep | str:
    """A step by source keys, or why there is none."""
    if len(sources) != 1:
        return f"rows of it come from {len(sources)} source tables"
    schema = sources[0]
    numbered = {column for column, _ in plan.target.surrogates}
    origin = None
    if not numbered & set(table.key):  # of numbers the mapping knows nothing
        origin = key_origin(parts.spark(), plan.target, schema, table.key)
    if origin is None or not set(schema.key) <= set(origin):
        return f"the key of {schema.id.name} can't be told from its key"
    places = [origin.index(name) for name in schema.key]
    columns = [schema.columns[schema.names().index(origin[place])] for place in places]
    for place, source in zip(places, columns, strict=True):
        column = table.column(table.key[place])
        if column is None or not alike(source, column):
            return f"two values that are one {table.key[place]} may be two of {source.name}"
    listed: list[Key] = []
    for key in keys:
        values = tuple(source_value(one, key[place]) for one, place in zip(columns, places, strict=True))
        if None in values:
            return f"no row of {schema.id.name} can be looked up for the key {', '.join(key)}"
        listed.append(values)
    scope = Scope(keys=tuple(dict.fromkeys(listed)))
    try:
        parts.catalog.check_scope(schema, scope)
    except RequestError as error:  # e.g. a number beyond the source's type
        return f"the source can't look these keys up: {error.cause or error.what}"
    return RepairStep(
        table.id.name, keys, Way.LISTED, (schema.id,), scope, len(scope.keys), work=len(scope.keys)
    )
