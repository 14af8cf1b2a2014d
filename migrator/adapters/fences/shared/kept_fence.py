"""The order of every fence: alone, noted, changed, looked at; and back again."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import FenceSession, Limit
from migrator.errors import CutoverError, FencedError
from migrator.model.cutover.fence import (
    FenceKind,
    FencePlan,
    FenceState,
    LateWriters,
    OpenTransaction,
    Standing,
    Survey,
)
from migrator.model.server import Server
from migrator.model.table import TableId

S = TypeVar("S", bound=FenceSession)
S_contra = TypeVar("S_contra", bound=FenceSession, contravariant=True)
Before = Mapping[str, Any]
_HOLDER_S = 1.0
"""Seconds that a leader waits for the lock of a fence until it ends the session that has it."""
SHARED_KINDS = (FenceKind.REVOKE, FenceKind.ACCOUNT_LOCK, FenceKind.READ_ONLY)
"""Kinds of which a server can have one only: the second would take the first one's work for what was there before."""


class Means(Protocol[S_contra]):
    """One kind of fence on one engine. Every method may be run again after it was cut off at any statement."""

    def before(self, session: S_contra, plan: FencePlan) -> Before:
        """Returns what is there now and will be changed. Raises ``CutoverError`` where it couldn't be put back."""

    def put_up(self, session: S_contra, noted: Noted, limit: Limit) -> None:
        """Changes whatever lacks for the fence to be up."""

    def take_down(self, session: S_contra, noted: Noted, limit: Limit) -> None:
        """Puts back what was there before, and forgets the notes with the last statement."""

    def state(self, session: S_contra, noted: Noted) -> FenceState:
        """Returns what the server says."""

    def late(self, session: S_contra, noted: Noted) -> LateWriters:
        """Returns the refused writers."""

    def by_hand(self, session: S_contra, noted: Noted) -> list[str]:
        """Returns the statements that put back what was there before, without those that forget the notes."""


@dataclass(frozen=True, slots=True)
class Side:
    """The side of a migration that is fenced.

    Attributes:
        server: the database, and the login that may raise a fence there.
        migration: name of the migration.
        side: ``source`` or ``target``.
    """

    server: Server
    migration: str
    side: str

    def name(self) -> str:
        """Returns the beginning of the names of what the fence makes, such as triggers: of plain letters."""
        digest = hashlib.sha256(f"{self.migration} {self.side} {self.server.database}".encode()).hexdigest()
        return f"migrator_fence_{digest[:12]}"


