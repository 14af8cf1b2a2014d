"""The MySQL and MariaDB target: one transaction per batch, the ledger in it, and unknown outcomes looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from migrator.adapters.targets.mysql import history
from migrator.adapters.targets.mysql.checks.dry_run import refused
from migrator.adapters.targets.mysql.checks.holds import holds
from migrator.adapters.targets.mysql.checks.preflight import preflight
from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.mirror.joined_writer import JoinedWriter
from migrator.adapters.targets.mysql.mirror.keeper import MirrorKeeper
from migrator.adapters.targets.mysql.reflect import catalog, reflect, require
from migrator.adapters.targets.mysql.refusal import (
    LOCK_WAIT,
    NO_SAVEPOINT,
    ConnectionLost,
    Refusal,
)
from migrator.adapters.targets.mysql.rows.explain import temporary
from migrator.adapters.targets.mysql.rows.prepared import Prepared, prepare
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.rows.writer import BatchWriter
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.shared.refused import check_once, lost_connection, refused_statement
from migrator.adapters.targets.shared.unchanged import check_unchanged
from migrator.errors import ConnectionFailed, TargetError
from migrator.model.beside import NOTHING_BESIDE, Beside
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.ledger import Ledger
from migrator.model.lineage import due, identity
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch, TargetRows
from migrator.schema import MYSQL_LEDGER, upgrade_target

# Made under the ledger's lock, asked for before the COMMIT: it is gone if anything has ended the transaction
# between.
_WHOLE = "migrator_whole"
_OLDER_EPOCHS = 100
_COLUMNS_NOW = (
    "SELECT table_name, column_name, column_type FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name IN %s"
)
_ROLLED_BACK_WITHIN_S = 120.0


class MysqlTargetWriter:
    """``ports.target.Target`` on MySQL 8.0 and MariaDB 10.6 or newer.

    Args:
        settings: where the target is.
        step: called at the points ``target.begun`` to ``target.committed``; what it raises rolls back.

    All writing goes through one session; ``preflight`` and ``tables`` use short ones of their own.
    """

    def __init__(self, settings: MysqlTarget, step: Callable[[str], None] = lambda name: None):
        self._settings = settings
        self._step = step
        self._structures: dict[TableId, Structure] = {}
        self._session: Session | None = None
        self._staging: StagingTables | None = None
        self._epoch: int | None = None
        self._mirrors = MirrorKeeper(settings)

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """Everything that stands in the way. Changes nothing."""
        return preflight(self._settings, tables, beside)

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """Reflects the named tables of the target's database. Raises ``TargetError`` naming those missing."""
        return [one.table for one in self._reflect(names)]

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns the rules for each column's values (see ``ports.target``)."""
        return holds(self._structure(table))

    def refused(self, table: TargetTable, rows: Any) -> TargetError | None:
        """Tries rows in a copy of the table (see ``ports.target``)."""
        try:
            return refused(self._settings, self._structure(table), rows)
        except ConnectionLost as lost:
            raise self._lost(lost) from None

    def _structure(self, table: TargetTable) -> Structure:
        if table.id not in self._structures:
            self._reflect([table.id.name])
        return self._structures[table.id]

    def open(self, epoch: int) -> Ledger:
        """Takes the ledger over, making it first if needed; ends the older session that holds its lock.

        Raises ``FencedError`` when the ledger saw a higher epoch, ``TargetError``, ``ConnectionFailed``.
        """
        upgrade_target(self._settings.engine())
        try:
            try:
                taken = self._take(epoch)
            except Refusal as refusal:
                if refusal.code != LOCK_WAIT:
                    raise
                self._end_older(epoch)
                taken = self._take(epoch)
        except Refusal as refusal:
            raise self._ledger_refused(refusal) from None
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        self._epoch = epoch
        return taken

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """Makes what these targets need of the mirror (see ``ports.target``). Only after ``open``."""
        try:
            session = self._connected()
            session.run("ROLLBACK")
            self._mirrors.prepare(session, targets, LEDGER.known(session, self._settings.migration))
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        except BaseException:
            self._roll_back()
            raise

    def apply(self, batch: TargetBatch) -> None:
        """Merges all rows and moves the ledger in one transaction (see ``ports.target``).

        Returns silently when the ledger already holds ``batch.segment``: that is how a batch whose outcome stayed
        unknown is tried again.
        """
        if self._epoch is None:
            raise TargetError("the ledger wasn't taken over yet", remedy="call open() before apply()")
        committing = False
        try:
            session = self._connected()
            prepared = self._prepare(session, batch.rows)
            if not self._write(session, batch, prepared, self._epoch):
                return
            committing = True
            session.run("COMMIT")
        except ConnectionLost as lost:
            self._forget(lost_session := self._session)
            if not (committing and self._committed(lost_session, batch, self._epoch)):
                raise self._lost(lost) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        except BaseException:
            self._roll_back()
            raise
        self._step("target.committed")

    def close(self) -> None:
        """Ends the connection; what was not committed is rolled back. Safe to call twice."""
        self._forget(self._session)

    def _take(self, epoch: int) -> Ledger:
        session = self._connected()
        LEDGER.check_not_newer(session, self._settings.migration, epoch)
        session.begin(epoch)
        try:
            LEDGER.make(session, self._settings.migration)
            held = LEDGER.lock(session, self._settings.migration)
            taken = LEDGER.taken(session, held, epoch)
            if held.epoch < epoch:
                history.led(session, self._settings, epoch)
            session.run("COMMIT")
        except BaseException:
            self._roll_back()
            raise
        return taken

    def _end_older(self, epoch: int) -> None:
        """Ends the sessions that cut-off or frozen earlier leaders have left: since the ledger's, up to ours."""
        session = self._connected()
        session.run("ROLLBACK")
        stored = LEDGER.stored_epoch(session, self._settings.migration)
        for older in range(max(stored, epoch - _OLDER_EPOCHS), epoch + 1):
            session.end_leader(older, _ROLLED_BACK_WITHIN_S)
        session.run("ROLLBACK")

    def _write(self, session: Session, batch: TargetBatch, prepared: list[Prepared], epoch: int) -> bool:
        """Everything up to the COMMIT; False when the ledger already holds the batch."""
        migration = self._settings.migration
        session.begin(epoch)
        held = LEDGER.lock(session, migration)
        LEDGER.check_epoch(held, epoch)
        if not due(held, batch.segment, batch.link):
            session.run("ROLLBACK")
            return False
        session.run(f"SAVEPOINT {_WHOLE}")
        self._step("target.begun")
        writer = BatchWriter(session, self._structures, self._step)
        emptied = [rows.table.id for rows in batch.rows if rows.emptied]
        writer.empty(emptied)
        dumping = held.checkpoint is None or held.checkpoint.dumping()
        still_dumping = batch.checkpoint.dumping()
        checked = not (dumping or emptied or still_dumping)
        wholly = bool(dumping or emptied)
        if batch.joined is None:
            writer.write(prepared, checked)
        else:
            mirror = self._mirrors.moved(session, batch)
            self._step("target.mirrored")
            joined = self._joined_writer(session, writer, checked)
            wholly = joined.write(prepared, batch.joined(mirror)) or wholly
        if wholly and not still_dumping:
            writer.check_foreign_keys()
        self._check_unchanged(session)
        self._step("target.merged")
        LEDGER.move(session, migration, batch.segment, batch.checkpoint, identity(batch.link))
        self._step("target.moved")
        self._check_whole(session)
        return True

    def _check_unchanged(self, session: Session) -> None:
        tables = [one.table for one in self._structures.values()]
        if tables:
            names = [table.id.name for table in tables]
            check_unchanged(tables, session.rows(_COLUMNS_NOW, [self._settings.database, names]))

    def _check_whole(self, session: Session) -> None:
        try:
            session.run(f"RELEASE SAVEPOINT {_WHOLE}")
        except Refusal as refusal:
            if refusal.code != NO_SAVEPOINT:
                raise
            raise TargetError(
                "the batch's transaction was ended before its end",
                where=self._settings.address,
                cause="a statement committed by itself, or the server rolled back; the ledger wasn't moved",
                remedy="look for triggers and procedures with DDL in the target, then start again",
            ) from None

    def _joined_writer(self, session: Session, writer: BatchWriter, checked: bool) -> JoinedWriter:
        staging = self._staging_of(session)
        return JoinedWriter(
            session, staging, writer, self._structures, lambda rows: self._encoded(session, rows), checked
        )

    def _staging_of(self, session: Session) -> StagingTables:
        self._staging = self._staging or StagingTables(session)
        return self._staging

    def _prepare(self, session: Session, batch: Sequence[TargetRows]) -> list[Prepared]:
        """The rows mapped before the transaction."""
        session.run("ROLLBACK")
        self._staging_of(session).clean(4 * len(batch))
        return self._encoded(session, batch)

    def _encoded(self, session: Session, batch: Sequence[TargetRows]) -> list[Prepared]:
        check_once(batch)
        unknown = [rows.table.id.name for rows in batch if rows.table.id not in self._structures]
        if unknown:
            self._reflect(unknown)
        staging = self._staging_of(session)
        prepared = [prepare(self._structures[rows.table.id], rows, staging) for rows in batch]
        return [one for one in prepared if one is not None]

    def _reflect(self, names: Sequence[str]) -> list[Structure]:
        database = self._settings.database
        with catalog(self._settings) as session:
            found = reflect(session, database, names)
        require(found, database, names)
        self._structures |= found
        return [found[TableId(database, name)] for name in names]

    def _connected(self) -> Session:
        if self._session is None:
            self._session, self._staging = Session(self._settings), None
        return self._session

    def _forget(self, session: Session | None) -> None:
        self._session, self._staging = None, None
        if session is not None:
            session.close()

    def _roll_back(self) -> None:
        """Ends the transaction; a session that can't even do that is given up."""
        if self._session is None:
            return
        try:
            self._session.run("ROLLBACK")
        except (Refusal, ConnectionLost):
            self._forget(self._session)

    def _committed(self, lost: Session | None, batch: TargetBatch, epoch: int) -> bool:
        """Looks an unknown COMMIT up in the ledger.

        The old session is ended first and its row lock waited for: else it could still commit after the look.
        Raises ``ConnectionFailed`` (retryable) when the server can't be asked now; ``FencedError``.
        """
        self._step("target.unknown")
        try:
            session = self._connected()
            if lost is not None:
                session.end_session(lost.id)
            session.begin(epoch)
            held = LEDGER.lock(session, self._settings.migration)
            session.run("ROLLBACK")
        except ConnectionLost as again:
            raise self._lost(again) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        # Also where the ledger holds the batch: that may be the new leader's work.
        LEDGER.check_epoch(held, epoch)
        return not due(held, batch.segment, batch.link)

    def _lost(self, lost: ConnectionLost) -> ConnectionFailed:
        self._forget(self._session)
        return lost_connection(self._settings.address, str(lost))

    def _ledger_refused(self, refusal: Refusal) -> TargetError:
        if refusal.retryable():
            return temporary(refusal)
        user, database = self._settings.user, self._settings.database
        return TargetError(
            "the target's ledger can't be used",
            where=MYSQL_LEDGER,
            cause=refusal.cause(),
            remedy=f"GRANT SELECT, INSERT, UPDATE ON `{database}`.{MYSQL_LEDGER} TO '{user}'",
        )

    def _unexpected(self, refusal: Refusal) -> TargetError:
        if refusal.retryable():
            return temporary(refusal)
        return refused_statement(self._settings.address, refusal.cause())
