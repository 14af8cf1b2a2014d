"""The round trip of ``migrator check --reverse``: old rows there and back, told by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import click

from migrator.cli.options import OnSpark
from migrator.config import project as configuration
from migrator.config.back import Back
from migrator.errors import readable, together
from migrator.run.analysed import Looked, look
from migrator.run.commands.carried_back import ROWS, ColumnBack, Fate, TableBack, table_back
from migrator.run.commands.round_trip import RoundTrip
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from migrator.wiring.reflection import declared_defaults
from transforms.load import read_mapping

_REFUSES = click.style("refuses", fg="red")
_DIFFERENT, _FATAL, _UNKNOWN = 1, 2, 3
_FILL = (
    "fill it in the reverse function, or give the old column a default: an application that writes to the old side"
    " sets it by itself"
)
_ACCEPT = (
    "write the function so that it comes back, or accept the loss by name: {name} in [back] accept_lossy"
)


def round_trips(project: OnSpark, looked: Looked, declared: Sequence[str], rows: int) -> int:
    """Prints what comes back of the old tables' rows; the exit code.

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
        found = []
        for name, plan in back.items():
            filled = {column.name for column in plan.columns}
            tried = trip.tried(name)
            one = table_back(tried, looked.structure.new[name], filled, defaults.get(name, {}), accepted)
            click.echo("\n".join(lines(one)))
            found.append(one)
    finally:
        reader.close()
    for name in (one.id.name for one in schemas if one.id.name not in declared):
        click.echo(f"note     way back: {name} has no reverse function: its rows stay as they are")
    return _code(found)


def _code(found: list[TableBack]) -> int:
    columns = [column for one in found for column in one.columns]
    if any(column.fatal for column in columns) or any(one.trip.failed for one in found):
        return _FATAL
    if any(column.refused() for column in columns):
        return _DIFFERENT
    return _UNKNOWN if any(one.trip.untried for one in found) else 0


def lines(one: TableBack) -> list[str]:
    """One old table for people."""
    trip = one.trip
    if trip.failed:
        return [f"{_REFUSES}  way back: {trip.table}\n    {trip.failed}\n    remedy: {readable(_REPAIR)}"]
    found = [_heading(one)]
    exact = [column.name for column in one.of(Fate.EXACT)]
    if exact:
        found.append(f"             exact: {', '.join(exact)}")
    for column in one.columns:
        if column.fate is Fate.LOSSY or column.fate is Fate.NOT_CARRIED:
            found.append(_line(trip.table, column))
    return found


_REPAIR = "correct the function on the line named, or write a unit test with such a row"


def _heading(one: TableBack) -> str:
    trip = one.trip
    if trip.compared is None:
        return f"unknown  way back: {trip.table}: {trip.untried}"
    rows = f"all {trip.compared.rows:,}" if trip.whole else f"{trip.compared.rows:,} of its"
    fine = not any(column.refused() for column in one.columns)
    return f"{'ok     ' if fine else _REFUSES}  way back: {trip.table}: {rows} rows there and back"


def _line(table: str, column: ColumnBack) -> str:
    what = "rows" if column.name == ROWS else column.name
    text = f"             {column.fate.value}: {what}: {column.text}"
    if column.fatal:
        return f"{text}\n    remedy: {readable(_FILL)}"
    if column.refused():
        return f"{text}\n    remedy: {readable(_ACCEPT.format(name=repr(f'{table}.{column.name}')))}"
    return f"{text} (accepted)" if column.accepted else text
