"""A target's writer without its engine: one transaction per batch, the ledger in it, unknown outcomes looked up."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, TypeVar

from migrator.adapters.targets.shared.aside import Aside
from migrator.adapters.targets.shared.identities import Identities, WithRows
from migrator.adapters.targets.shared.ledger import LedgerTable, WriterSession
from migrator.adapters.targets.shared.prepared import WrittenTable
from migrator.adapters.targets.shared.reflected import seen_unchanged
from migrator.adapters.targets.shared.refused import (
    ConnectionLost,
    StatementRefused,
    lost_connection,
    refused_statement,
    temporary,
)
from migrator.adapters.targets.shared.settings import CommonSettings
from migrator.errors import ConnectionFailed, TargetError
from migrator.model.ledger import Ledger
from migrator.model.lineage import due, identity
from migrator.model.progress import Filling
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.mirror import Mirror
from migrator.ports.target import OrphansAside, TargetBatch, TargetRows
from migrator.schema.acts import note_lead

SessionT = TypeVar("SessionT", bound=WriterSession)
StructureT = TypeVar("StructureT", bound=WrittenTable)
PreparedT = TypeVar("PreparedT")


class TargetWriter(ABC, Generic[SessionT, StructureT, PreparedT]):
    """``ports.target.Target``, as far as it is the same on every engine. All writing goes through one session.

    Args:
        settings: where the target is.
        ledger: the engine's ledger.
        step: called at the points ``target.begun`` to ``target.committed``; what it raises rolls back.
    """

    def __init__(self, settings: CommonSettings, ledger: LedgerTable, step: Callable[[str], None]):
        self._address, self._migration = settings.server.address, settings.migration
        self._user, self._reason = settings.server.user, settings.reason
        self._ledger = ledger
        self._step = step
        self._structures: dict[TableId, StructureT] = {}
        self._identities = Identities()
        self._session: SessionT | None = None
        self._epoch: int | None = None
        self._orphans: OrphansAside | None = None

    def set_orphans_aside(self, orphans: OrphansAside) -> None:
        """Has rows that point at none taken out (see ``ports.target``)."""
        self._orphans = orphans

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """Reflects the named target tables. Raises ``TargetError`` naming those missing."""
        return [one.table for one in self._reflect(names)]

    def refused(self, table: TargetTable, rows: Any, untried: Collection[str] = ()) -> TargetError | None:
        """Tries rows in a copy of the table (see ``ports.target``)."""
        try:
            return self._tried(self._structure(table), rows, untried)
        except ConnectionLost as lost:
            raise self._lost(lost) from None

    def open(self, epoch: int) -> Ledger:
        """Takes the ledger over, making it first if needed; ends older sessions that hold its lock.

        Raises ``FencedError`` when the ledger saw a higher epoch, ``TargetError``, ``ConnectionFailed``.
        """
        self._upgrade()
        try:
            try:
                taken = self._take(epoch)
            except StatementRefused as refusal:
                if not self._waited_in_vain(refusal):
                    raise
                self._end_older(epoch)
                taken = self._take(epoch)
            self._opened(epoch, taken)
        except StatementRefused as refusal:
            raise self._ledger_refused(refusal) from None
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        if epoch != self._epoch:
            self._structures = {}  # read anew by a new leader, who may have dropped some
            self._identities = Identities()
        self._epoch = epoch
        return taken

    def apply(self, batch: TargetBatch) -> None:
        """Merges all rows and moves the ledger in one transaction (see ``ports.target``).

        Returns silently when the ledger already holds ``batch.segment``: that is how a batch whose outcome stayed
        unknown is tried again.
        """
        epoch = self._epoch
        if epoch is None:
            raise TargetError("the ledger wasn't taken over yet", remedy="call open() before apply()")
        self._identities.kept(lambda: self._apply(batch, epoch), self._others, self._address)
        self._identities.wrote()
        self._after_commit(batch)
        self._step("target.committed")

    def _apply(self, batch: TargetBatch, epoch: int) -> None:
        committing, session = False, None
        with self._undone_by_failure():
            try:
                session = self._connected()
                prepared = self._prepare(session, batch)
                self._begin(session, epoch)
                held = self._ledger.lock(session, self._migration)
                self._ledger.check_epoch(held, epoch)
                if not due(held, batch.segment, batch.link):
                    session.run("ROLLBACK")
                    return
                self._write(session, batch, prepared, held, identity(batch.link))
                committing = True
                session.run("COMMIT")
            except ConnectionLost:
                self._forget()
                if not (committing and self._committed(session, batch, epoch)):
                    raise

    def fill(self, piece: Callable[[Mirror], Iterator[TargetRows]]) -> None:
        """Writes a piece of the joined targets that are being filled (see ``ports.target``)."""
        epoch = self._epoch
        if epoch is None:
            raise TargetError("the ledger wasn't taken over yet", remedy="call open() before fill()")
        self._identities.kept(lambda: self._fill(piece, epoch), self._others, self._address)

    def _fill(self, piece: Callable[[Mirror], Iterator[TargetRows]], epoch: int) -> None:
        with self._undone_by_failure():
            session = self._connected()
            held = self._ledger.known(session, self._migration)
            if held.checkpoint is None:
                return
            batch = TargetBatch(held.segment, held.checkpoint, (), (), piece)
            prepared = self._prepare(session, batch)
            self._begin(session, epoch)
            held = self._ledger.lock(session, self._migration)
            self._ledger.check_epoch(held, epoch)
            self._write(session, batch, prepared, held, held.segment_id)
            session.run("COMMIT")
        self._after_commit(batch)
        self._step("target.committed")

    def close(self) -> None:
        """Ends the connection; what was not committed is rolled back. Safe to call twice."""
        self._forget()

    # -- what an engine gives -----------------------------------------------------------------------------------

    @abstractmethod
    def _upgrade(self) -> None:
        """Makes or revises the tool's own tables in the target."""

    @abstractmethod
    def _new_session(self) -> SessionT:
        """Opens a session. Raises ``ConnectionFailed``."""

    @abstractmethod
    def _begin(self, session: SessionT, epoch: int) -> None:
        """Begins a transaction of the leader of ``epoch``."""

    @abstractmethod
    def _waited_in_vain(self, refusal: StatementRefused) -> bool:
        """Tells whether the statement waited for a lock as long as it may."""

    @abstractmethod
    def _end_older(self, epoch: int) -> None:
        """Ends the sessions that cut-off or frozen earlier leaders have left, and waits for their locks."""

    @abstractmethod
    def _end_session(self, session: SessionT, lost: SessionT) -> None:
        """Ends on the server a session that we have lost: it could still commit."""

    @abstractmethod
    def _ledger_rights(self) -> str:
        """Returns the statements that grant what the ledger needs."""

    @abstractmethod
    def _found(self, names: Sequence[str]) -> Mapping[TableId, StructureT]:
        """Reads tables from the catalogue, in the order of the names. Raises ``TargetError`` naming those missing."""

    @abstractmethod
    def _columns_now(self, session: SessionT, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Returns table, column, type and the table's identity of each column of these tables, as the batch's
        transaction sees them."""

    @abstractmethod
    def _replaced(self, session: SessionT, tables: Sequence[str]) -> list[str]:
        """Returns, between transactions, those of some tables with other identities that surely are other ones."""

    @abstractmethod
    def _rows_there(self, session: SessionT) -> WithRows:
        """Returns what tells which target tables have rows, as the session sees them."""

    @abstractmethod
    def _tried(self, structure: StructureT, rows: Any, untried: Collection[str]) -> TargetError | None:
        """Tries rows in a copy of the table."""

    @abstractmethod
    def _prepare(self, session: SessionT, batch: TargetBatch) -> list[PreparedT]:
        """Encodes and checks a batch's rows before its transaction begins."""

    @abstractmethod
    def _merge(
        self,
        session: SessionT,
        batch: TargetBatch,
        prepared: list[PreparedT],
        partial: bool,
        orphans: OrphansAside | None,
    ) -> tuple[Filling, ...]:
        """Writes the rows; returns the joined targets that are being filled from then on.

        ``partial``: until now some table's dump was under way, or some target being filled. ``orphans``: what becomes
        of rows that point at none; None: they are refused.
        """

    def _opened(self, epoch: int, taken: Ledger) -> None:
        """Does what is left once the ledger is ours."""

    def _begun(self, session: SessionT) -> None:
        """Does what comes first in a batch's transaction, behind the ledger's lock."""

    def _check_whole(self, session: SessionT) -> None:
        """Raises ``TargetError`` where the transaction that is about to be committed isn't the one that was begun."""

    def _after_commit(self, batch: TargetBatch) -> None:
        """Does what is left once a batch is committed."""

    def _rolled_back(self) -> None:
        """Forgets what the transaction had made in the session."""

    def _session_forgotten(self) -> None:
        """Forgets what belonged to the session."""

    # -- the same on every engine -------------------------------------------------------------------------------

    def _take(self, epoch: int) -> Ledger:
        session = self._connected()
        self._ledger.check_not_newer(session, self._migration, epoch)
        self._begin(session, epoch)
        try:
            self._ledger.make(session, self._migration)
            held = self._ledger.lock(session, self._migration)
            taken = self._ledger.taken(session, held, epoch)
            if held.epoch < epoch:
                note_lead(
                    session.run,
                    session.rows,
                    self._ledger.history,
                    self._migration,
                    self._user,
                    epoch,
                    self._reason,
                )
            session.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return taken

    def _write(
        self, session: SessionT, batch: TargetBatch, prepared: list[PreparedT], held: Ledger, segment_id: str
    ) -> None:
        """Everything from the ledger's lock up to the COMMIT."""
        self._begun(session)
        session.run(self._ledger.mark, [self._migration])
        self._step("target.begun")
        known, with_rows = held.checkpoint, self._rows_there(session)
        self._identities.begun(batch, known, with_rows, self._address)
        partial = known is None or known.dumping() or bool(known.filling)
        # What is set aside is read under the ledger's lock, and written with the rows: neither is there alone.
        aside = Aside(() if known is None else known.bad_rows, batch.rows)
        batch = self._identities.seen_passing(batch)
        filling = self._merge(session, aside.seen(batch), prepared, partial, aside.noting(self._orphans))
        self._check_unchanged(session)
        self._step("target.merged")
        mapped = self._identities.holding(batch, {one.target for one in aside.new}, with_rows)
        bad, meanwhile = aside.left(batch.checkpoint), () if known is None else known.remaps
        checkpoint = replace(batch.checkpoint, filling=filling, bad_rows=bad, remaps=meanwhile, mapped=mapped)
        self._ledger.move(session, self._migration, batch.segment, checkpoint, segment_id)
        self._step("target.moved")
        self._check_whole(session)

    def _keys(self) -> dict[str, tuple[str, ...]]:
        return {table.name: one.table.key for table, one in self._structures.items()}

    def _check_unchanged(self, session: SessionT) -> None:
        if tables := [one.table for one in self._structures.values()]:
            self._identities.compared(seen_unchanged(tables, lambda names: self._columns_now(session, names)))

    def _others(self, tables: Sequence[str]) -> list[str]:
        with self._undone_by_failure():
            return self._replaced(self._connected(), tables)

    def _structure(self, table: TargetTable) -> StructureT:
        self._know([table.id])
        return self._structures[table.id]

    def _know(self, tables: Sequence[TableId]) -> None:
        """Reads the tables that weren't read yet."""
        unknown = [table.name for table in tables if table not in self._structures]
        if unknown:
            self._reflect(unknown)

    def _reflect(self, names: Sequence[str]) -> list[StructureT]:
        found = self._found(names)
        self._structures |= found
        by_name = {table.name: structure for table, structure in found.items()}
        return [by_name[name] for name in names]

    def _connected(self) -> SessionT:
        if self._session is None:
            self._session = self._new_session()
            self._session_forgotten()
        return self._session

    def _forget(self) -> None:
        session, self._session = self._session, None
        self._session_forgotten()
        if session is not None:
            session.close()

    def _roll_back(self) -> None:
        """Ends the transaction; a session that can't even do that is given up."""
        self._rolled_back()
        if self._session is None:
            return
        try:
            self._session.run("ROLLBACK")
        except (StatementRefused, ConnectionLost):
            self._forget()

    @contextmanager
    def _undone_by_failure(self) -> Iterator[None]:
        """Rolls back whatever fails within, and names what the server said. Raises ``TargetError``,
        ``ConnectionFailed``."""
        try:
            yield
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        except StatementRefused as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        except BaseException:
            self._roll_back()
            raise

    def _committed(self, lost: SessionT | None, batch: TargetBatch, epoch: int) -> bool:
        """Looks an unknown COMMIT up in the ledger.

        The old session is ended first and its row lock waited for: else it could still commit after the look.
        Raises ``ConnectionLost`` when the server can't be asked now; ``FencedError``.
        """
        self._step("target.unknown")
        session = self._connected()
        if lost is not None:
            self._end_session(session, lost)
        self._begin(session, epoch)
        held = self._ledger.lock(session, self._migration)
        session.run("ROLLBACK")
        # Also where the ledger holds the batch: that may be the new leader's work.
        self._ledger.check_epoch(held, epoch)
        return not due(held, batch.segment, batch.link)

    def _lost(self, lost: ConnectionLost) -> ConnectionFailed:
        self._forget()
        return lost_connection(self._address, str(lost))

    def _ledger_refused(self, refusal: StatementRefused) -> TargetError:
        if refusal.retryable():
            return temporary(refusal)
        return TargetError(
            "the target's ledger can't be used",
            where=self._ledger.name,
            cause=refusal.cause(),
            remedy=self._ledger_rights(),
        )

    def _unexpected(self, refusal: StatementRefused) -> TargetError:
        return (
            temporary(refusal) if refusal.retryable() else refused_statement(self._address, refusal.coded())
        )
