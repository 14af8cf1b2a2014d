"""The PostgreSQL target: one transaction per batch, the ledger in it, and unknown outcomes looked up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrator.adapters.targets.postgres import history
from migrator.adapters.targets.postgres.checks.dry_run import refused
from migrator.adapters.targets.postgres.checks.holds import holds
from migrator.adapters.targets.postgres.checks.preflight import preflight
from migrator.adapters.targets.postgres.ledger import LEDGER
from migrator.adapters.targets.postgres.mirror.joined_writer import JoinedWriter
from migrator.adapters.targets.postgres.mirror.keeper import MirrorKeeper
from migrator.adapters.targets.postgres.reflect import catalog, reflect, require
from migrator.adapters.targets.postgres.refusal import LOCK_NOT_AVAILABLE, ConnectionLost, Refusal
from migrator.adapters.targets.postgres.rows import executor_staging as staged
from migrator.adapters.targets.postgres.rows.explain import temporary
from migrator.adapters.targets.postgres.rows.prepared import Prepared, prepare
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.rows.writer import BatchWriter, DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
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
from migrator.ports.target import Stage, StagedRows, TargetBatch, TargetRows
from migrator.schema import upgrade_target
from migrator.schema.engines import as_engine

# Sessions of the same migration and role that hold what we wait for: a cut-off or frozen earlier leader.
# Waited for: a session that was ended keeps its locks until it has noticed.
_END_OLDER_SESSIONS = (
    "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE usename = current_user"
    " AND application_name = $1::text AND pid <> pg_backend_pid() AND pid = ANY(ARRAY("
    " SELECT l.pid FROM pg_locks l WHERE l.relation = 'migrator.ledger'::regclass AND l.granted))"
)
_COLUMNS_NOW = (
    "SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname = $1::text AND c.relname IN "
)
_END_OWN_SESSION = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE pid = $1::bigint::int AND backend_start = $2::text::timestamptz"
)


class PostgresTargetWriter:
    """``ports.target.Target`` on PostgreSQL 14 or newer.

    Args:
        settings: where the target is.
        step: called at the points ``target.begun`` to ``target.committed``; what it raises rolls back.

    All writing goes through one session; ``preflight`` and ``tables`` use short ones of their own.
    """

    def __init__(self, settings: PostgresTarget, step: Callable[[str], None] = lambda name: None):
        self._settings = settings
        self._step = step
        self._structures: dict[TableId, Structure] = {}
        self._session: Session | None = None
        self._staging: StagingTables | None = None
        self._direct_loads = DirectLoads()
        self._epoch: int | None = None
        self._applied = 0
        self._may_stage = False
        self._mirrors = MirrorKeeper(settings.migration)

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """Everything that stands in the way. Changes nothing."""
        return preflight(self._settings, tables, beside)

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        """Reflects the named tables of the target's schema. Raises ``TargetError`` naming those missing."""
        return [one.table for one in self._reflect(names)]

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns the rules for each column's values (see ``ports.target``)."""
        structure = self._structure(table)
        with catalog(self._settings) as connection:
            return holds(connection, structure)

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
        """Takes the ledger over, making it first if needed; ends older sessions that hold its lock.

        Raises ``FencedError`` when the ledger saw a higher epoch, ``TargetError``, ``ConnectionFailed``.
        """
        engine = as_engine(self._settings.url())
        upgrade_target(engine)
        try:
            try:
                taken = self._take(epoch)
            except Refusal as refusal:
                if refusal.sqlstate != LOCK_NOT_AVAILABLE:
                    raise
                self._connected().run(_END_OLDER_SESSIONS, [self._settings.application_name])
                taken = self._take(epoch)
            self._may_stage = staged.may_stage(self._connected())
            staged.drop_leftovers(self._connected(), self._settings.migration, epoch, taken.segment)
        except Refusal as refusal:
            raise self._ledger_refused(refusal) from None
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        self._epoch, self._applied = epoch, taken.segment
        return taken

    def prepare_mirror(self, targets: Sequence[JoinedTarget]) -> None:
        """Makes what these targets need of the mirror (see ``ports.target``). Only after ``open``."""
        try:
            session = self._connected()
            session.run("BEGIN")
            ledger = LEDGER.lock(session, self._settings.migration)
            self._mirrors.prepare(session, targets, ledger)
            session.run("COMMIT")
        except ConnectionLost as lost:
            raise self._lost(lost) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        except BaseException:
            self._roll_back()
            raise

    def staging(self, table: TargetTable, segment: int) -> Stage | None:
        """Returns how executors stage dump rows (see ``ports.target.Stager``). Only after ``open`` and ``tables``."""
        structure = self._structures.get(table.id)
        if self._epoch is None or not self._may_stage or structure is None or not staged.stageable(structure):
            return None
        return staged.ExecutorStaging(self._settings, structure, self._epoch, segment)

    def apply(self, batch: TargetBatch) -> None:
        """Merges all rows and moves the ledger in one transaction (see ``ports.target``).

        Returns silently when the ledger already holds ``batch.segment``: that is how a batch whose outcome stayed
        unknown is tried again.
        """
        if self._epoch is None:
            raise TargetError("the ledger wasn't taken over yet", remedy="call open() before apply()")
        try:
            self._apply(batch, self._epoch)
        except (
            staged.Unusable
        ):  # mapped again, the rows go the driver's way, which merges them or names the one at fault
            self._apply(staged.brought_here(batch), self._epoch)

    def _apply(self, batch: TargetBatch, epoch: int) -> None:
        committing = False
        try:
            session = self._connected()
            if staged.staged_rows(batch):
                staged.drop_leftovers(session, self._settings.migration, epoch, self._applied)
            prepared = self._prepare(session, batch.rows)
            if not self._write(session, batch, prepared, epoch):
                return
            committing = True
            session.run("COMMIT")
            if self._staging is not None:
                self._staging.committed()
        except ConnectionLost as lost:
            self._forget(lost_session := self._session)
            if not (committing and self._committed(lost_session, batch)):
                raise self._lost(lost) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        except BaseException:
            self._roll_back()
            raise
        self._applied = batch.segment
        self._step("target.committed")

    def close(self) -> None:
        """Ends the connection; what was not committed is rolled back. Safe to call twice."""
        self._forget(self._session)

    def _take(self, epoch: int) -> Ledger:
        session = self._connected()
        LEDGER.check_not_newer(session, self._settings.migration, epoch)
        session.run("BEGIN")
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

    def _write(self, session: Session, batch: TargetBatch, prepared: list[Prepared], epoch: int) -> bool:
        """Everything up to the COMMIT; False when the ledger already holds the batch."""
        migration = self._settings.migration
        session.run("BEGIN")
        held = LEDGER.lock(session, migration)
        LEDGER.check_epoch(held, epoch)
        if not due(held, batch.segment, batch.link):
            session.run("ROLLBACK")
            return False
        if self._staging is not None:
            self._staging.begin()
        self._step("target.begun")
        writer = BatchWriter(session, self._settings.user, self._direct_loads, self._structures, self._step)
        dumping = held.checkpoint is None or held.checkpoint.dumping()
        emptied = [rows.table.id for rows in batch.rows if rows.emptied]
        if dumping or emptied or batch.checkpoint.dumping():
            writer.relax()
        writer.empty(emptied)
        parts = staged.staged_rows(batch)
        for table, rows in parts:
            staged.merge_staged(session, self._structures[table], rows, self._direct_loads, writer.relaxed)
        checked = bool(dumping or emptied)
        if batch.joined is None:
            writer.write(prepared)
        else:
            mirror = self._mirrors.moved(session, batch)
            self._step("target.mirrored")
            joined = JoinedWriter(
                session, writer, self._structures, lambda rows: self._prepare(session, rows)
            )
            checked = joined.write(prepared, batch.joined(mirror)) or checked
        staged.drop_parts(session, [rows for _, rows in parts])
        if (
            checked and not batch.checkpoint.dumping()
        ):  # until then children may be there before their parents
            writer.check_foreign_keys()
        self._check_unchanged(session)
        self._step("target.merged")
        LEDGER.move(session, migration, batch.segment, batch.checkpoint, identity(batch.link))
        self._step("target.moved")
        return True

    def _check_unchanged(self, session: Session) -> None:
        tables = [one.table for one in self._structures.values()]
        if tables:
            places = ", ".join(f"${place}::text" for place in range(2, len(tables) + 2))
            names = [table.id.name for table in tables]
            check_unchanged(
                tables, session.rows(_COLUMNS_NOW + f"({places})", [self._settings.schema, *names])
            )

    def _prepare(self, session: Session, batch: Sequence[TargetRows]) -> list[Prepared]:
        check_once(batch)
        unknown = [rows.table.id.name for rows in batch if rows.table.id not in self._structures]
        if unknown:
            self._reflect(unknown)
        staging = self._staging or StagingTables(session)
        self._staging = staging
        staging.make_room(3 * len(batch))
        here = [replace(one, chunk=None) if isinstance(one.chunk, StagedRows) else one for one in batch]
        prepared = [prepare(self._structures[rows.table.id], rows, staging) for rows in here]
        return [one for one in prepared if one is not None]

    def _reflect(self, names: Sequence[str]) -> list[Structure]:
        schema = self._settings.schema
        with catalog(self._settings) as connection:
            found = reflect(connection, schema, names)
        require(found, schema, names)
        self._structures |= found
        return [found[TableId(schema, name)] for name in names]

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
        self._mirrors.rolled_back()
        if self._staging is not None:
            self._staging.rolled_back()
        if self._session is None:
            return
        try:
            self._session.run("ROLLBACK")
        except (Refusal, ConnectionLost):
            self._forget(self._session)

    def _committed(self, lost: Session | None, batch: TargetBatch) -> bool:
        """Looks an unknown COMMIT up in the ledger.

        The old session is ended first and its row lock waited for: else it could still commit after the look.
        Raises ``ConnectionFailed`` (retryable) when the server can't be asked now; ``FencedError``.
        """
        self._step("target.unknown")
        try:
            session = self._connected()
            if lost is not None:
                session.rows(_END_OWN_SESSION, [lost.pid, lost.backend_start])
            session.run("BEGIN")
            held = LEDGER.lock(session, self._settings.migration)
            session.run("ROLLBACK")
        except ConnectionLost as again:
            self._forget(self._session)
            raise self._lost(again) from None
        except Refusal as refusal:
            self._roll_back()
            raise self._unexpected(refusal) from None
        if self._epoch is not None:
            # Also where the ledger holds the batch: that may be the new leader's work.
            LEDGER.check_epoch(held, self._epoch)
        return not due(held, batch.segment, batch.link)

    def _lost(self, lost: ConnectionLost) -> ConnectionFailed:
        self._forget(self._session)
        return lost_connection(self._settings.address, str(lost))

    def _ledger_refused(self, refusal: Refusal) -> TargetError:
        if refusal.retryable():
            return temporary(refusal)
        return TargetError(
            "the target's ledger can't be used",
            where="migrator.ledger",
            cause=refusal.cause(),
            remedy=f'GRANT USAGE ON SCHEMA migrator TO "{self._settings.user}";'
            f' GRANT SELECT, INSERT, UPDATE ON migrator.ledger TO "{self._settings.user}"',
        )

    def _unexpected(self, refusal: Refusal) -> TargetError:
        if refusal.retryable():
            return temporary(refusal)
        return refused_statement(self._settings.address, f"{refusal.cause()} (SQLSTATE {refusal.sqlstate})")
