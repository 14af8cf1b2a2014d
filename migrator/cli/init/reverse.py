"""The file that ``migrator init --reverse`` writes: the reverse of a project's mapping, as far as it follows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from migrator.cli.init.begun import Begun, BegunTable
from migrator.config import project as configuration
from migrator.config.way_back import way_back
from migrator.errors import ConfigError, MigratorError
from migrator.model.table import TableSchema
from migrator.model.target import TargetTable
from migrator.run.analysed import readable
from migrator.run.migration import plans
from migrator.run.steps import no_step
from migrator.wiring import parts as wiring
from migrator.wiring.in_force import load_applied
from migrator.wiring.source import source_parts
from migrator.wiring.target import target_writer
from transforms.reverse.code import reverse_text
from transforms.reverse.derive import Reverse, Side, reverses
from transforms.reverse.pieces import pieces


def init_reverse(folder: Path, begun: Begun) -> None:
    """Writes the mapping file of the way back beside the mapping, and says what is left to do.

    Raises:
        ConfigError: the folder holds no project, or the file is there.
        MappingError: the mapping can't be used.
    """
    settings = configuration.load(folder / "migration.toml")
    begun.migration = settings.name
    back = way_back(settings)
    if back.mapping.exists():
        raise ConfigError(
            f"{back.mapping} is there already",
            where=f"{settings.file}: back.mapping",
            cause="init never overwrites a file",
            remedy="move it away, or go on with it: `migrator check --reverse` says what it lacks",
        )
    parts = wiring.parts(settings, load=partial(load_applied, settings))
    try:
        schemas, targets, found = plans(parts)
    finally:
        parts.target.close()
    catalog, _ = source_parts(back)
    target, _ = target_writer(back, no_step)
    refused: dict[str, MigratorError] = {}
    try:
        read = readable(catalog.tables, [one.id.name for one in targets], refused)
        written = readable(target.tables, [one.id.name for one in schemas], refused)
    finally:
        target.close()
    old = _sides({one.id.name: one for one in schemas}, written)
    new = _sides(read, {one.id.name: one for one in targets})
    of_all = [piece for plan in found.values() for piece in pieces(parts.spark(), plan)]
    reverse = reverses(old, new, of_all)
    text = reverse_text(reverse, {name: one.names() for name, one in read.items()})
    for name, error in refused.items():
        begun.note(f"{name} can't take part: " + "; ".join(error.lines()))
    with back.mapping.open("x", encoding="utf-8") as opened:
        opened.write(text)
    for one in reverse:
        begun.table(_entry(one), _said(one))
    begun.file(back.mapping)
    begun.next("read it, then `migrator check --reverse`: it tries your rows there and back")


def _sides(read: dict[str, TableSchema], written: dict[str, TargetTable]) -> dict[str, Side]:
    return {name: Side(read[name], written[name]) for name in read if name in written}


def _entry(one: Reverse) -> BegunTable:
    tables = tuple(dict.fromkeys(part.table for part in (*one.bases, *one.joined)))
    why = "" if one.bases else "its rows don't follow from the new tables"
    return BegunTable(one.old.id.name, tables, tuple(one.open), why)


def _said(one: Reverse) -> str:
    entry = _entry(one)
    if entry.why:
        return f"{entry.name}: a skeleton: {entry.why}"
    left = f"; not carried: {', '.join(entry.gaps)}" if entry.gaps else ""
    return f"{entry.name}: from {', '.join(entry.sources)}{left}"
