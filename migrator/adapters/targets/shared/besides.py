"""Tables beside row-wise targets, without an engine: the ledger is moved with what is done to them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Generic, Protocol, TypeVar

from migrator.adapters.targets.shared.ledger import LedgerSession, LedgerTable
from migrator.adapters.targets.shared.refused import (
    ConnectionLost,
    StatementRefused,
    lost_connection,
    refused_statement,
    temporary,
)
from migrator.adapters.targets.shared.settings import CommonSettings
from migrator.columnar.shown import key_text
from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint, Phase, Remap
from migrator.model.remaps.remap import remap_of
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.besides import Change
from migrator.schema.acts import note, values


class BesideSession(LedgerSession, Protocol):
    """A session of the target that one thread uses. Raises ``StatementRefused`` and ``ConnectionLost``."""

    def close(self) -> None:
        """Ends the session; an open transaction is rolled back by the server."""
        ...


SessionT = TypeVar("SessionT", bound=BesideSession)


class BesideTables(ABC, Generic[SessionT]):
    """``ports.besides.Besides``, as far as it is the same on every engine.

    Args:
        settings: where the target is.
        ledger: the engine's.
        step: called at the points ``remap.merged`` and ``remap.moved``; what it raises rolls back.
    """

    def __init__(self, settings: CommonSettings, ledger: LedgerTable, step: Callable[[str], None]):
        self._common, self._ledger, self._step = settings, ledger, step
        self._migration = settings.migration

    def note(self, change: Change, act: str = "", detail: str = "", epoch: int | None = None) -> bool:
        """See the port."""
        with self._opened() as session:
            held = self._locked(session, epoch)
            if held.checkpoint is None:
                session.run("ROLLBACK")
                return False
            return self._moved(session, held, held.checkpoint, change(held.checkpoint), (act, detail))

    def empty(self, epoch: int, beside: str) -> None:
        """See the port."""
        with self._opened() as session:
            self._locked(session, epoch)
            session.run(f"DELETE FROM {self._qualified(beside)}")
            session.run("COMMIT")

    def make(self, target: str, beside: str) -> None:
        """See the port."""
        statement = self._like(target, beside)
        with self._opened() as session:
            if not self._found(session, beside):
                with self._granted(statement):
                    session.run(statement)

    def drop(self, beside: str) -> None:
        """See the port."""
        statement = f"DROP TABLE IF EXISTS {self._qualified(beside)}"
        with self._opened() as session, self._granted(statement):
            session.run(statement)

    def exists(self, name: str) -> bool:
        """See the port."""
        with self._opened() as session:
            return self._found(session, name)

    def switch(self, epoch: int, remap: Remap, written: Sequence[str], change: Change) -> Ledger | None:
        """See the port."""
        with self._opened() as session:
            self._named(session, epoch)
            merge = self._merging(session, remap, tuple(written))
            held = self._locked(session, epoch)
            known = remap_of(held.checkpoint, remap.target)
            if held.checkpoint is None or known is None or known.phase is not Phase.FILLING:
                session.run("ROLLBACK")
                return None
            checkpoint = held.checkpoint
            with _or_given_up(remap.target):
                merge(not checkpoint.dumping() and not checkpoint.filling)
            self._step("remap.merged")
            new, said = change(checkpoint), f"{remap.target}: its next function makes it from now on"
            mapped = (
                replace(one, holds=None) if one.target == remap.target else one for one in new.mapped or ()
            )
            new = new if new.mapped is None else replace(new, mapped=tuple(mapped))
            self._moved(session, held, checkpoint, new, ("remap switched", said))
            return replace(held, checkpoint=new)

    # -- what an engine gives -----------------------------------------------------------------------------------

    @abstractmethod
    def _new_session(self) -> SessionT:
        """Opens a session. Raises ``ConnectionFailed``."""

    @abstractmethod
    def _begin(self, session: SessionT, epoch: int | None) -> None:
        """Begins a transaction, of the leader of ``epoch`` if there is one."""

    @abstractmethod
    def _qualified(self, name: str) -> str:
        """Returns the quoted name of a table where the target's are."""

    @abstractmethod
    def _found(self, session: SessionT, name: str) -> bool:
        """Tells whether the name is taken there."""

    @abstractmethod
    def _like(self, target: str, beside: str) -> str:
        """Returns the statement that makes a table of the same columns, keys and rules for values."""

    @abstractmethod
    def _rights(self) -> str:
        """Returns the grant that lets the login make and drop tables."""

    @abstractmethod
    def _merging(self, session: SessionT, remap: Remap, written: tuple[str, ...]) -> Callable[[bool], None]:
        """Prepares a merge outside of the transaction, and returns what does it inside.

        It is called with whether foreign keys must hold, and raises ``TargetError`` or ``StatementRefused``.
        """

    def _named(self, session: SessionT, epoch: int) -> None:
        """Makes the session one that a newer leader finds and ends, should this process be frozen."""

    # -- the same on every engine -------------------------------------------------------------------------------

    def _table(self, name: str) -> TableId:
        server = self._common.server
        return TableId(server.schema or server.database, name)

    def _locked(self, session: SessionT, epoch: int | None) -> Ledger:
        self._begin(session, epoch)
        held = self._ledger.lock(session, self._migration)
        if epoch is not None:
            self._ledger.check_epoch(held, epoch)
        return held

    def _moved(
        self, session: SessionT, held: Ledger, old: Checkpoint, new: Checkpoint, act: tuple[str, str]
    ) -> bool:
        """Stores the changed checkpoint and commits; False, rolled back, where nothing changed.

        ``act``: for the history, with what was done; an empty one isn't kept.
        """
        if new is old:
            session.run("ROLLBACK")
            return False
        self._ledger.move(session, self._migration, held.segment, new, held.segment_id)
        if act[0]:
            login, reason = self._common.server.user, self._common.reason
            row = values(self._migration, act[0], login, reason=reason, detail=act[1])
            note(session.run, session.rows, self._ledger.history, row)
        self._step("remap.moved")
        session.run("COMMIT")
        return True

    @contextmanager
    def _opened(self) -> Iterator[SessionT]:
        """A session; names what the server says within. Raises ``TargetError``, ``ConnectionFailed``."""
        address = self._common.server.address
        try:
            with closing(self._new_session()) as session:
                yield session
        except ConnectionLost as lost:
            raise lost_connection(address, str(lost)) from None
        except StatementRefused as refusal:
            raise (
                temporary(refusal) if refusal.retryable() else refused_statement(address, refusal.coded())
            ) from None

    @contextmanager
    def _granted(self, statement: str) -> Iterator[None]:
        try:
            yield
        except StatementRefused as refusal:
            if refusal.retryable():
                raise
            raise TargetError(
                "the table beside a target can't be made or dropped",
                where=statement,
                cause=refusal.cause(),
                remedy=f"grant the right to make and drop tables there, {self._rights()}; or do away with what the"
                " server names; then try again",
            ) from None


def bring(
    session: BesideSession, statements: Iterable[str], otherwise: Iterable[str], table: TargetTable
) -> None:
    """Brings all rows of a table beside into its target, in the open transaction.

    Args:
        session: of the target.
        statements: bring the rows.
        otherwise: queries for a row of which the two tables don't hold the same: its key's values as text.
        table: the target table.

    Raises ``StatementRefused``, and ``TargetError`` naming such a row.
    """
    for statement in statements:
        session.run(statement)
    for query in otherwise:
        for row in session.rows(query):
            raise TargetError(
                f"rows of a next mapping don't stay in {table.id} as they were written",
                where=f"{table.id}, {key_text(table.key, list(row))}",
                cause="a trigger or a rule of that table changes what is written to it",
                remedy="disable it until cut-over, then start again: nothing was written",
            )


@contextmanager
def _or_given_up(target: str) -> Iterator[None]:
    try:
        yield
    except TargetError as error:
        error.cause = f"{error.cause}. Met when the rows of its next mapping were brought into {target}"
        error.remedy = f"{error.remedy}. Or give the next mapping up: migrator remap {target} --abort"
        raise
