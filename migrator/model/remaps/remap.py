"""Steps of a row-wise target from one mapping to the next, as its ledger's checkpoint keeps them. Pure.

====================  ==============================================================================================
phase                 the ledger says, and what comes next
====================  ==============================================================================================
filling               a table beside is filled by the next mapping, as a target that joined later; readers see rows of
                      the mapping before. Once it is whole, one transaction brings its rows and ``switched``
switched              the next mapping is in force; the table beside is still there, and is dropped
in force              the same, without that table. Over when the mapping declares no next function for the target
aborted               nothing was switched; the table beside is still there, and is dropped
====================  ==============================================================================================
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from migrator.model.progress import Checkpoint, Phase, Remap
from migrator.model.table import TableId

SUFFIX = "_migrator_next"
_MOST_BYTES = 63
"""Bytes of the longest name that every target takes."""


def beside_name(target: str) -> str:
    """Returns the name of the table beside a target; a long one keeps its start, with a digest of the whole."""
    whole = f"{target}{SUFFIX}"
    if len(whole.encode()) <= _MOST_BYTES:
        return whole
    end = f"_{hashlib.sha256(target.encode()).hexdigest()[:8]}{SUFFIX}"
    return target.encode()[: _MOST_BYTES - len(end)].decode(errors="ignore") + end


def remap_of(checkpoint: Checkpoint | None, target: str) -> Remap | None:
    """Returns what the ledger says of a target's next mapping; None: nothing."""
    known = () if checkpoint is None else checkpoint.remaps
    return next((one for one in known if one.target == target), None)


def in_force(remaps: Iterable[Remap]) -> frozenset[str]:
    """Returns the targets whose rows are made by the function that is declared as next."""
    return frozenset(one.target for one in remaps if one.phase in (Phase.SWITCHED, Phase.IN_FORCE))


def filling(remaps: Iterable[Remap]) -> tuple[Remap, ...]:
    """Returns those whose table beside is being filled."""
    return tuple(one for one in remaps if one.phase is Phase.FILLING)


def moved(checkpoint: Checkpoint, target: str, phase: Phase | None) -> Checkpoint:
    """Returns the checkpoint with a target in another phase, or in none.

    Of a table beside that isn't filled any more nothing else is known afterwards.
    """
    old = remap_of(checkpoint, target)
    beside = old.beside if old is not None and old.beside else beside_name(target)
    kept = tuple(one for one in checkpoint.remaps if one.target != target)
    new = replace(checkpoint, remaps=kept)
    if phase is not Phase.FILLING:
        new = _forgotten(new, beside)
    if phase is None:
        return new
    return replace(new, remaps=(*kept, Remap(target, "" if phase is Phase.IN_FORCE else beside, phase)))


def whole(checkpoint: Checkpoint, remap: Remap) -> bool:
    """Tells whether the table beside holds all rows: the dump that it waits for is applied to its end."""
    done = {(dump.request, dump.table) for dump in checkpoint.requests if dump.done}
    fed = [table for name, table in checkpoint.fed or () if name == remap.beside]
    awaited = [(request, table) for name, table, request in checkpoint.awaited if name == remap.beside]
    tables: list[TableId] = [*fed, *(table for _, table in awaited)]
    first = {dump.table for dump in checkpoint.dumps if dump.done}
    known = any(one.target == remap.beside for one in checkpoint.mapped or ())
    return known and bool(tables) and done.issuperset(awaited) and first.issuperset(tables)


def switched(checkpoint: Checkpoint, remap: Remap) -> Checkpoint:
    """Returns what the ledger says once rows of the table beside are the target's: all of it that was said of that
    table is the target's by now."""
    name, beside = remap.target, remap.beside
    tables = {table for one, table in checkpoint.fed or () if one == beside}
    tables |= {table for one, table, _ in checkpoint.awaited if one == beside}
    fed = [pair for pair in checkpoint.fed or () if pair[0] not in (name, beside)]
    known = {one.target: one for one in checkpoint.mapped or ()}
    old, new = known.get(name), known[beside]
    identity = replace(
        new,
        target=name,
        schema=new.schema if old is None else old.schema,
        identity=None if old is None else old.identity,
        written=True,
    )
    bad = [one for one in checkpoint.bad_rows if one.target != name]
    after = replace(
        checkpoint,
        fed=tuple(sorted([*fed, *((name, table) for table in tables)])),
        awaited=tuple(one for one in checkpoint.awaited if one[0] not in (name, beside)),
        mapped=tuple(
            identity if one.target == name else one for one in checkpoint.mapped or () if one.target != beside
        ),
        bad_rows=tuple(replace(one, target=name) if one.target == beside else one for one in bad),
    )
    return moved(after, name, Phase.SWITCHED)


def awaited_requests(checkpoint: Checkpoint, beside: str) -> frozenset[str]:
    """Returns the names of the dump requests that a table beside waits for."""
    return frozenset(request for name, _, request in checkpoint.awaited if name == beside)


def _forgotten(checkpoint: Checkpoint, beside: str) -> Checkpoint:
    return replace(
        checkpoint,
        fed=None if checkpoint.fed is None else tuple(pair for pair in checkpoint.fed if pair[0] != beside),
        awaited=tuple(one for one in checkpoint.awaited if one[0] != beside),
        mapped=None
        if checkpoint.mapped is None
        else tuple(one for one in checkpoint.mapped if one.target != beside),
        bad_rows=tuple(one for one in checkpoint.bad_rows if one.target != beside),
    )
