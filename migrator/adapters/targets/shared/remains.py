"""Remains of a migration in its target, as far as it is the same on every engine."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Generic, TypeVar

from migrator.adapters.targets.shared.control_tables import ControlTables, Pointing, Refusals
from migrator.adapters.targets.shared.ledger import LedgerTable
from migrator.adapters.targets.shared.remap import RemapSession
from migrator.adapters.targets.shared.settings import CommonSettings
from migrator.errors import TargetError
from migrator.model.codecs.codec import FORMAT
from migrator.model.codecs.ledger_codec import RESET, besides_of, ledger_to_json, reset_to_json
from migrator.model.progress import without
from migrator.model.table import TableId
from migrator.ports.remains import Found, Kind, Left
from migrator.schema.acts import note, values

_COUNTED = 10_000
SessionT = TypeVar("SessionT", bound=RemapSession)


class TargetRemains(ABC, Generic[SessionT]):
    """``ports.remains.MarkedRemains`` of a target.

    Args:
        settings: where the target is, and whose remains.
        names: the target tables that the mapping makes.
        key_maps: whether key maps are to go, too.
        control: the tool's own tables.
        ledger: the engine's ledger, with the history's statements in the words of the driver of short sessions.
        refusals: of that driver.
    """

    def __init__(
        self,
        settings: CommonSettings,
        names: Sequence[str],
        key_maps: bool,
        control: ControlTables,
        ledger: LedgerTable,
        refusals: Refusals,
    ):
        self._migration, self._user, self._reason = settings.migration, settings.server.user, settings.reason
        self._url, self._names, self._key_maps = settings.server.url(), names, key_maps
        self._control, self._ledger_table, self._refusals = control, ledger, refusals

    def found(self) -> Found:
        """See the port."""
        with self._session() as session:
            rows, tables = self._rows(session)
            mapped, kept = self._maps(session)
            left = (*self._staged(session), *rows, *self._mirrored(session), *mapped, *self._ledger(session))
            if self._exists(session, self._control.history):
                kept.append("the history (migrator history)")
            if tables:
                kept.append("tables that the mapping doesn't make, and sequences")
            if left:
                shared = f"{self._control.schema} with its empty tables"
                kept.append(f"{shared}: other migrations share it, and the next run needs it")
        return Found(f"target {self._url}", left, tuple(kept))

    def epoch(self) -> int:
        """See the port. A ledger that can't be read any more has its epoch all the same."""
        with self._session() as session:
            return self._stored(session)[0]

    def rows_of(self, target: str) -> Left | None:
        """See the port."""
        with self._session() as session:
            found = [self._full(session, table) for table in self._tables(session, [target])]
            left = [one for one in found if one is not None]
            self._refuse_pointing(session, [one.name for one in left], self._names)
        return left[0] if left else None

    def forget(self, epoch: int, target: str, said: str) -> None:
        """See the port. The row is locked: a leader that slept waits, and finds the newer epoch."""
        with self._session() as session, self._writes(self._control.ledger), self._transaction(session):
            found = session.rows(f"{self._read_sql()} FOR UPDATE", [self._migration])
            if not found:
                return
            ledger = self._ledger_table.of_row(self._migration, found[0])
            if ledger.checkpoint is None:
                return
            document = ledger_to_json(without(ledger.checkpoint, target), ledger.segment_id)
            text = json.dumps(document, ensure_ascii=False)
            session.run(self._write_sql(), [epoch, text, FORMAT, self._migration])
            self._note(session, said)

    def mark(self, epoch: int, said: str) -> None:
        """See the port."""
        with self._session() as session:
            if not self._exists(session, self._control.ledger):
                return
            with self._writes(self._control.ledger), self._transaction(session):
                known = self._document(session, " FOR UPDATE")
                document = json.dumps(reset_to_json(said, known), ensure_ascii=False)
                session.run(
                    self._mark_sql(), [self._migration, epoch, FORMAT, document, epoch, document, FORMAT]
                )
                self._note(session, said)

    def remove(self, lefts: Sequence[Left]) -> None:
        """See the port."""
        with self._session() as session:
            for left in lefts:
                if left.kind is Kind.STAGING:
                    self._drop(session, [*self._staging(session), *self._besides(session)])
                elif left.kind is Kind.MIRROR:
                    self._remove_mirror(session)
                elif left.kind is Kind.KEY_MAPS:
                    self._remove_maps(session)
                elif left.kind is Kind.LEDGER:
                    self._remove_ledger(session)
            rows = [left.name for left in lefts if left.kind is Kind.ROWS]
            tables = [table for table in self._tables(session, self._names) if table.name in rows]
            if tables:
                where = ", ".join(map(str, tables))
                deletes = "; ".join(f"DELETE FROM {self._qualified(table)}" for table in tables)
                with self._refusals.named(
                    "rows of the target can't be removed",
                    where,
                    remedy=f"with more rights: {self._by_hand(deletes)}; then repeat `migrator reset`",
                ):
                    self._empty(session, tables)

    # -- what an engine gives -----------------------------------------------------------------------------------

    @abstractmethod
    def _session(self) -> AbstractContextManager[SessionT]:
        """Opens a short session. Raises ``ConnectionFailed``, ``TargetError``."""

    @abstractmethod
    def _transaction(self, session: SessionT) -> AbstractContextManager[object]:
        """Begins a transaction, which is committed at the end."""

    @abstractmethod
    def _qualified(self, table: TableId) -> str:
        """Returns a table's quoted name."""

    @abstractmethod
    def _exists(self, session: SessionT, table: TableId) -> bool:
        """Tells whether a table is there."""

    @abstractmethod
    def _tables(self, session: SessionT, names: Sequence[str]) -> list[TableId]:
        """Returns the target tables of these names that are there."""

    @abstractmethod
    def _pointing(self, session: SessionT, names: Sequence[str]) -> list[Pointing]:
        """Returns the foreign keys of other tables that point at these."""

    @abstractmethod
    def _estimate(self, session: SessionT, table: TableId) -> int:
        """Returns the server's own estimate of a table's rows, without a scan."""

    @abstractmethod
    def _staging(self, session: SessionT) -> list[TableId]:
        """Returns the staging tables of this migration."""

    @abstractmethod
    def _mirror(self, session: SessionT) -> list[TableId]:
        """Returns the mirror's tables of this migration."""

    @abstractmethod
    def _empty(self, session: SessionT, tables: Sequence[TableId]) -> None:
        """Deletes all rows of target tables, whatever they point at among each other."""

    def _by_hand(self, deletes: str) -> str:
        """Returns the statements for somebody else who empties the tables."""
        return deletes

    @abstractmethod
    def _mark_sql(self) -> str:
        """Returns the statement that puts a document into the ledger: migration, epoch, format and document of a new
        row, then epoch, document and format of one that is there. It forgets where the ledger stood."""

    @abstractmethod
    def _read_sql(self) -> str:
        """Returns the query for the ledger's row of a migration, as ``LedgerTable.of_row`` takes it."""

    @abstractmethod
    def _write_sql(self) -> str:
        """Returns the statement that replaces the ledger's document: epoch, document, format, migration."""

    @abstractmethod
    def _quoted_columns(self, names: Sequence[str]) -> list[str]:
        """Returns quoted names of columns."""

    # -- what is found ------------------------------------------------------------------------------------------

    def _rows(self, session: SessionT) -> tuple[list[Left], list[TableId]]:
        """The target tables with rows, and all of them. Raises ``TargetError`` where other rows point at theirs."""
        tables = self._tables(session, self._names)
        found = [self._full(session, table) for table in tables]
        left = [one for one in found if one is not None]
        self._refuse_pointing(session, [one.name for one in left], [table.name for table in tables])
        return left, tables

    def _full(self, session: SessionT, table: TableId) -> Left | None:
        """The rows of a table, counted where they are few; None if it has none."""
        sample = f"SELECT 1 AS one FROM {self._qualified(table)} LIMIT {_COUNTED + 1}"
        ((count,),) = session.rows(f"SELECT COUNT(*) FROM ({sample}) sample")
        if count > _COUNTED:
            about = max(self._estimate(session, table), _COUNTED)
            return Left(Kind.ROWS, table.name, f"about {about:,} rows of {table}")
        return Left(Kind.ROWS, table.name, f"{count:,} row{'s' * (count > 1)} of {table}") if count else None

    def _refuse_pointing(self, session: SessionT, full: Sequence[str], ours: Sequence[str]) -> None:
        own = set(self._tables(session, ours))
        for key in self._pointing(session, full) if full else ():
            if key.child in own:
                continue
            points = " AND ".join(f"{name} IS NOT NULL" for name in self._quoted_columns(key.columns))
            child = self._qualified(key.child)
            if session.rows(f"SELECT 1 FROM {child} WHERE {points} LIMIT 1"):
                raise TargetError(
                    "rows of another table point at rows that a reset removes",
                    where=f"{key.child}, foreign key {key.key} to {key.parent}",
                    cause="no mapping makes that table, so its rows are somebody else's; nothing was removed",
                    remedy=f"drop the foreign key, or delete these rows (DELETE FROM {child} WHERE {points});"
                    " then repeat `migrator reset`",
                )

    def _staged(self, session: SessionT) -> list[Left]:
        found, besides = self._staging(session), self._besides(session)
        said = [f"{len(found)} staging tables"] if found else []
        said += [f"the table {table} of a next mapping" for table in besides]
        return [Left(Kind.STAGING, "staging", ", ".join(said))] if said else []

    def _besides(self, session: SessionT) -> list[TableId]:
        """The tables that next mappings fill, as far as they are there."""
        if not self._exists(session, self._control.ledger):
            return []
        names = besides_of(self._document(session))
        return self._tables(session, names) if names else []

    def _document(self, session: SessionT, lock: str = "") -> object:
        """The ledger's document as it stands; None without one."""
        found = session.rows(f"{self._read_sql()}{lock}", [self._migration])
        return None if not found or found[0][3] is None else json.loads(found[0][3])

    def _mirrored(self, session: SessionT) -> list[Left]:
        tables = self._mirror(session)
        filled = self._exists(session, self._control.filled) and session.rows(
            f"SELECT COUNT(*) FROM {self._qualified(self._control.filled)} WHERE migration = %s",
            [self._migration],
        )
        if not tables and not (filled and filled[0][0]):
            return []
        said = f"the mirror: {len(tables)} table{'s' * (len(tables) != 1)} in {self._control.mirror}"
        return [Left(Kind.MIRROR, "mirror", said)]

    def _maps(self, session: SessionT) -> tuple[list[Left], list[str]]:
        """The key maps: to be removed, or kept. Raises ``TargetError`` where the login may not remove them."""
        entries = self._control.entries
        if not self._exists(session, entries) or not self._exists(session, self._control.counters):
            return [], []
        found = session.rows(
            f"SELECT name, COUNT(*) FROM {self._qualified(entries)} WHERE migration = %s GROUP BY name"
            " ORDER BY name",
            [self._migration],
        )
        if not found:
            return [], []
        listed = ", ".join(f"{_text(name)} ({count:,} numbers)" for name, count in found)
        if not self._key_maps:
            return [], [f"key maps: {listed}; --key-maps removes them, too"]
        for table in (entries, self._control.counters):
            self._try_delete(session, table)
        return [Left(Kind.KEY_MAPS, "key maps", f"key maps: {listed}")], []

    def _ledger(self, session: SessionT) -> list[Left]:
        if not self._exists(session, self._control.ledger):
            return []
        self._try_delete(session, self._control.ledger)
        _, said = self._stored(session)
        return [Left(Kind.LEDGER, "ledger", f"the ledger's row{said}")] if said else []

    def _stored(self, session: SessionT) -> tuple[int, str]:
        """Epoch, and where the ledger stands in words; 0 and nothing without a row."""
        if not self._exists(session, self._control.ledger):
            return 0, ""
        found = session.rows(
            f"SELECT epoch, segment FROM {self._qualified(self._control.ledger)} WHERE migration = %s",
            [self._migration],
        )
        return (int(found[0][0]), f" (segment {found[0][1]})") if found else (0, "")

    def _try_delete(self, session: SessionT, table: TableId) -> None:
        """Has the server check the right to delete rows before anything is removed. Raises ``TargetError``."""
        with self._writes(table), self._transaction(session):
            session.run(f"DELETE FROM {self._qualified(table)} WHERE 1 = 0")

    # -- what is removed ----------------------------------------------------------------------------------------

    def _remove_mirror(self, session: SessionT) -> None:
        """Tables first: as long as one of them is there, the mirror is found again."""
        self._drop(session, self._mirror(session))
        for table in (self._control.filled, *self._control.beside):
            self._delete_own(session, table)

    def _remove_maps(self, session: SessionT) -> None:
        """Counters last: a counter that begins anew would give numbers that entries still have."""
        self._delete_own(session, self._control.entries)
        self._delete_own(session, self._control.counters)

    def _remove_ledger(self, session: SessionT) -> None:
        if not self._exists(session, self._control.ledger):
            return
        ledger = self._control.ledger
        with self._writes(ledger), self._transaction(session):
            session.run(f"DELETE FROM {self._qualified(ledger)} WHERE migration = %s", [self._migration])
            self._note(session, "done: the next run begins anew")

    def _delete_own(self, session: SessionT, table: TableId) -> None:
        if self._exists(session, table):
            with self._writes(table), self._transaction(session):
                session.run(f"DELETE FROM {self._qualified(table)} WHERE migration = %s", [self._migration])

    def _drop(self, session: SessionT, tables: Sequence[TableId]) -> None:
        for table in tables:
            statement = f"DROP TABLE IF EXISTS {self._qualified(table)}"
            with (
                self._refusals.named(
                    "a table that the migration made can't be dropped",
                    str(table),
                    remedy=f"as its owner: {statement}; then repeat `migrator reset`",
                ),
                self._transaction(session),
            ):
                session.run(statement)

    def _writes(self, table: TableId) -> AbstractContextManager[None]:
        name = self._qualified(table)
        return self._refusals.named(
            "the migration's login may not remove its rows of a table of the tool",
            str(table),
            remedy=f"as an administrator: GRANT SELECT, INSERT, UPDATE, DELETE ON {name} TO {self._account()};"
            " then repeat `migrator reset`",
        )

    @abstractmethod
    def _account(self) -> str:
        """Returns the login as GRANT takes it."""

    def _note(self, session: SessionT, said: str) -> None:
        if self._exists(session, self._control.history):
            act = values(self._migration, RESET, self._user, reason=self._reason, detail=said)
            note(session.run, session.rows, self._ledger_table.history, act)


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
