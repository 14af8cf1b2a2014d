"""The table of broken variants: what is broken, who must catch it, within how many seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module

from migrator.errors import ConfigError
from scenarios.mutants import broken_apply as apply
from scenarios.mutants import broken_capture as capture
from scenarios.simulation.setup import BOTH, WATERMARK, WITNESS, Patch, Setup

ServerPatches = Callable[[], tuple[Patch, ...]]


def _servers(name: str) -> ServerPatches:
    """Patches of ``scenarios.mutants.servers``, which imports the adapters only when they are wanted."""
    return lambda: tuple(getattr(import_module("scenarios.mutants.servers"), name))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule of the product, broken.

    Attributes:
        name: for the command line.
        broken: the rule, and how it is broken.
        must_catch: codes of the checkers of which each has to catch it.
        seeds: the budget; a mutant that is not caught within it fails the build.
        setup: in which the rule matters.
        shared: what is broken in parts that the simulation and real servers share.
        simulated: what is broken in the adapters in memory.
        servers: what is broken in the adapters of real servers; None if it is broken in the simulation only.
    """

    name: str
    broken: str
    must_catch: tuple[str, ...]
    seeds: int
    setup: Setup = WITNESS
    shared: tuple[Patch, ...] = ()
    simulated: tuple[Patch, ...] = ()
    servers: ServerPatches | None = tuple

    def apply(self, setup: Setup | None = None) -> Setup:
        """The setup with this rule broken; without one, that in which the rule matters."""
        return replace(setup or self.setup, mutant=self.name, patches=(*self.shared, *self.simulated))

    @property
    def on_servers(self) -> bool:
        """Whether ``patch`` breaks the rule on real servers."""
        return self.servers is not None

    def patch(self) -> None:
        """Breaks the rule in this process for good, for a run on real servers.

        Raises ``ConfigError`` for a mutant of the simulation only.
        """
        if self.servers is None:
            raise ConfigError(
                f"the mutant {self.name} exists in the simulation only",
                where=self.name,
                remedy=f"name one of: {', '.join(each.name for each in MUTANTS if each.on_servers)}",
            )
        for patch in (*self.shared, *self.servers()):
            setattr(patch.owner, patch.name, patch.value)


