"""The table of broken variants: what is broken, who must catch it, within how many seeds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from types import ModuleType

from migrator.errors import ConfigError
from migrator.own_modules import own
from scenarios.mutants import broken_apply as apply
from scenarios.mutants import broken_capture as capture
from scenarios.simulation.setup import BOTH, TRUNCATES, WATERMARK, WITNESS, Patch, Setup

Patches = tuple[Patch, ...]
ServerPatches = Callable[[], Patches]


def _servers(name: str) -> ServerPatches:
    """Patches of ``scenarios.mutants.servers``, which imports the adapters only when they are wanted."""
    return lambda: tuple(getattr(import_module(own("scenarios.mutants.servers")), name))


@dataclass(frozen=True, slots=True)
class Mutant:
    """One rule of the product, broken.

    Attributes:
        name: for the command line.
        broken: the rule, and how it is broken.
        must_catch: codes of the checkers; each of them has to catch it.
        seeds: the budget; a mutant that is not caught within it fails the build.
        setup: the setup in which the rule matters.
        shared: patches of parts that the simulation and real servers share.
        simulated: patches of the adapters in memory.
        servers: returns patches of the adapters of real servers; None if the simulation alone is broken.
    """

    name: str
    broken: str
    must_catch: tuple[str, ...]
    seeds: int
    setup: Setup = WITNESS
    shared: Patches = ()
    simulated: Patches = ()
    servers: ServerPatches | None = tuple

    def apply(self, setup: Setup | None = None) -> Setup:
        """Breaks the rule in a setup; without one, in the setup in which the rule matters."""
        return replace(setup or self.setup, mutant=self.name, patches=(*self.shared, *self.simulated))

    @property
    def on_servers(self) -> bool:
        """Returns whether ``patch`` breaks the rule on real servers."""
        return self.servers is not None

    def patch(self) -> None:
        """Breaks the rule in this process for good, for a run on real servers.

        Raises ``ConfigError`` for a mutant of the simulation only.
        """
        if self.servers is None:
            raise ConfigError(
                f"the mutant {self.name} exists in the simulation only",
                where=self.name,
                remedy=f"name one of: {', '.join(variant.name for variant in ON_SERVERS)}",
            )
        for patch in (*self.shared, *self.servers()):
            setattr(patch.owner, patch.name, patch.value)


def _shared(
    name: str, must_catch: str, seeds: int, patches: Patches, broken: str, setup: Setup = WITNESS
) -> Mutant:
    """A rule broken once, in parts that the simulation and real servers share."""
    return Mutant(name, broken, tuple(must_catch.split()), seeds, setup, shared=patches)


def _apart(name: str, must_catch: str, seeds: int, module: ModuleType, patches: str, broken: str) -> Mutant:
    """A rule broken twice: by ``module`` in memory, by ``scenarios.mutants.servers`` on real servers."""
    codes = tuple(must_catch.split())
    return Mutant(name, broken, codes, seeds, simulated=getattr(module, patches), servers=_servers(patches))


def _simulated(name: str, must_catch: str, seeds: int, patches: Patches, broken: str) -> Mutant:
    """A rule broken in the simulation only."""
    return Mutant(name, broken, tuple(must_catch.split()), seeds, simulated=patches, servers=None)


SIDE_BY_SIDE = replace(WITNESS, workers=(3,))
GROWING = replace(SIDE_BY_SIDE, chunk_rows=1)

# name, checkers that must catch it, seeds, where it is broken; what is broken, and the setup if it is not WITNESS
MUTANTS = (
    _shared("reconciliation-off", "D1 D6", 100, capture.RECONCILIATION_OFF,
        "chunk rows go out whatever happened beside the read"),
    _shared("reconciliation-off-watermark", "D1 D6", 100, capture.RECONCILIATION_OFF,
        "the same with written watermarks and no witness", WATERMARK),
    _shared("low-after-select", "D1 D6", 150, capture.LOW_AFTER_SELECT,
        "the low watermark is written when the rows are already read", WATERMARK),
    _shared("visibility-off", "D1 D6", 150, capture.WITNESS_IGNORED,
        "the watermarks' window alone decides, though commits become visible late", BOTH),
    _shared("high-ignored", "D1 D6", 100, capture.HIGH_IGNORED,
        "a chunk goes out before the log was read past its read view"),
    _shared("read-under-way-forgotten", "D1", 800, capture.CONFIRMED_BY_NEWEST,
        "keys are forgotten by the newest witness, though an older read view is still under way"),
    _shared("restart-forgets", "D1", 1500, capture.INHERITS_NOTHING,
        "transactions in the gap between log and visibility at a crash are forgotten"),
    _shared("large-forgotten", "D1", 200, capture.FORGETS_LARGE,
        "a transaction with more keys than are remembered counts as touching none", replace(WITNESS, max_keys=1)),
    _shared("truncate-forgotten", "D6", 400, capture.TRUNCATES_FORGOTTEN,
        "a TRUNCATE touches no key, so that a chunk read before it goes out after it", TRUNCATES),
    _shared("truncate-ignored", "D4 D6", 50, apply.TRUNCATES_IGNORED,
        "the rows that a TRUNCATE takes away stay in the target", TRUNCATES),
    _apart("log-start-at-end", "D3", 300, capture, "STARTS_AT_LOG_END",
        "a first start begins at the log's end, though commits there are not visible yet"),
    _shared("dumped-as-read", "D3", 200, capture.DUMPS_AS_READ,
        "the dump's stored progress tells what was read, not what was emitted"),
    _shared("grown-range-cut", "D3", 50, capture.GROWN_RANGE_CUT,
        "the rest of a range of keys that has grown since its end was found is left out", GROWING),
    _shared("chunks-as-they-come", "D3", 100, capture.AS_THEY_COME,
        "chunks of one table go out in the order in which they were read, not in key order", SIDE_BY_SIDE),
    _shared("ordering-off", "D2 D6", 50, capture.TRANSACTIONS_REVERSED,
        "the transactions of a segment change places"),
    _apart("netting-first-image", "D3 D6", 50, apply, "FIRST_IMAGE",
        "of several changes of a key in a batch the first after image wins"),
    _apart("netting-by-ends", "D4 D6", 300, apply, "NET_BY_ENDS",
        "only first and last image of a key count, also where a dump row came in between"),
    _apart("deletes-dropped", "D4", 50, apply, "DELETES_DROPPED",
        "rows that vanish are left out of the net delta"),
    _shared("key-move-by-half", "D4", 50, capture.MOVES_BY_HALF,
        "of a row whose key changes only the new key is delivered"),
    _simulated("chunk-last", "D6", 150, apply.CHUNK_LAST,
        "within a batch chunk rows override what the log says of their keys"),
    _shared("batch-inside-transaction", "D6", 100, capture.NEVER_IN_TRANSACTION,
        "segments claim to end on a transaction boundary when they don't"),
    _apart("transaction-split", "D6", 50, apply, "TABLES_APART",
        "every target table has a transaction of its own"),
    _apart("position-apart", "D5 D6", 50, apply, "POSITION_APART",
        "rows are committed, then the ledger in a transaction of its own"),
    _simulated("position-first", "D3 D6", 50, apply.POSITION_FIRST,
        "the ledger is committed, then the rows in a transaction of their own"),
    _apart("fencing-off", "D1 D6", 100, apply, "FENCING_OFF",
        "whoever comes writes, whatever its epoch"),
    _apart("split-brain", "D1 D6", 100, apply, "SPLIT_BRAIN",
        "a leader never doubts its lease, and whoever comes writes"),
    _shared("acknowledged-first", "D3", 200, capture.ACKNOWLEDGED_FIRST,
        "the source is told to forget what is not durable yet"),
    _shared("lost-is-done", "D3", 100, apply.LOST_IS_DONE,
        "a connection lost around COMMIT counts as committed"),
    _shared("restart-at-end", "D3", 100, apply.BEGINS_AT_LOG_END,
        "a restarted apply goes on after the newest segment instead of the ledger's"),
)  # fmt: skip
"""Every broken variant of the pipeline. Those of the judge are in ``scenarios.mutants.verifier``."""


def _of_cut_over(name: str, must_catch: str, broken: str) -> Mutant:
    """A rule of cut-overs broken on real servers; the simulation has none."""

    def found() -> Patches:
        return tuple(import_module(own("scenarios.mutants.of_cut_overs")).PATCHES[name])

    return Mutant(name, broken, tuple(must_catch.split()), 0, servers=found)


OF_CUT_OVERS = (
    _of_cut_over("fence-by-asking", "S3", "the fence is asked for, not raised"),
    _of_cut_over("not-drained", "S4",
        "the other side is opened though the stream isn't at the log's end"),
    _of_cut_over("undo-skipped", "S5", "a switch that is undone opens nothing"),
    _of_cut_over("return-forgets", "S1 S4 S6",
        "a switch that is undone leaves nothing of the way back, which begins anew"),
    _of_cut_over("finish-opens-both", "S3", "whoever finishes takes every fence down"),
    _of_cut_over("reads-not-pointed", "S7", "reads are pointed in the record, and nowhere else"),
    _of_cut_over("not-numbered", "S8", "what gives numbers on the side that is opened stays where it was"),
    _of_cut_over("back-begins-late", "S1 S6",
        "the way back passes over what is written before the record says that the new side is open"),
)  # fmt: skip
"""Broken variants of cut-overs, which only the scenarios of cut-overs can catch."""
ON_SERVERS = (*(variant for variant in MUTANTS if variant.on_servers), *OF_CUT_OVERS)
"""Every variant that real servers can be tried with."""


def mutant(name: str) -> Mutant:
    """Finds a mutant by name. Raises ``ConfigError`` naming all of them."""
    known = {variant.name: variant for variant in (*MUTANTS, *OF_CUT_OVERS)}
    if name not in known:
        raise ConfigError(
            f"there is no mutant {name!r}", where=name, remedy=f"name one of: {', '.join(known)}"
        )
    return known[name]