class KeptFence(ABC, Generic[S]):
    """``ports.fence.Fence`` over the means of an engine.

    Args:
        side: what is fenced.
        means: the engine's kinds.
        step: called at the points ``fence.noting`` to ``fence.opened``; what it raises leaves things as they are.
    """

    def __init__(
        self,
        side: Side,
        means: Mapping[FenceKind, Means[S]],
        step: Callable[[str], None] = lambda name: None,
    ):
        self._side, self._means, self._step = side, means, step
        self._where = side.server.address

    def survey(self, tables: Sequence[TableId], our_login: str) -> Survey:
        """Returns which kinds can be raised and what would pass them (see ``ports.fence``)."""
        with self._session() as session:
            return self._surveyed(session, tables, our_login)

    def raise_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """Raises the fence (see ``ports.fence``)."""
        limit = Limit(limit_s, "the fence", self._where)
        with self._session() as session:
            noted = self._claimed(session, epoch, limit)
            if noted is not None and noted.plan != plan:
                raise self._another(noted.plan)
            if noted is None:
                self._make_notes_table()
                noted = self._note(session, plan, epoch, limit)
            elif self._stands(session, noted):
                return self._means_of(plan).state(session, noted)
            try:
                self._means_of(plan).put_up(session, noted, limit)
                state = self._means_of(plan).state(session, noted)
                if state.standing is not Standing.UP:
                    raise CutoverError(
                        "the fence was raised, and yet isn't up",
                        where=self._where,
                        cause="; ".join(state.missing),
                        remedy="see who changes rights or triggers meanwhile, and try again",
                        retryable=True,
                    )
            except CutoverError as error:
                self._undo(session, noted, error, limit_s)
                raise
            self._step("fence.raised")
            return state

    def state(self, plan: FencePlan) -> FenceState:
        """Returns what the server says of the fence."""
        with self._session() as session:
            noted = self._noted(session, plan)
            return self._means_of(noted.plan).state(session, noted)

    def open_transactions(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Returns who holds or could still commit changes of the tables (see ``ports.fence``)."""
        with self._session() as session:
            return tuple(self._open_transactions(session, plan))

    def in_the_way(self, plan: FencePlan) -> tuple[OpenTransaction, ...]:
        """Returns those that keep the fence from being raised (see ``ports.fence``)."""
        if plan.kind is not FenceKind.TRIGGERS:
            return ()
        with self._session() as session:
            return tuple(one for one in self._in_the_way(session, plan) if one.since)

    def end(self, transactions: Sequence[OpenTransaction]) -> None:
        """Ends these."""
        with self._session() as session:
            for one in transactions:
                self._end(session, one)

    def late(self, plan: FencePlan) -> LateWriters:
        """Returns the writers that were refused since the fence was raised."""
        with self._session() as session:
            noted = self._notes().read(session)
            if noted is None:
                return LateWriters(0, (), "nothing is counted, as no fence stands")
            return self._means_of(noted.plan).late(session, noted)

    def open_fence(self, plan: FencePlan, limit_s: float, epoch: int = 0) -> FenceState:
        """Puts everything back as it was (see ``ports.fence``)."""
        limit = Limit(limit_s, "the fence's removal", self._where)
        with self._session() as session:
            noted = self._claimed(session, epoch, limit)
            if noted is None:
                return self._means_of(plan).state(session, self._as_if_noted(session, plan))
            if noted.plan != plan:
                raise self._another(noted.plan)
            self._step("fence.opening")
            self._means_of(plan).take_down(session, noted, limit)
            self._step("fence.opened")
            return self._means_of(plan).state(session, noted)

    def by_hand(self, plan: FencePlan) -> list[str]:
        """Returns the statements that open the side without the tool (see ``ports.fence``)."""
        with self._session() as session:
            noted = self._noted(session, plan)
            return [*self._means_of(noted.plan).by_hand(session, noted), *self._forgotten_by_hand()]

    def _stands(self, session: S, noted: Noted) -> bool:
        up = self._means_of(noted.plan).state(session, noted).standing is Standing.UP
        return up and self._notes().up_at(session) is not None

    def _claimed(self, session: S, epoch: int, limit: Limit) -> Noted | None:
        """Takes the fence's lock until the session ends, and keeps the leader's epoch; returns the notes.

        The lock ends with the session, and the changes with it: whoever has it and a higher epoch acts last. Raises
        ``FencedError`` where a later leader was here.
        """
        patience = time.monotonic() + min(_HOLDER_S, limit.left_s() / 2)

        def had() -> bool:
            if self._alone(session):
                return True
            self._check(session, epoch)
            if epoch and time.monotonic() > patience:
                # A leader that sleeps with the lock: a later one waits for it no longer.
                for one in self._our_holders(session):
                    self._end(session, one)
            return False

        limit.until(had, lambda: self._lock_holders(session))
        self._check(session, epoch)
        noted, latest = self._notes().read(session), self._notes().epoch(session)
        if epoch <= latest:
            return noted
        self._make_notes_table()
        noted = None if noted is None else replace(noted, epoch=epoch)
        try:
            self._notes().claim(session, noted, epoch, limit)
        except CutoverError as error:
            # A server that this fence makes read-only takes no notes; it does when it is opened.
            if noted is not None and noted.plan.kind is FenceKind.READ_ONLY:
                return noted
            if others := self._notes().others(session, FenceKind.READ_ONLY):
                error.remedy = f"another fence stands here: {', '.join(others)}; open that one first"
            raise
        return noted

    def _check(self, session: S, epoch: int) -> None:
        latest = self._notes().epoch(session)
        if latest > epoch:
            raise FencedError(
                f"a later leader has changed this fence: epoch {latest}, ours is {epoch}",
                where=self._where,
                cause="this process slept, or was cut off, while another one took over",
                remedy="stop this process; it must not write any more. If no other one leads, as after a reset,"
                " run the SQL by which `migrator cutover plan` opens the side by hand",
            )

    def _note(self, session: S, plan: FencePlan, epoch: int, limit: Limit) -> Noted:
        refusals = self._surveyed(session, plan.tables, plan.login).refusals(plan)
        others = self._notes().others(session) if plan.kind in SHARED_KINDS else []
        if others:
            refusals = (*refusals, f"another fence stands here: {', '.join(others)}; open that one first")
        if refusals:
            raise CutoverError(
                f"the fence of kind {plan.kind} can't be raised",
                where=self._where,
                cause="; ".join(refusals),
                remedy="choose the kind of fence that the survey advises, remove what is named, or name it as"
                " accepted in the plan",
            )
        noted = Noted(plan, self._means_of(plan).before(session, plan), epoch)
        self._step("fence.noting")
        self._notes().write(session, noted, limit)
        return noted

    def _undo(self, session: S, noted: Noted, error: CutoverError, limit_s: float) -> None:
        """Opens again what couldn't be raised. Where that fails too, the error says what is left."""
        try:
            limit = Limit(max(limit_s, 5.0), "the undoing of a fence", self._where)
            self._means_of(noted.plan).take_down(session, noted, limit)
        except CutoverError as left:
            error.cause += f"; and it couldn't be undone wholly: {left.what}, {left.cause}"
            error.remedy = f"open the fence, and then: {error.remedy}"

    def _another(self, noted: FencePlan) -> CutoverError:
        return CutoverError(
            "another plan's fence stands here",
            where=self._where,
            cause=f"it is of kind {noted.kind} on {', '.join(map(str, noted.tables))}, for {noted.login or 'nobody'}",
            remedy="open that fence first, with the plan that raised it",
        )

    def _means_of(self, plan: FencePlan) -> Means[S]:
        found = self._means.get(plan.kind)
        if found is None:
            raise CutoverError(
                f"the fence of kind {plan.kind} can't be raised",
                where=self._where,
                cause=f"{self._side.server.kind} has the kinds {', '.join(self._means)}",
                remedy="choose the kind of fence that the survey advises",
            )
        return found

    def _noted(self, session: S, plan: FencePlan) -> Noted:
        return self._notes().read(session) or self._as_if_noted(session, plan)

    def _as_if_noted(self, session: S, plan: FencePlan) -> Noted:
        """The notes as they would be, were the fence raised now."""
        return Noted(plan, self._means_of(plan).before(session, plan))

    @contextmanager
    def _session(self) -> Iterator[S]:
        session = self._new_session()
        try:
            yield session
        finally:
            session.close()

    @abstractmethod
    def _notes(self) -> Notes: ...

    @abstractmethod
    def _new_session(self) -> S: ...

    @abstractmethod
    def _make_notes_table(self) -> None:
        """Makes the control table, where it isn't there."""

    @abstractmethod
    def _alone(self, session: S) -> bool:
        """Takes the lock of this fence until the session ends; False where another session has it."""

    @abstractmethod
    def _lock_holders(self, session: S) -> Sequence[OpenTransaction]:
        """Returns who has that lock."""

    @abstractmethod
    def _our_holders(self, session: S) -> Sequence[OpenTransaction]:
        """Returns those of them that are sessions of a fence by our own login."""

    @abstractmethod
    def _surveyed(self, session: S, tables: Sequence[TableId], our_login: str) -> Survey: ...

    @abstractmethod
    def _open_transactions(self, session: S, plan: FencePlan) -> Sequence[OpenTransaction]: ...

    @abstractmethod
    def _in_the_way(self, session: S, plan: FencePlan) -> Sequence[OpenTransaction]:
        """Returns who keeps a trigger from being made; without a beginning where none is known."""

    @abstractmethod
    def _end(self, session: S, one: OpenTransaction) -> None: ...

    @abstractmethod
    def _forgotten_by_hand(self) -> list[str]:
        """Returns the statements that forget the notes, where there are any."""