MUTANTS = (
    Mutant(
        "reconciliation-off",
        "chunk rows go out whatever happened beside the read",
        ("D1", "D6"),
        100,
        shared=capture.RECONCILIATION_OFF,
    ),
    Mutant(
        "reconciliation-off-watermark",
        "the same with written watermarks and no witness",
        ("D1", "D6"),
        100,
        setup=WATERMARK,
        shared=capture.RECONCILIATION_OFF,
    ),
    Mutant(
        "low-after-select",
        "the low watermark is written when the rows are already read",
        ("D1", "D6"),
        150,
        setup=WATERMARK,
        shared=capture.LOW_AFTER_SELECT,
    ),
    Mutant(
        "visibility-off",
        "the watermarks' window alone decides, though commits become visible late",
        ("D1", "D6"),
        150,
        setup=BOTH,
        shared=capture.WITNESS_IGNORED,
    ),
    Mutant(
        "high-ignored",
        "a chunk goes out before the log was read past its read view",
        ("D1", "D6"),
        100,
        shared=capture.HIGH_IGNORED,
    ),
    Mutant(
        "read-under-way-forgotten",
        "keys are forgotten by the newest witness, though an older read view is still under way",
        ("D1",),
        800,
        shared=capture.CONFIRMED_BY_NEWEST,
    ),
    Mutant(
        "restart-forgets",
        "transactions in the gap between log and visibility at a crash are forgotten",
        ("D1",),
        1500,
        shared=capture.INHERITS_NOTHING,
    ),
    Mutant(
        "large-forgotten",
        "a transaction with more keys than are remembered counts as touching none",
        ("D1",),
        200,
        setup=replace(WITNESS, max_keys=1),
        shared=capture.FORGETS_LARGE,
    ),
    Mutant(
        "log-start-at-end",
        "a first start begins at the log's end, though commits there are not visible yet",
        ("D3",),
        300,
        simulated=capture.STARTS_AT_LOG_END,
        servers=_servers("STARTS_AT_LOG_END"),
    ),
    Mutant(
        "dumped-as-read",
        "the dump's stored progress tells what was read, not what was emitted",
        ("D3",),
        200,
        shared=capture.DUMPS_AS_READ,
    ),
    Mutant(
        "ordering-off",
        "the transactions of a segment change places",
        ("D2", "D6"),
        50,
        shared=capture.TRANSACTIONS_REVERSED,
    ),
    Mutant(
        "netting-first-image",
        "of several changes of a key in a batch the first after image wins",
        ("D3", "D6"),
        50,
        simulated=apply.FIRST_IMAGE,
        servers=_servers("FIRST_IMAGE"),
    ),
    Mutant(
        "netting-by-ends",
        "only first and last image of a key count, also where a dump row came in between",
        ("D4", "D6"),
        300,
        simulated=apply.NET_BY_ENDS,
        servers=_servers("NET_BY_ENDS"),
    ),
    Mutant(
        "deletes-dropped",
        "rows that vanish are left out of the net delta",
        ("D4",),
        50,
        simulated=apply.DELETES_DROPPED,
        servers=_servers("DELETES_DROPPED"),
    ),
    Mutant(
        "key-move-by-half",
        "of a row whose key changes only the new key is delivered",
        ("D4",),
        50,
        shared=capture.MOVES_BY_HALF,
    ),
    Mutant(
        "chunk-last",
        "within a batch chunk rows override what the log says of their keys",
        ("D6",),
        150,
        simulated=apply.CHUNK_LAST,
        servers=None,
    ),
    Mutant(
        "batch-inside-transaction",
        "segments claim to end on a transaction boundary when they don't",
        ("D6",),
        100,
        shared=capture.NEVER_IN_TRANSACTION,
    ),
    Mutant(
        "transaction-split",
        "every target table has a transaction of its own",
        ("D6",),
        50,
        simulated=apply.TABLES_APART,
        servers=_servers("TABLES_APART"),
    ),
    Mutant(
        "position-apart",
        "rows are committed, then the ledger in a transaction of its own",
        ("D5", "D6"),
        50,
        simulated=apply.POSITION_APART,
        servers=_servers("POSITION_APART"),
    ),
    Mutant(
        "position-first",
        "the ledger is committed, then the rows in a transaction of their own",
        ("D3", "D6"),
        50,
        simulated=apply.POSITION_FIRST,
        servers=None,
    ),
    Mutant(
        "fencing-off",
        "whoever comes writes, whatever its epoch",
        ("D1", "D6"),
        100,
        simulated=apply.FENCING_OFF,
        servers=_servers("FENCING_OFF"),
    ),
    Mutant(
        "acknowledged-first",
        "the source is told to forget what is not durable yet",
        ("D3",),
        200,
        shared=capture.ACKNOWLEDGED_FIRST,
    ),
    Mutant(
        "lost-is-done",
        "a connection lost around COMMIT counts as committed",
        ("D3",),
        100,
        shared=apply.LOST_IS_DONE,
    ),
    Mutant(
        "restart-at-end",
        "a restarted apply goes on after the newest segment instead of the ledger's",
        ("D3",),
        100,
        shared=apply.BEGINS_AT_LOG_END,
    ),
)
"""Every broken variant of the pipeline. Those of the judge are in ``scenarios.mutants.verifier``."""


def mutant(name: str) -> Mutant:
    """By name. Raises ``ConfigError`` naming all of them."""
    for each in MUTANTS:
        if each.name == name:
            return each
    raise ConfigError(
        f"there is no mutant {name!r}",
        where=name,
        remedy=f"name one of: {', '.join(each.name for each in MUTANTS)}",
    )
