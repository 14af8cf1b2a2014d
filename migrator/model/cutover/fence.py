"""The fence of a cut-over: what is planned, what the server says of it, and who still writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from migrator.errors import ConfigError
from migrator.model.table import TableId

MESSAGE_CHARACTERS = 128
"""The longest message that every engine hands to a late writer whole."""
PUBLIC = "public"
"""The grantee that stands for everybody on PostgreSQL, where no role can have this name."""


class FenceKind(StrEnum):
    """One way by which a database refuses writes."""

    TRIGGERS = "triggers"
    """Triggers on every table raise an error. All engines."""
    REVOKE = "revoke"
    """Named roles lose their rights to write. PostgreSQL."""
    ACCOUNT_LOCK = "account_lock"
    """Named accounts are locked and their sessions are ended. MySQL and MariaDB."""
    READ_ONLY = "read_only"
    """The whole database (PostgreSQL) or server (MySQL, MariaDB) is read-only."""


STOPS_NAMED = frozenset({FenceKind.REVOKE, FenceKind.ACCOUNT_LOCK})
"""Kinds that stop whom they are told; all others stop everybody."""


class Standing(StrEnum):
    """The fence as the server shows it now."""

    DOWN = "down"
    """Nothing of it is there."""
    PARTLY = "partly"
    """Some of it is there: whoever wants to write may get through."""
    UP = "up"
    """All of it is there."""


@dataclass(frozen=True, slots=True)
class FencePlan:
    """The tables to be fenced, and the way. Raises ``ConfigError`` for a value that can't be.

    Attributes:
        kind: the way.
        tables: nobody else may change rows of these.
        login: ours, which goes on writing; empty where nobody does, since the way back was given up by name.
        message: what late writers are told, such as where to go; at most ``MESSAGE_CHARACTERS``.
        roles: whom ``revoke`` and ``account_lock`` stop: roles, ``PUBLIC``, or accounts as ``user@host``.
        accepted: labels of ways round (``WayRound.label``) that are known and taken into account.
    """

    kind: FenceKind
    tables: tuple[TableId, ...]
    login: str
    message: str
    roles: tuple[str, ...] = ()
    accepted: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        named = self.kind in STOPS_NAMED
        problems = [
            (not self.tables, "tables", "", "name at least one table"),
            (len({*self.tables}) < len(self.tables), "tables", "", "name every table once"),
            (not self.message.strip(), "message", self.message, "say where writers are to go"),
            (
                len(self.message) > MESSAGE_CHARACTERS,
                "message",
                self.message,
                f"say it in {MESSAGE_CHARACTERS} characters",
            ),
            (named and not self.roles, "roles", "", "name who is to be stopped"),
            (not named and bool(self.roles), "roles", ", ".join(self.roles), f"{self.kind} stops everybody"),
            (self.login in self.roles, "roles", self.login, "leave out the login that is to write"),
        ]
        for wrong, name, value, remedy in problems:
            if wrong:
                raise ConfigError(f"{name} of a fence can't be {value!r}", where=name, remedy=remedy)


@dataclass(frozen=True, slots=True)
class FenceState:
    """The fence as the server says it is, whatever our notes say.

    Attributes:
        standing: in one word.
        missing: what lacks for it to be up, each in words.
    """

    standing: Standing
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WayRound:
    """A way in which rows may be changed though the fence is up.

    Attributes:
        kind: such as ``owner``, ``superuser``, ``function``, ``view``, ``cascade``, ``truncate``.
        name: of the role, function, view, table or setting.
        why: what gets through, in words.
        closed_by: the role which, named in the plan, is stopped too; empty where the kind of fence can't.
    """

    kind: str
    name: str
    why: str
    closed_by: str = ""

    @property
    def label(self) -> str:
        """Returns what a plan names to accept it."""
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class Choice:
    """One kind of fence, as it would be on this server.

    Attributes:
        kind: the way.
        obstacles: why it can't be raised, each with what would help; empty where it can.
        ways: everything that passes it unless a plan closes it.
        lets_us_write: whether our login could go on writing.
        says_where: whether late writers get the plan's message.
    """

    kind: FenceKind
    obstacles: tuple[str, ...] = ()
    ways: tuple[WayRound, ...] = ()
    lets_us_write: bool = True
    says_where: bool = True

    def open_ways(self, roles: Sequence[str]) -> tuple[WayRound, ...]:
        """Returns the ways that stay where these roles are stopped."""
        return tuple(way for way in self.ways if not way.closed_by or way.closed_by not in roles)


@dataclass(frozen=True, slots=True)
class Writer:
    """A login that can write the tables at present, and by what."""

    login: str
    by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Survey:
    """The kinds of fence that a server would let us raise.

    Attributes:
        tables: that were asked about.
        writers: logins other than ours which can write some of them now.
        choices: one for each kind that the engine has, most wanted first.
    """

    tables: tuple[TableId, ...]
    writers: tuple[Writer, ...]
    choices: tuple[Choice, ...]

    def choice(self, kind: FenceKind) -> Choice:
        """Returns the choice of a kind; one with an obstacle where the engine doesn't have it."""
        for choice in self.choices:
            if choice.kind is kind:
                return choice
        return Choice(kind, (f"this engine has no fence of kind {kind}",))

    def advised(self, roles: Sequence[str] = ()) -> FenceKind | None:
        """Returns the kind with the fewest ways round that no plan can close, which lets us write; None: no kind
        can be raised.

        Rather one that stops whom it is told where ``roles`` are named, and one that stops everybody where none are.
        """
        fit = [one for one in self.choices if not one.obstacles]
        ranked = sorted(
            fit,
            key=lambda one: (
                not one.lets_us_write,
                (one.kind in STOPS_NAMED) is not bool(roles),
                sum(not way.closed_by for way in one.ways),
            ),
        )
        return ranked[0].kind if ranked else None

    def refusals(self, plan: FencePlan) -> tuple[str, ...]:
        """Returns why a plan is not carried out, each in words; empty where it may be."""
        choice = self.choice(plan.kind)
        found = list(choice.obstacles)
        if plan.login and not choice.lets_us_write:
            found.append(
                f"login {plan.login} couldn't write behind it: plan without a login, or another kind"
            )
        found += [
            f"{way.label} passes it ({way.why})"
            for way in choice.open_ways(plan.roles)
            if way.label not in plan.accepted
        ]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """A transaction that holds, or could still commit, changes of fenced tables.

    Attributes:
        id: as ``end`` takes it.
        login: whose it is.
        since: when it began, as the server writes it.
        doing: its last statement, or what it is; at most some hundred characters.
        prepared: whether it waits for the second phase of a commit, without a session.
    """

    id: str
    login: str
    since: str
    doing: str
    prepared: bool = False

    def words(self) -> str:
        """Returns it for a message."""
        return f"{self.id} of {self.login or 'an unknown login'} since {self.since}: {self.doing}"


@dataclass(frozen=True, slots=True)
class LateWriters:
    """Writers that the fence refused.

    Attributes:
        count: refused statements, or what ``counted`` says.
        by_login: login and its part of ``count``; whoever isn't known by name is ``""``.
        counted: what one is, and how far names are known.
    """

    count: int
    by_login: tuple[tuple[str, int], ...]
    counted: str
