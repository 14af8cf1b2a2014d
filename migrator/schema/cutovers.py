"""The record of a cut-over in the control tables of both sides, by short statements over one connection a side."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import URL, Connection, Engine, text
from sqlalchemy.exc import DBAPIError, IntegrityError

from migrator.connections.refusing import remedy_of
from migrator.errors import ConnectionFailed, CutoverError, FencedError, TargetError
from migrator.model.codecs.cutover_codec import record_from_json, record_to_json
from migrator.model.cutover.record import Record
from migrator.schema.control import connected, upgrade_cutover
from migrator.schema.dialects import DIALECTS
from migrator.schema.engines import as_engine


class Copy:
    """One side's copy of the record. One thread uses it.

    Args:
        database: of the side.
        migration: name of the migration.
        where: the side in words.
    """

    def __init__(self, database: Engine | URL, migration: str, where: str):
        self._engine = as_engine(database)
        self._migration, self._where = migration, where
        self._dialect = DIALECTS[self._engine.dialect.name]
        self._connection: Connection | None = None
        self._there = False

    def read(self) -> Record | None:
        """Returns the record; None where there is none. Raises ``ConnectionFailed``."""
        with self._session() as session:
            if not self._there and not session.scalar(text(self._dialect.has_cutover)):
                session.commit()  # within one transaction PostgreSQL may go on to say that there is no such table
                return None
            self._there = True
            query = f"SELECT document FROM {self._dialect.cutover} WHERE migration = :migration"
            found = session.scalar(text(query), {"migration": self._migration})
            session.commit()
        return None if found is None else record_from_json(json.loads(found))

    def make(self, record: Record, *, follows: bool) -> bool:
        """Makes the table, and the row of a plan that was accepted; tells whether it did.

        Args:
            record: of the plan; its number is 1 where there was none before.
            follows: whether only the version just before, or no row, may be replaced.
        """
        upgrade_cutover(self._engine)
        table = self._dialect.cutover
        with self._session() as session:
            if record.number == 1 and not follows:  # what is left here of a record that is gone across
                session.execute(
                    text(f"DELETE FROM {table} WHERE migration = :migration"), self._values(record)
                )
                session.commit()
        if self.write(record, None, follows=follows):
            return True
        columns = "(migration, number, epoch, document)"
        insert = f"INSERT INTO {table} {columns} VALUES (:migration, :number, 0, :document)"
        with self._session() as session:
            try:
                session.execute(text(insert), self._values(record))
            except IntegrityError:
                session.rollback()
                return False
            session.commit()
        return True

    def write(self, record: Record, epoch: int | None, *, follows: bool) -> bool:
        """Replaces an older version; tells whether it did.

        Args:
            record: the next version.
            epoch: of the leader that writes; None: an operator.
            follows: whether only the version just before may be replaced.
        """
        older = "number = :number - 1" if follows else "number < :number"
        led = "" if epoch is None else ", epoch = :epoch"
        fenced = "" if epoch is None else " AND epoch <= :epoch"
        update = (
            f"UPDATE {self._dialect.cutover} SET number = :number, document = :document{led}"
            f" WHERE migration = :migration AND {older}{fenced}"
        )
        values = self._values(record) | ({} if epoch is None else {"epoch": epoch})
        with self._session() as session:
            changed = session.execute(text(update), values).rowcount
            session.commit()
        return bool(changed)

    def epoch(self) -> int:
        """Returns the epoch of the last leader that wrote."""
        query = f"SELECT epoch FROM {self._dialect.cutover} WHERE migration = :migration"
        with self._session() as session:
            found = session.scalar(text(query), {"migration": self._migration})
            session.commit()
        return int(found or 0)

    def close(self) -> None:
        """Ends the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        self._engine.dispose()

    def _values(self, record: Record) -> dict[str, Any]:
        document = json.dumps(record_to_json(record))
        return {"migration": self._migration, "number": record.number, "document": document}

    @contextmanager
    def _session(self) -> Iterator[Connection]:
        if self._connection is None:
            self._connection = connected(self._engine)
        try:
            yield self._connection
        except DBAPIError as error:
            connection, self._connection = self._connection, None
            connection.invalidate()
            connection.close()
            cause = str(error.orig).replace("\n", " ").strip()
            if error.connection_invalidated:
                raise ConnectionFailed(
                    "the record of the cut-over can't be reached",
                    where=self._where,
                    cause=cause,
                    retryable=True,
                ) from None
            raise TargetError(
                "the record of the cut-over can't be read or written",
                where=f"{self._where}, {self._dialect.cutover}",
                cause=cause,
                remedy=remedy_of(error, "give the login what `migrator grants --print` says"),
            ) from None


class Book:
    """``ports.cutover.CutoverBook``: the old side's copy is written first, and holds; the new side's follows it."""

    def __init__(self, old: Copy, new: Copy):
        self._old, self._new = old, new

    def read(self) -> Record | None:
        """See the port."""
        return self._old.read()

    def make(self, record: Record) -> None:
        """Puts the record of an accepted plan on both sides, the old one last: from then on it holds.

        Raises ``CutoverError``, retryable, where another plan was accepted meanwhile: that one stays.
        """
        self._new.make(record, follows=False)
        if not self._old.make(record, follows=True):
            raise changed_meanwhile()

    def write(self, record: Record, epoch: int) -> None:
        """See the port."""
        self.write_old(record, epoch)
        self._new.write(record, epoch, follows=False)

    def write_old(self, record: Record, epoch: int) -> None:
        """See the port."""
        if self._old.write(record, epoch, follows=True):
            return
        if (latest := self._old.epoch()) > epoch:
            raise FencedError(
                f"another process leads this migration: epoch {latest}, ours is {epoch}",
                where="the record of the cut-over",
                remedy="stop this process; it must not write any more",
            )
        raise changed_meanwhile()

    def bring_up(self, record: Record, epoch: int) -> None:
        """See the port."""
        self._new.write(record, epoch, follows=False)

    def ask(self, record: Record) -> None:
        """See the port."""
        if not self._old.write(record, None, follows=True):
            raise changed_meanwhile()

    def last_epoch(self) -> int:
        """See the port."""
        return self._old.epoch()

    def close(self) -> None:
        """Ends the connections."""
        self._old.close()
        self._new.close()


def changed_meanwhile() -> CutoverError:
    """The error for a record that somebody else changed first."""
    return CutoverError(
        "the record of the cut-over was changed meanwhile",
        cause="the leader took a step, or another operator said something",
        remedy="look at `migrator cutover status`, then say it again",
        retryable=True,
    )
