"""The history of a migration: who did what to it, where, when and why, in the target beside the ledger.

An act that moves the ledger is written in the transaction that moves it, any other one by a short connection of its
own. Times are the target's, in UTC.
"""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from migrator import __version__
from migrator.connections.refusing import remedy_of
from migrator.errors import TargetError
from migrator.model.observed.printable import printable
from migrator.schema.control import connected, upgrade_target
from migrator.schema.dialects import DIALECTS
from migrator.schema.engines import as_engine

START, TAKEOVER, STOP = "start", "takeover", "stop"
KEPT = 10_000
"""Number of acts before the newest one that are kept."""
_COLUMNS = "migration, act, epoch, login, host, os_user, process, version, reason, detail"
_MOST = {"reason": 500, "detail": 2000}
_NAME = 255
Run = Callable[[str, Sequence[Any]], object]
Rows = Callable[[str, Sequence[Any]], list[tuple[Any, ...]]]


@dataclass(frozen=True, slots=True)
class Act:
    """One act. ``at`` is the target's clock, as text; ``epoch`` that of the leader, where it was one's act."""

    at: str
    act: str
    epoch: int | None
    login: str
    host: str
    os_user: str
    process: int
    version: str
    reason: str
    detail: str

    def line(self) -> str:
        """Writes the act in one line, whatever a reason holds: a line break would begin one that looks like another
        act."""
        who = f"{self.os_user} on {self.host} (process {self.process}) as {self.login}"
        led = f", epoch {self.epoch}" if self.epoch is not None else ""
        more = "".join(
            f": {part}" for part in (self.detail, self.reason and f"because {self.reason}") if part
        )
        whole = f"{self.at}  {self.act} by {who}, version {self.version}{led}{more}"
        return printable(whole)


@dataclass(frozen=True, slots=True)
class ActSql:
    """The statements in the words of one driver."""

    insert: str
    last_lead: str
    newest: str
    forget: str


def act_sql(table: str, mark: Callable[[int, str], str]) -> ActSql:
    """Statements for a table; ``mark``: the place of the n-th value of a type."""
    now = next(dialect.now for dialect in DIALECTS.values() if dialect.history == table)
    kinds = ["text", "text", "bigint", "text", "text", "text", "bigint", "text", "text", "text"]
    marks = ", ".join(mark(number, kind) for number, kind in enumerate(kinds, 1))
    leads = ", ".join(f"'{act}'" for act in (START, TAKEOVER, STOP))
    own = f"FROM {table} WHERE migration = {mark(1, 'text')}"
    return ActSql(
        insert=f"INSERT INTO {table} (at, {_COLUMNS}) VALUES ({now}, {marks})",
        last_lead=f"SELECT act, host, process, epoch {own} AND act IN ({leads}) ORDER BY id DESC LIMIT 1",
        newest=f"SELECT max(id) {own}",
        forget=f"DELETE {own} AND id <= {mark(2, 'bigint')}",
    )


def note_lead(run: Run, rows: Rows, sql: ActSql, migration: str, login: str, epoch: int, reason: str) -> None:
    """Writes, in the open transaction, that this process leads: after a stop, or in the place of who didn't
    stop."""
    last = rows(sql.last_lead, [migration])
    act, detail = START, ""
    if last and last[0][0] != STOP:
        _, host, process, _ = last[0]
        if (host, int(process)) == (_cut(socket.gethostname()), os.getpid()):
            detail = "again, in the same process"
        else:
            act, detail = TAKEOVER, f"process {process} on {host} didn't say that it stopped"
    note(run, rows, sql, values(migration, act, login, epoch, reason, detail))


def note(run: Run, rows: Rows, sql: ActSql, row: Sequence[Any]) -> None:
    """Writes an act in the open transaction, and forgets the oldest."""
    run(sql.insert, row)
    ((newest,),) = rows(sql.newest, [row[0]])
    run(sql.forget, [row[0], int(newest) - KEPT])


