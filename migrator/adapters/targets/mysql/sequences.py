"""AUTO_INCREMENT counters of a MySQL or MariaDB target, and MariaDB's sequences in defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pymysql

from migrator.adapters.targets.mysql.reflect import Catalog, catalog
from migrator.adapters.targets.mysql.refusal import LOCK_WAIT, NO_PRIVILEGE
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.connections.mysql.sequences import Counter, NextValue, counters, next_values, state
from migrator.connections.mysql.sql import account
from migrator.errors import TargetError
from migrator.model.sequence import Advance, NumberSequence
from migrator.model.table import TableId

_PATIENCE_S = 10
"""Seconds that a counter waits for its table's lock: who wants to write the table meanwhile waits behind us."""


class MysqlNumbers:
    """``ports.sequences.TargetNumbers`` on MySQL and MariaDB."""

    def __init__(self, settings: MysqlTarget):
        self._settings = settings

    def find(self, tables: Sequence[str]) -> list[NumberSequence]:
        """See the port."""
        database = self._settings.server.database
        with catalog(self._settings) as session, self._refused("what the target hands out can't be read"):
            # what counters hold first: a value given out in between is behind the counter then
            held = {one: _held(session, TableId(database, one.table), one.column) for one in counters(
                session.rows, database, tables)}  # fmt: skip
            now = {(one.table, one.column): one for one in counters(session.rows, database, tables)}
            found = [
                _counted(TableId(database, one.table), now[one.table, one.column], value)
                for one, value in held.items()
            ]
            fed: dict[TableId, list[NextValue]] = {}
            for next_value in next_values(session.rows) if self._settings.server.kind == "mariadb" else ():
                fed.setdefault(next_value.sequence, []).append(next_value)
            for sequence, columns in fed.items():
                if any(one.table.schema == database and one.table.name in tables for one in columns):
                    found.append(_sequence(session, sequence, columns))
        return found

    def statement(self, advance: Advance) -> str:
        """Returns the statement for one advance. InnoDB and SETVAL never go back beyond a value that stands."""
        if advance.sequence.kind == "sequence":
            return f"SELECT SETVAL({advance.sequence.name}, {advance.following}, 0)"
        return (
            f"ALTER TABLE {advance.sequence.name} AUTO_INCREMENT = {advance.following},"
            " ALGORITHM = INPLACE, LOCK = NONE"
        )

    def move(self, advances: Sequence[Advance]) -> None:
        """See the port. A counter waits for transactions that use its table, for ten seconds at most."""
        with catalog(self._settings) as session:
            session.rows(f"SET SESSION lock_wait_timeout = {_PATIENCE_S}")
            for advance in advances:
                with self._refused(f"{advance.sequence.name} can't be set"):
                    session.rows(self.statement(advance))

    @contextmanager
    def _refused(self, what: str) -> Iterator[None]:
        try:
            yield
        except pymysql.err.MySQLError as error:
            code = error.args[0] if error.args else 0
            if code not in NO_PRIVILEGE and code != LOCK_WAIT:
                raise
            busy = code == LOCK_WAIT
            database, user = quoted(self._settings.server.database), account(self._settings.server.user)
            raise TargetError(
                what,
                where=self._settings.server.address,
                cause=str(error.args[1]),
                remedy="a transaction has used the table for long: try again"
                if busy
                else f"GRANT ALTER, CREATE ON {database}.* TO {user}; of a sequence SELECT, INSERT; or run as an"
                " administrator what `migrator sequences --print` shows",
                retryable=busy,
            ) from None


def _held(session: Catalog, table: TableId, column: str, far: str = "max") -> int | None:
    [(value,)] = session.rows(f"SELECT {far}({quoted(column)}) FROM {qualified(table)}")
    if value is None:
        return None
    return int(math.ceil(value) if far == "max" else math.floor(value))


def _counted(table: TableId, counter: Counter, held: int | None) -> NumberSequence:
    floating = counter.greatest == 0
    return NumberSequence(
        name=qualified(table),
        kind="AUTO_INCREMENT",
        columns=((table.name, counter.column),),
        following=counter.following,
        step=1,
        least=1,
        greatest=counter.greatest,
        cycles=False,
        held=held,
        problem=f"column {counter.column} is no integer: its values can't be counted on" if floating else "",
        remedy="make it an integer in an Alembic revision" if floating else "",
    )


def _sequence(session: Catalog, sequence: TableId, columns: Sequence[NextValue]) -> NumberSequence:
    unfit = [one for one in columns if not one.plain or one.greatest == 0]
    down = state(session.rows, sequence).step < 0
    held = [
        value
        for one in columns
        if one not in unfit
        and (value := _held(session, one.table, one.column, "min" if down else "max")) is not None
    ]
    now = state(session.rows, sequence)
    return NumberSequence(
        name=qualified(sequence),
        kind="sequence",
        columns=tuple((one.table.name, one.column) for one in columns),
        following=now.following,
        step=now.step,
        least=now.least,
        greatest=min([now.greatest, *(one.greatest for one in columns if one.greatest)]),
        cycles=now.cycles,
        held=(min(held) if down else max(held)) if held else None,
        problem=f"column {unfit[0].table}.{unfit[0].column} computes with its value, or is no integer"
        if unfit
        else "",
        remedy=f"set it by hand: SELECT SETVAL({qualified(sequence)}, ...)" if unfit else "",
    )
