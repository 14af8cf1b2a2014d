"""The round trip of ``migrator check --reverse``: old rows there and back, told by column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from migrator.cli.check.item import Item, Outcome
from migrator.cli.options import OnSpark
from migrator.config import project as configuration
from migrator.config.back import Back
from migrator.errors import together
from migrator.run.analysed import Looked, look
from migrator.run.commands.carried_back import ROWS, ColumnBack, Fate, TableBack, table_back
from migrator.run.commands.round_trip import RoundTrip
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from migrator.wiring.reflection import declared_defaults
from transforms.load import read_mapping

_CHECK = "way back"
_REPAIR = "correct the function on the line named, or write a unit test with such a row"
_FILL = (
    "fill it in the reverse function, or give the old column a default: an application that writes to the old side"
    " sets it by itself"
)
_ACCEPT = (
    "write the function so that it comes back, or accept the loss by name: {name} in [back] accept_lossy"
)


def round_trips(project: OnSpark, looked: Looked, declared: Sequence[str], rows: int) -> Iterator[Item]:
    """Tries rows of the old tables there and back; yields what comes back of them, table by table.

    Args:
        project: with the settings of the way back.
        looked: the reverse mapping held against both sides; what has problems is left out.
        declared: old tables that have a reverse function.
        rows: of each table at most so many are tried.

    Raises ``MappingError`` where the forward mapping can't be used, ``SourceError``, ``ConnectionFailed``.
    """
    settings = replace(configuration.load(project.settings.file), spark=project.settings.spark)
    accepted = (settings.back or Back(settings.mapping, settings.target, settings.source)).accept_lossy
    parts = wiring.parts(
        settings, project.master, project.options, partial(load_applied, settings, load=read_mapping)
    )
    forward = look(parts.spark, parts.mapping, parts.catalog, parts.target)
    for error in forward.refused.values():
        raise error
    if forward.analysed.problems:
        raise together(forward.analysed.problems)
    back = looked.analysed.plans
    schemas = list(forward.structure.old.values())
    defaults = declared_defaults(project.settings, list(back))
    reader = parts.source(schemas).chunk_reader()
    try:
        references = parts.catalog.references(schemas)
        trip = RoundTrip(parts.spark(), reader, forward.analysed.plans, back, references, rows)
        for name, plan in back.items():
            filled = {column.name for column in plan.columns}
            tried = trip.tried(name)
            one = table_back(tried, looked.structure.new[name], filled, defaults.get(name, {}), accepted)
            yield from items_of(one)
    finally:
        reader.close()
    for name in (one.id.name for one in schemas if one.id.name not in declared):
        yield Item(Outcome.NOTE, _CHECK, name, "it has no reverse function: its rows stay as they are")


def items_of(one: TableBack) -> Iterator[Item]:
    """One old table's verdict: its rows, then what keeps a column from being written back or accepted."""
    trip = one.trip
    if trip.failed:
        yield Item(Outcome.REFUSES, _CHECK, trip.table, trip.failed, remedy=_REPAIR)
        return
    exact = [column.name for column in one.of(Fate.EXACT)]
    losses = [column for column in one.columns if column.fate in (Fate.LOSSY, Fate.NOT_CARRIED)]
    borne = [_loss(column) for column in losses if not column.refused()]
    details = [f"exact: {', '.join(exact)}"] if exact else []
    yield Item(*_heading(one), details=(*details, *borne))
    for column in losses:
        subject = f"{trip.table}.{column.name}"
        if column.fatal:
            yield Item(Outcome.REFUSES, _CHECK, subject, _loss(column), remedy=_FILL)
        elif column.refused():
            accept = _ACCEPT.format(name=repr(subject))
            yield Item(Outcome.LOSSY, _CHECK, subject, _loss(column), remedy=accept)


def _heading(one: TableBack) -> tuple[Outcome, str, str, str]:
    trip = one.trip
    if trip.compared is None:
        return Outcome.UNKNOWN, _CHECK, trip.table, trip.untried
    rows = f"all {trip.compared.rows:,}" if trip.whole else f"{trip.compared.rows:,} of its"
    fine = not any(column.refused() for column in one.columns)
    return Outcome.OK if fine else Outcome.NOTE, _CHECK, trip.table, f"{rows} rows there and back"


def _loss(column: ColumnBack) -> str:
    what = "rows" if column.name == ROWS else column.name
    text = f"{column.fate.value}: {what}: {column.text}"
    return f"{text} (accepted)" if column.accepted else text
