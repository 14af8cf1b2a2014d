"""Leadership in ZooKeeper: an ephemeral node says who leads, a persistent one keeps the epoch.

Both are written in one transaction of ZooKeeper: whoever made the leader's node has the highest epoch, and the
version of the epoch's node is the grant's own. A lease is renewed by a transaction that checks that version and
rewrites the leader's node. It must be a write: a member cut off from its ensemble still answers reads for a while.

Why half a session. A standby can lead once the ensemble's leader has forgotten our session: not before a session
timeout after it last heard of us. It hears of us through our member, in batches every half tick; a tick is half a
session at most, and we renew every sixth of one. So at the moment we sent a renewal that was answered, less than
``1/4 + 1/6`` of the timeout was used up, and for half a timeout from then on nobody else can lead. After that
we are not ``sure`` and write nothing until a renewal is answered again; after a whole timeout we take the
lease for lost. The clock is this machine's own, one that goes on while the machine sleeps; clocks of several
machines are never compared. Whoever sleeps between asking and writing (a zombie) is stopped by the epoch, in
the event log and in the target.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError
from kazoo.protocol.states import KazooState

from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.errors import ConnectionFailed, FencedError, MigratorError
from migrator.model.codecs.codec import NEWER
from migrator.model.coordination import Coordination
from migrator.ports.leadership import Lease

FORMAT = 1
"""Number of the present layout of the nodes; those of requests and hints have numbers of their own."""
_SURE_FOR = 1 / 2
_RENEW_EVERY = 1 / 6
_TRIES = 20


def clock_s() -> float:
    """Seconds of a clock that is never set and doesn't stop while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _Grant:
    """One lease: its session, its epoch, and until when it is good. Threads share it."""

    def __init__(self, session: ZooKeeperSession, epoch: int, version: int, content: bytes, sent_s: float):
        self.epoch = epoch
        self.session = session
        self._version = version
        self._content = content
        self._renewed_s = sent_s
        self._lost = False
        self._ended = threading.Event()
        self._client = session.client()
        self._client.add_listener(self._state)
        threading.Thread(target=self._renew, name="lease", daemon=True).start()

    def held(self) -> bool:
        if clock_s() >= self._renewed_s + self.session.timeout_s:
            self._lost = True
        return not self._lost and not self._ended.is_set()

    def sure(self) -> bool:
        in_time = clock_s() < self._renewed_s + self.session.timeout_s * _SURE_FOR
        return in_time and self.session.connected() and self.held()

    def end(self) -> None:
        self._ended.set()
        self._client.remove_listener(self._state)

    def _state(self, state: str) -> None:
        if state == KazooState.LOST:
            self._lost = True

    def _renew(self) -> None:
        while self.held():
            sent_s = clock_s()
            try:
                if self._renewal():
                    self._renewed_s = sent_s
                else:
                    self._lost = True
            except ConnectionFailed:  # not sure for now; lost, if that lasts
                pass
            self._ended.wait(self.session.timeout_s * _RENEW_EVERY)
        # The client goes on in threads of its own: its session, and with it the leader's node, would stay for as long
        # as a leader that lost its lease hangs in whatever made it late. Nobody could lead in its place.
        self.session.close()

    def _renewal(self) -> bool:
        """Renews our lead; False if we lost it. Raises ``ConnectionFailed`` when it says nothing."""

        def renewed(client: Any) -> Any:
            renewal = client.transaction()
            renewal.check(self.session.path("epoch"), self._version)
            renewal.set_data(self.session.path("leader"), self._content)
            return renewal.commit_async()

        results = self.session.ask(renewed, self.session.timeout_s * _RENEW_EVERY * 2)
        return not any(isinstance(result, Exception) for result in results)


