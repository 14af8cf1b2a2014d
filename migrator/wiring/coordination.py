"""The choice of adapters that say who leads, and keep what processes of one migration tell each other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from migrator.adapters.coordination.local.hints import FileHints
from migrator.adapters.coordination.local.leadership import LocalLeadership
from migrator.adapters.coordination.zookeeper.connection import ZooKeeperSession
from migrator.adapters.coordination.zookeeper.hints import ZooKeeperHints
from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership, seen
from migrator.adapters.coordination.zookeeper.remains import ZooKeeperRemains
from migrator.adapters.coordination.zookeeper.requests import ZooKeeperRequests
from migrator.adapters.event_log.files.remains import StateRemains
from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.adapters.event_log.files.set_aside import set_aside
from migrator.config.project import Settings
from migrator.model.codecs.ledger_codec import half_reset
from migrator.model.hint import Hint
from migrator.model.ledger import Ledger
from migrator.model.requests.request import RequestBook
from migrator.ports.hints import Hints
from migrator.ports.remains import NotedRemains, Remains
from migrator.ports.requests import RequestStore
from verify.tables.coverage import COVERAGE_FILE


def leadership(settings: Settings) -> LocalLeadership | ZooKeeperLeadership:
    """Returns the leadership: over machines where a ZooKeeper is configured, else on this one."""
    if settings.coordination is None:
        return LocalLeadership(settings.state)
    return ZooKeeperLeadership(settings.coordination, settings.name)


def requests(settings: Settings) -> RequestStore:
    """Returns the store of the migration's dump requests."""
    if settings.coordination is None:
        return FileRequests(settings.state)
    return ZooKeeperRequests(ZooKeeperSession(settings.coordination, settings.name))


def hints(settings: Settings) -> Hints:
    """Returns the place where the leader leaves hints about itself."""
    if settings.coordination is None:
        return FileHints(settings.state)
    return ZooKeeperHints(ZooKeeperSession(settings.coordination, settings.name))


@contextmanager
def hints_for_once(settings: Settings) -> Iterator[Hints]:
    """The same place for who looks once; its session ends with the block."""
    if settings.coordination is None:
        yield FileHints(settings.state)
        return
    session = ZooKeeperSession(settings.coordination, settings.name)
    try:
        yield ZooKeeperHints(session)
    finally:
        session.close()


@dataclass(frozen=True, slots=True)
class Seen:
    """The view of an onlooker: who leads, who stands by, the dump requests, and the leader's last hint."""

    leader: str
    standbys: tuple[str, ...]
    book: RequestBook
    hint: Hint | None


def look(settings: Settings) -> Seen:
    """Looks without taking part, over one session."""
    if settings.coordination is None:
        local = LocalLeadership(settings.state)
        return Seen(local.holder(), local.standbys(), requests(settings).read(), hints(settings).read())
    session = ZooKeeperSession(settings.coordination, settings.name)
    try:
        leader, standbys = seen(session)
        return Seen(leader, standbys, ZooKeeperRequests(session).read(), ZooKeeperHints(session).read())
    finally:
        session.close()


def processes(settings: Settings) -> tuple[str, tuple[str, ...]]:
    """Names who leads (empty: nobody) and who stands by, and reads nothing else: that may be damaged."""
    if settings.coordination is None:
        local = LocalLeadership(settings.state)
        return local.holder(), local.standbys()
    session = ZooKeeperSession(settings.coordination, settings.name)
    try:
        return seen(session)
    finally:
        session.close()


def own_event_log(settings: Settings) -> bool:
    """Tells whether each machine has an event log of its own, from which no other one can go on."""
    return settings.coordination is not None and not settings.coordination.shared_event_log


def adopt(settings: Settings, ledger: Ledger) -> str:
    """Makes room for a new event log where another machine led since this one's was written; what was done.

    Raises ``HalfResetError`` for a reset that began, and was killed, since this process took the lead's place.
    """
    refuse_noted(settings)
    if own_event_log(settings) and set_aside(settings.event_log(), ledger):
        return "another machine led meanwhile: capture goes on from the target's ledger"
    return ""


def state_remains(settings: Settings) -> NotedRemains:
    """Returns what a reset looks at in the state folder."""
    return StateRemains(settings.state, settings.reports(), COVERAGE_FILE)


def shared_remains(settings: Settings) -> Remains | None:
    """Returns what a reset looks at where processes of several machines meet; None on one machine."""
    if settings.coordination is None:
        return None
    return ZooKeeperRemains(ZooKeeperSession(settings.coordination, settings.name))


def refuse_noted(settings: Settings) -> None:
    """Raises ``HalfResetError`` where a reset began in this state folder and isn't finished. The ledger says the
    same, except behind its own removal, when parts of this folder may be gone."""
    if said := state_remains(settings).begun():
        raise half_reset(said, str(settings.state))
