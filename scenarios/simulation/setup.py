"""The kinds of simulated run, and the parts of the product that a run replaces by broken ones."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from scenarios.simulation.tables import AS_ALWAYS, Versions


@dataclass(frozen=True, slots=True)
class Patch:
    """One part of the product, replaced by a broken one: ``setattr(owner, name, value)``."""

    owner: Any
    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Setup:
    """One kind of run.

    Attributes:
        name: for people.
        ordered: commits become visible in log order.
        watermarks: chunk reads are surrounded by written watermarks.
        witness: reads come with witnesses.
        part_rows: row changes of a transaction that the log reader delivers at once.
        chunk_rows: rows of a chunk.
        max_keys: keys that the core remembers per transaction or window.
        workers: of a dump; a seed has one of these numbers.
        steps: decisions of a run.
        most_puts: rows of the register that a client's transaction writes at most.
        requests: an operator asks for further dumps.
        truncates: clients empty a table by TRUNCATE now and then.
        faults: crashes, lost leases, broken connections.
        changes: somebody edits the settings before each start (see ``edited``).
        mappings: somebody edits the mapping before each start (see ``mapping_of``).
        mutant: name of the broken variant, or "".
        patches: what breaks it.
    """

    name: str = "witness"
    ordered: bool = False
    watermarks: bool = False
    witness: bool = True
    part_rows: int = 2
    chunk_rows: int = 3
    max_keys: int = 20_000
    workers: tuple[int, ...] = (1, 2, 3)
    steps: int = 260
    most_puts: int = 3
    requests: bool = False
    truncates: bool = False
    faults: bool = True
    changes: bool = False
    mappings: bool = False
    mutant: str = ""
    patches: tuple[Patch, ...] = ()


WITNESS = Setup()
"""PostgreSQL and MariaDB by default: no watermark, exact witness, commits become visible in any order."""
WATERMARK = Setup("watermark", ordered=True, watermarks=True, witness=False)
"""DBLog as published, on an engine that makes commits visible in log order."""
BOTH = Setup("both", watermarks=True)
"""Watermarks and witness on an engine whose commits become visible in any order."""
TRUNCATES = replace(WITNESS, name="truncates", truncates=True, requests=True)
"""A table is emptied now and then, also while it is dumped, or dumped again."""
CHANGES = replace(TRUNCATES, name="changes", ordered=True, steps=360, most_puts=9, changes=True)
"""Every start has other settings than the one before; the one before may have been killed anywhere."""
MAPPINGS = replace(TRUNCATES, name="mappings", mappings=True)
"""Every start has another mapping than the one before. If it is refused, the operator follows the remedy or not.

Not one of ``SETUPS``: a target that is emptied, or taken out for a while, is no image of the source meanwhile.
"""
SETUPS = (
    WITNESS,
    WATERMARK,
    BOTH,
    replace(WITNESS, name="single", part_rows=1, chunk_rows=1),
    replace(WITNESS, name="few-keys", max_keys=1),
    replace(WATERMARK, name="few-keys-watermark", max_keys=1),
    replace(WITNESS, name="quiet", faults=False),
    replace(WITNESS, name="requests", requests=True),
    replace(BOTH, name="requests-both", requests=True, chunk_rows=2),
    TRUNCATES,
    replace(TRUNCATES, name="truncates-watermark", ordered=True, watermarks=True, witness=False),
    CHANGES,
)
_PLACEMENTS = ((False, True), (True, False), (True, True))
"""Watermarks, witness: on a server that makes commits visible in log order all of them are right."""


def setup_of(seed: int, setups: Sequence[Setup] = SETUPS) -> Setup:
    """The setup that a seed runs; neighbours run different ones."""
    return setups[seed % len(setups)]


def edited(setup: Setup, number: int) -> Setup:
    """The settings of one start, where somebody edits them: those that may be changed during a migration."""
    if not setup.changes:
        return setup
    rng = random.Random(number)
    watermarks, witness = rng.choice(_PLACEMENTS)
    return replace(
        setup,
        watermarks=watermarks,
        witness=witness,
        part_rows=rng.choice((1, 2, 5)),
        chunk_rows=rng.choice((1, 3, 7)),
        max_keys=rng.choice((1, 20_000)),
        workers=(rng.choice((1, 2, 3)),),
    )


def mapping_of(setup: Setup, number: int) -> Versions:
    """The targets that the mapping of one start has, and in which version, where somebody edits it."""
    if not setup.mappings or not number:
        return AS_ALWAYS
    rng = random.Random(f"mapping {number}")
    versions = {name: rng.choice(("", "1", "1", "1", "2")) for name in AS_ALWAYS}
    return {name: version for name, version in versions.items() if version}


@contextmanager
def patched(patches: Sequence[Patch]) -> Iterator[None]:
    """Breaks the product for a while."""
    kept = [(patch, patch.owner.__dict__[patch.name]) for patch in patches]
    try:
        for patch in patches:
            setattr(patch.owner, patch.name, patch.value)
        yield
    finally:
        for patch, original in reversed(kept):
            setattr(patch.owner, patch.name, original)
