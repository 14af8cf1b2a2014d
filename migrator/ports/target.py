"""The target database: its tables, its ledger, and the one transaction that moves both."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.progress import BadRow, Checkpoint, GrainName, Parent
from migrator.model.segment import Link
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows


@dataclass(frozen=True, slots=True)
class StagedRows:
    """Mapped dump rows that executors have put beside the target, to be merged by whoever holds the receipts.

    Attributes:
        parts: one receipt a task that had rows, as ``Stager.staging``'s function returned it.
        num_rows: rows in all of them, at least 1.
        here: maps the same rows again and brings them to the driver, as ``pyarrow.Table``. May run Spark jobs.
    """

    parts: tuple[str, ...]
    num_rows: int
    here: Callable[[], Any]


Stage = Callable[[Iterator[Any]], "str | None"]
"""Run by a task on an executor: puts the record batches of one attempt beside the target, returns a receipt,
or None when there are no rows. Can be pickled."""


class Stager(Protocol):
    """A target that executors can write to in parallel. Another thread than the target's may use it."""

    def staging(self, table: TargetTable, segment: int) -> Stage | None:
        """Returns how to stage dump rows of a batch that ends with ``segment``; None if the driver must load them."""
        ...


@dataclass(frozen=True, slots=True)
class TargetRows:
    """Mapped rows of one batch for one target table, as ``pyarrow.Table`` with the written columns only.

    Attributes:
        table: the target table.
        chunk: mapped dump rows: upserted, merged before the others. A ``pyarrow.Table`` or ``StagedRows``.
        before: mapped net-before rows: their keys vanish unless ``after`` has them.
        after: mapped net-after rows: upserted.
        strict_inserts: whether a row of ``after`` without a row in ``before`` must not exist yet (the table's dump
            is over): then two source rows that map to one key are an error instead of overwriting each other.
        replaces: whether all rows of this table in the batch are all it shall hold: others vanish.
        doubted: keys, one column each, whose rows vanish unless ``chunk`` or ``after`` has them, or a row of
            another
            table points at them.
        emptied: whether every row that the table has when the batch begins vanishes first.
        bad_rows: rows that were taken out of these because the target refuses them; their keys are among ``before``.
            Of a joined target also grains that were taken out, as the mapping fails on them.
        grains: those of a joined target that were set aside until now, and are mapped again.
        anew: whether a joined target is derived anew from this batch on: all that is set aside of it is tried again.
    """

    table: TargetTable
    chunk: Any | None
    before: Any | None
    after: Any | None
    strict_inserts: bool
    replaces: bool = False
    doubted: Any | None = None
    emptied: bool = False
    bad_rows: tuple[BadRow, ...] = ()
    grains: frozenset[GrainName] = frozenset()
    anew: bool = False

    def brings_rows(self) -> bool:
        """Tells whether rows are written; those of dumps count, whoever stages them."""
        return any(rows is not None and rows.num_rows > 0 for rows in (self.chunk, self.after))

    def leaves_rows(self) -> bool:
        """Tells whether the table has rows for sure once these are written: changes of the same batch may delete what
        a dump brings."""
        chunk, before, after = (
            rows is not None and rows.num_rows > 0 for rows in (self.chunk, self.before, self.after)
        )
        return after or (chunk and not before)


@dataclass(frozen=True, slots=True)
class Orphan:
    """A row of a target table whose foreign key points at a row that the target hasn't.

    Attributes:
        table: its table.
        key: its key as text (``columnar.bad_rows.key_texts``).
        row: its columns as text; the ends of long ones are left out.
        constraint: the foreign key's name.
        parent: the row that is missing; its key has no values where the foreign key has a part alone.
    """

    table: TargetTable
    key: tuple[str, ...]
    row: str
    constraint: str
    parent: Parent


@dataclass(frozen=True, slots=True)
class OrphansAside:
    """Rows without the row that their foreign key points at are taken out of the target, and set aside.

    Attributes:
        most: of one table; more needn't be read.
        records: given those of one foreign key, returns what the ledger keeps of them. Raises ``TargetError`` where
            they are more than may go aside.
    """

    most: int
    records: Callable[[Sequence[Orphan]], tuple[BadRow, ...]]


@dataclass(frozen=True, slots=True)
class TargetBatch:
    """Everything one target transaction does. ``segment`` is the last segment of the batch.

    Attributes:
        mirror: what the batch does to the mirror, which comes first.
        joined: given the mirror, maps the joined targets. It may give rows of one table in several parts.
        link: how it hangs on the event log: applied to a ledger that stands elsewhere it would leave a gap.
        foreign: changes in it that we haven't made ourselves (see ``Manifest.echo``).
        echo: whether it consists of changes that were made on the target's side.
    """

    segment: int
    checkpoint: Checkpoint
    rows: tuple[TargetRows, ...]
    mirror: tuple[MirrorRows, ...] = ()
    joined: Callable[[Mirror], Iterator[TargetRows]] | None = None
    link: Link | None = None
    foreign: int = 0
    echo: bool = False


class Target(Protocol):
    """The new database. One thread uses it."""

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """Everything that stands in the way (grants, missing tables, keys, unsupported types), all at once.

        ``beside``: what a run makes for itself beside those tables.
        """
        ...

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """Reflects the named tables. Raises ``TargetError`` naming those that don't exist."""
        ...

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns the rules for the values of the table's columns, by name; not everything can be said in rules."""
        ...

    def refused(self, table: TargetTable, rows: Any, untried: Collection[str] = ()) -> TargetError | None:
        """Returns the error with which the table would refuse mapped rows, tried where nobody sees it, or None.

        ``rows``: a ``pyarrow.Table`` of columns that it has, the key's among them. ``untried``: columns that are
        mapped as well, but not in ``rows``: nothing that depends on them is asked. Nor are foreign keys, and rows
        that the table has. Raises ``ConnectionFailed``, ``TargetError`` where rows can't be tried.
        """
        ...

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """Makes what these targets need of the mirror; called once, after ``open``.

        Raises ``TargetError`` when a table that is dumped already isn't in the mirror, or in another form.
        """
        ...

    def open(self, epoch: int) -> Ledger:
        """Takes the ledger over under ``epoch``. Raises ``FencedError`` when the ledger saw a higher one."""
        ...

    def apply(self, batch: TargetBatch) -> None:
        """Merges all rows and moves the ledger in one transaction, epoch checked under the ledger's row lock.

        Either everything of the batch is committed or nothing. An unknown outcome (connection lost around COMMIT)
        is looked up in the ledger. The ledger's ``bad_rows`` become what ``columnar.bad_rows.StillBad`` finds in it.
        Raises ``TargetError`` naming table, row and constraint, or that the ledger doesn't stand where the batch
        begins; ``RowRefused`` where another version of one row may fit; ``FencedError``; ``ConnectionFailed``
        (retryable).
        """
        ...

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """Writes what ``piece`` gives in a transaction of its own, epoch checked; the ledger stays at its place.

        The mirror notes in the same transaction what is covered, so an unknown outcome needs no look: the next piece
        is what isn't covered then. Raises as ``apply``.
        """
        ...

    def set_orphans_aside(self, orphans: OrphansAside) -> None:
        """Has rows whose foreign key points at a row that isn't there taken out from now on, not refused."""
        ...

    def close(self) -> None:
        """Ends the connection. Safe to call twice."""
        ...