class ZooKeeperLeadership:
    """A ``Leadership``. One thread uses it, but ``held`` and ``sure`` may be asked by any.

    Args:
        settings: the ensemble.
        migration: names the node.
    """

    def __init__(self, settings: Coordination, migration: str):
        self._settings = settings
        self._migration = migration
        self._session: ZooKeeperSession | None = None
        self._standby = ""
        self._grant: _Grant | None = None
        self._changed = threading.Event()

    def acquire(self, above_epoch: int) -> Lease:
        """Becomes leader (see the port). Raises ``FencedError`` naming the present one, ``ConnectionFailed``."""
        if self._grant is not None:
            raise self._taken(self._session_now())
        session = self._session_now()
        try:
            self._grant = self._granted(session, above_epoch)
        except ConnectionFailed:
            self.release()  # whether we lead is unknown: the end of this session answers it
            raise
        return Lease(owner=_owner(), epoch=self._grant.epoch)

    def held(self) -> bool:
        """See the port."""
        return self._grant is not None and self._grant.held()

    def sure(self) -> bool:
        """See the port."""
        return self._grant is not None and self._grant.sure()

    def stand_by(self, timeout_s: float) -> str:
        """See the port."""
        session = self._session_now()
        self._seen_as_standby(session)
        self._changed.clear()
        try:
            session.ask(lambda client: client.get_async(session.path("leader"), watch=self._on_change))
        except NoNodeError:
            return ""
        self._changed.wait(timeout_s)
        return self.holder()

    def release(self) -> None:
        """See the port."""
        grant, session = self._grant, self._session
        self._grant, self._session, self._standby = None, None, ""
        if grant is not None:
            grant.end()
        if session is not None:
            session.close()

    def holder(self) -> str:
        """Names who leads now, by looking only; empty when nobody does."""
        return _holder(self._session_now())

    # -- inside -------------------------------------------------------------------------------------------------

    def _on_change(self, _: object) -> None:
        """The one watch of this object: kazoo keeps a watch until it fires, and each one once."""
        self._changed.set()

    def _session_now(self) -> ZooKeeperSession:
        if self._session is None:
            self._session = ZooKeeperSession(self._settings, self._migration)
        return self._session

    def _granted(self, session: ZooKeeperSession, above_epoch: int) -> _Grant:
        """One transaction: the epoch rises, and the leader's node is ours. Again, if an epoch came in between."""
        for _ in range(_TRIES):
            stored, version = self._epoch(session)
            epoch = max(stored, above_epoch) + 1
            content = json.dumps({**_self(), "epoch": epoch}).encode()
            results, sent_s = self._asked_for(session, epoch, version, content)
            if isinstance(results[1], NodeExistsError):
                raise self._taken(session)
            if not any(isinstance(result, Exception) for result in results):
                return _Grant(session, epoch, version + 1, content, sent_s)
            if self.holder():
                raise self._taken(session)
        raise self._taken(session)

    def _asked_for(
        self, session: ZooKeeperSession, epoch: int, version: int, content: bytes
    ) -> tuple[list[Any], float]:
        def asked(client: Any) -> Any:
            grant = client.transaction()
            grant.set_data(session.path("epoch"), str(epoch).encode(), version)
            grant.create(session.path("leader"), content, acl=session.acl, ephemeral=True)
            if self._standby:
                grant.delete(self._standby)
            return grant.commit_async()

        sent_s = clock_s()
        results = session.ask(asked)
        self._standby = ""  # gone with its session, or just now; made again by the next stand_by
        return list(results), sent_s

    def _epoch(self, session: ZooKeeperSession) -> tuple[int, int]:
        """The highest epoch granted, and its node's version."""
        path = session.path("epoch")
        while True:
            try:
                content, stat = session.ask(lambda client: client.get_async(path))
                if not content.isdigit():
                    raise _no_epoch(session, content)
                return int(content), stat.version
            except NoNodeError:
                with contextlib.suppress(NodeExistsError):
                    session.ask(lambda client: client.create_async(path, b"0", acl=session.acl))

    def _seen_as_standby(self, session: ZooKeeperSession) -> None:
        if self._standby:
            if session.ask(lambda client: client.exists_async(self._standby)) is not None:
                return
            self._standby = ""  # that session expired, and the client began another
        folder, content = session.path("standbys"), json.dumps(_self()).encode()
        session.ask(lambda client: client.ensure_path_async(folder, acl=session.acl))
        self._standby = session.ask(
            lambda client: client.create_async(
                f"{folder}/s", content, acl=session.acl, ephemeral=True, sequence=True
            )
        )

    def _taken(self, session: ZooKeeperSession) -> FencedError:
        return FencedError(
            "this migration is already being run",
            where=session.address,
            cause=f"{self.holder() or 'another process'} is its leader",
            remedy="stop that process first, or start this one with --ha: it will wait for its turn",
        )


def seen(session: ZooKeeperSession) -> tuple[str, tuple[str, ...]]:
    """Names who leads (empty: nobody) and who stands by, for onlookers."""
    found, folder = [], session.path("standbys")
    with contextlib.suppress(NoNodeError):
        for name in sorted(session.ask(lambda client: client.get_children_async(folder))):
            with contextlib.suppress(NoNodeError):
                path = f"{folder}/{name}"
                content, _ = session.ask(lambda client, path=path: client.get_async(path))  # type: ignore[misc]
                found.append(_named(content))
    return _holder(session), tuple(found)


def _holder(session: ZooKeeperSession) -> str:
    try:
        return _named(session.ask(lambda client: client.get_async(session.path("leader")))[0])
    except NoNodeError:
        return ""


def _no_epoch(session: ZooKeeperSession, content: bytes) -> MigratorError:
    return MigratorError(
        "the epoch in ZooKeeper can't be read",
        where=f"{session.address}/epoch",
        cause=f"the node holds {content[:40]!r} instead of a number: this version knows nodes of format {FORMAT}",
        remedy=f"{NEWER}; if somebody edited the node, write the ledger's epoch into it",
    )


def _self() -> dict[str, object]:
    return {"format": FORMAT, "pid": os.getpid(), "host": socket.gethostname()}


def _owner() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


def _named(content: bytes) -> str:
    try:
        found = json.loads(content)
        return f"process {found['pid']} on {found['host']}"
    except (ValueError, TypeError, KeyError, RecursionError):
        return "another process"