def values(
    migration: str, act: str, login: str, epoch: int | None = None, reason: str = "", detail: str = ""
) -> list[Any]:
    """The columns of an act of this process, in the order of its statement."""
    who = [_cut(login), _cut(socket.gethostname()), _cut(_os_user()), os.getpid(), __version__[:32]]
    return [migration, act, epoch, *who, _cut(reason, _MOST["reason"]), _cut(detail, _MOST["detail"])]


class Acts:
    """The history, by short connections of its own.

    Args:
        target: the target's database.
        migration: whose history.
        login: of the migration at the target.
        where: the server in words.
    """

    def __init__(self, target: Engine | Any, migration: str, login: str, where: str):
        self._engine = as_engine(target)
        self._migration, self._login, self._where = migration, login, where
        self._dialect = DIALECTS[self._engine.dialect.name]
        self._table = self._dialect.history
        self._sql = act_sql(self._table, lambda number, _: f":v{number}")

    def add(self, act: str, reason: str = "", detail: str = "", epoch: int | None = None) -> None:
        """Keeps an act of this process; makes the control tables first if need be.

        Raises ``ConnectionFailed``, and ``TargetError`` where the role may not.
        """
        upgrade_target(self._engine)
        row = values(self._migration, act, self._login, epoch, reason, detail)
        with connected(self._engine) as connection:
            try:
                note(
                    lambda sql, parameters: connection.execute(text(sql), named(parameters)),
                    lambda sql, parameters: [
                        tuple(row) for row in connection.execute(text(sql), named(parameters))
                    ],
                    self._sql,
                    row,
                )
                connection.commit()
            except DBAPIError as error:
                raise self._refused(error) from None

    def newest(self, limit: int) -> list[Act]:
        """The latest acts, oldest first; none before the control tables are there."""
        query = f"SELECT at, {_COLUMNS} FROM {self._table} WHERE migration = :v1 ORDER BY id DESC LIMIT :v2"
        with connected(self._engine) as connection:
            try:
                if not self._exists(connection):
                    return []
                found = connection.execute(text(query), named([self._migration, limit])).fetchall()
            except DBAPIError as error:
                raise self._refused(error) from None
        return [Act(_utc(at), *rest) for at, _, *rest in reversed(found)]

    def stopped(self, reason: str, detail: str) -> None:
        """Keeps that this process stops leading, if it was the last that led. Raises as ``add`` does."""
        with connected(self._engine) as connection:
            try:
                exists = self._exists(connection)
                query = text(self._sql.last_lead)
                last = connection.execute(query, named([self._migration])).fetchall() if exists else []
            except DBAPIError as error:
                raise self._refused(error) from None
        ours = (_cut(socket.gethostname()), os.getpid())
        for act, host, process, epoch in last:
            if act != STOP and (host, process) == ours:
                self.add(STOP, reason, detail, epoch)

    def _exists(self, connection: Any) -> bool:
        return bool(connection.scalar(text(self._dialect.has_history)))

    def _refused(self, error: DBAPIError) -> TargetError:
        return TargetError(
            "the history can't be read or written",
            where=f"{self._where}, {self._table}",
            cause=str(error.orig).replace("\n", " ").strip(),
            remedy=remedy_of(error, "give the login what `migrator grants --print` says"),
        )


def named(parameters: Sequence[Any]) -> dict[str, Any]:
    """Parameters by the names that the statements of short connections have for them."""
    return {f"v{number}": value for number, value in enumerate(parameters, 1)}


def _cut(said: str, most: int = _NAME) -> str:
    """Cuts a text to ``most`` characters, as a server of any encoding of Unicode holds it."""
    whole = said.encode("utf-8", "replace").decode().replace("\0", " ")
    return whole if len(whole) <= most else whole[: most - 3] + "..."


def _utc(at: datetime) -> str:
    whole = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    return f"{whole:%Y-%m-%d %H:%M:%S}"


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user needs no name
        return str(os.getuid())
