"""The PostgreSQL target: its statements around a batch (see ``shared.target_writer``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from migrator.adapters.targets.postgres.checks.dry_run import refused
from migrator.adapters.targets.postgres.checks.holds import holds
from migrator.adapters.targets.postgres.checks.preflight import preflight
from migrator.adapters.targets.postgres.ledger import LEDGER
from migrator.adapters.targets.postgres.looks import Looks
from migrator.adapters.targets.postgres.mirror.joined_writer import JoinedWriter
from migrator.adapters.targets.postgres.mirror.keeper import PostgresMirrorKeeper
from migrator.adapters.targets.postgres.reflect import catalog, reflect
from migrator.adapters.targets.postgres.refusal import LOCK_NOT_AVAILABLE, Refusal
from migrator.adapters.targets.postgres.rows import executor_staging as staged
from migrator.adapters.targets.postgres.rows.prepared import Prepared, prepare
from migrator.adapters.targets.postgres.rows.staging import StagingTables
from migrator.adapters.targets.postgres.rows.triggers import triggers_of
from migrator.adapters.targets.postgres.rows.writer import BatchWriter, DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.structure import Structure
from migrator.adapters.targets.shared.identities import WithRows, as_text
from migrator.adapters.targets.shared.merging import MergingTarget
from migrator.adapters.targets.shared.reflected import require_tables
from migrator.adapters.targets.shared.refused import StatementRefused, check_once
from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.ledger import Ledger
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import OrphansAside, Stage, StagedRows, TargetBatch, TargetRows
from migrator.schema import upgrade_target
from migrator.schema.engines import as_engine

# Sessions of the same migration and role that hold what we wait for: a cut-off or frozen earlier leader.
# Waited for: a session that was ended keeps its locks until it has noticed.
_END_OLDER_SESSIONS = (
    "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE usename = current_user"
    " AND application_name = $1::text AND pid <> pg_backend_pid() AND pid = ANY(ARRAY("
    " SELECT l.pid FROM pg_locks l WHERE l.relation = 'migrator.ledger'::regclass AND l.granted))"
)
# A partitioned table has no file; TRUNCATE of it gives all partitions others.
_COLUMNS_NOW = (
    "SELECT c.relname::text, a.attname::text, pg_catalog.format_type(a.atttypid, a.atttypmod),"
    " pg_catalog.concat(c.oid::text, ' ', CASE WHEN c.relkind = 'p' THEN (SELECT"
    " pg_catalog.min(pg_catalog.pg_relation_filenode(i.inhrelid)) FROM pg_catalog.pg_inherits i"
    " WHERE i.inhparent = c.oid) ELSE pg_catalog.pg_relation_filenode(c.oid) END::text)"
    " FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE a.attnum > 0 AND NOT a.attisdropped AND n.nspname = $1::text AND c.relname IN "
)
_END_OWN_SESSION = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE pid = $1::bigint::int AND backend_start = $2::text::timestamptz"
)


class PostgresTargetWriter(MergingTarget[Session, Structure, Prepared, BatchWriter]):
    """``ports.target.Target`` on PostgreSQL 14 or newer.

    Args:
        settings: where the target is.
        step: called at the points ``target.begun`` to ``target.committed``; what it raises rolls back.

    All writing goes through one session; ``preflight`` and ``tables`` use short ones of their own.
    """

    _mirrors: PostgresMirrorKeeper

    def __init__(self, settings: PostgresTarget, step: Callable[[str], None] = lambda name: None):
        super().__init__(settings, LEDGER, step)
        self._settings = settings
        self._staging: StagingTables | None = None
        self._direct_loads = DirectLoads()
        self._looks = Looks(settings.server.schema)
        self._applied = 0
        self._may_stage = False
        self._mirrors = PostgresMirrorKeeper(settings.migration)

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """Everything that stands in the way. Changes nothing."""
        return preflight(self._settings, tables, beside)

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns the rules for each column's values (see ``ports.target``)."""
        structure = self._structure(table)
        with catalog(self._settings) as connection:
            return holds(connection, structure)

    def staging(self, table: TargetTable, segment: int) -> Stage | None:
        """Returns how executors stage dump rows (see ``ports.target.Stager``). Only after ``open`` and ``tables``."""
        structure = self._structures.get(table.id)
        if self._epoch is None or not self._may_stage or structure is None or not staged.stageable(structure):
            return None
        return staged.ExecutorStaging(self._settings, structure, self._epoch, segment)

    def apply(self, batch: TargetBatch) -> None:
        """Merges all rows and moves the ledger in one transaction (see ``TargetWriter.apply``)."""
        try:
            super().apply(batch)
        except (
            staged.Unusable
        ):  # mapped again, the rows go the driver's way, which merges them or names the one at fault
            super().apply(staged.brought_here(batch))

    def _upgrade(self) -> None:
        upgrade_target(as_engine(self._settings.url()))

    def _new_session(self) -> Session:
        return Session(self._settings)

    def _begin(self, session: Session, epoch: int) -> None:
        session.run("BEGIN")

    def _waited_in_vain(self, refusal: StatementRefused) -> bool:
        return isinstance(refusal, Refusal) and refusal.sqlstate == LOCK_NOT_AVAILABLE

    def _end_older(self, epoch: int) -> None:
        self._connected().run(_END_OLDER_SESSIONS, [self._settings.application_name])

    def _end_session(self, session: Session, lost: Session) -> None:
        session.rows(_END_OWN_SESSION, [lost.pid, lost.backend_start])

    def _ledger_rights(self) -> str:
        user = self._settings.server.user
        return (
            f'GRANT USAGE ON SCHEMA migrator TO "{user}";'
            f' GRANT SELECT, INSERT, UPDATE ON migrator.ledger TO "{user}"'
        )

    def _opened(self, epoch: int, taken: Ledger) -> None:
        self._may_stage = staged.may_stage(self._connected())
        staged.drop_leftovers(self._connected(), self._settings.migration, epoch, taken.segment)
        self._applied = taken.segment

    def _found(self, names: Sequence[str]) -> Mapping[TableId, Structure]:
        schema = self._settings.server.schema
        with catalog(self._settings) as connection:
            found = reflect(connection, schema, names)
        require_tables(found, names, f"schema {schema}")
        return found

    def _columns_now(self, session: Session, names: Sequence[str]) -> list[tuple[Any, ...]]:
        places = ", ".join(f"${place}::text" for place in range(2, len(names) + 2))
        return session.rows(_COLUMNS_NOW + f"({places})", [self._settings.server.schema, *names])

    def _replaced(self, session: Session, tables: Sequence[str]) -> list[str]:
        """A number in the catalog is one table's alone. Of another file the number tells TRUNCATE, or VACUUM FULL."""
        columns = self._columns_now(session, tables)
        now = {as_text(table): as_text(number) for table, _, _, number in columns}
        of_table = {name: (now.get(name, ""), self._identities.seen(name)) for name in tables}
        found = [name for name, (a, b) in of_table.items() if a.partition(" ")[0] != b.partition(" ")[0]]
        same = sorted(set(tables) - {*found})
        return [*found, *self._identities.emptied(same, self._rows_there(session))]

    def _rows_there(self, session: Session) -> WithRows:
        return self._looks.rows_there(session.rows, self._keys())

    def _tried(self, structure: Structure, rows: Any, untried: Collection[str]) -> TargetError | None:
        return refused(self._settings, structure, rows, untried)

    def _make_mirror(self, session: Session, targets: Sequence[JoinedTarget]) -> None:
        session.run("BEGIN")
        self._mirrors.prepare(session, targets, LEDGER.lock(session, self._settings.migration))
        session.run("COMMIT")

    def _prepare(self, session: Session, batch: TargetBatch) -> list[Prepared]:
        if self._epoch is not None and staged.staged_rows(batch):
            staged.drop_leftovers(session, self._settings.migration, self._epoch, self._applied)
        return self._encoded(session, batch.rows)

    def _encoded(self, session: Session, batch: Sequence[TargetRows]) -> list[Prepared]:
        check_once(batch)
        self._know([rows.table.id for rows in batch])
        staging = self._staging or StagingTables(session)
        self._staging = staging
        staging.make_room(3 * len(batch))
        here = [replace(one, chunk=None) if isinstance(one.chunk, StagedRows) else one for one in batch]
        prepared = [prepare(self._structures[rows.table.id], rows, staging) for rows in here]
        return [one for one in prepared if one is not None]

    def _begun(self, session: Session) -> None:
        if self._staging is not None:
            self._staging.begin()

    def _rows_writer(self, session: Session, orphans: OrphansAside | None, loose: bool) -> BatchWriter:
        writer = BatchWriter(
            session,
            self._settings.server.user,
            self._direct_loads,
            self._structures,
            self._step,
            triggers_of(session, self._structures.keys()),
            orphans,
        )
        if loose:
            writer.relax()
        return writer

    def _merge_staged(self, session: Session, writer: BatchWriter, batch: TargetBatch) -> None:
        parts = staged.staged_rows(batch)
        if parts and writer.triggers:
            raise staged.Unusable("what triggers make of rows is seen where the driver stages them")
        for table, rows in parts:
            staged.merge_staged(session, self._structures[table], rows, self._direct_loads, writer.relaxed)
        staged.drop_parts(session, [rows for _, rows in parts])

    def _write_rows(
        self, session: Session, writer: BatchWriter, prepared: list[Prepared], loose: bool
    ) -> None:
        writer.write(prepared)

    def _write_joined(
        self,
        session: Session,
        writer: BatchWriter,
        prepared: list[Prepared],
        joined: Iterator[TargetRows],
        loose: bool,
    ) -> bool:
        parts = JoinedWriter(session, writer, self._structures, lambda rows: self._encoded(session, rows))
        return parts.write(prepared, joined)

    def _after_commit(self, batch: TargetBatch) -> None:
        if self._staging is not None:
            self._staging.committed()
        self._applied = batch.segment

    def _rolled_back(self) -> None:
        if self._session is not None:
            self._session.forget()
        self._mirrors.rolled_back()
        if self._staging is not None:
            self._staging.rolled_back()

    def _session_forgotten(self) -> None:
        self._staging = None
