"""The MySQL and MariaDB target: its statements around a batch (see ``shared.target_writer``)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from migrator.adapters.targets.mysql.checks.dry_run import refused
from migrator.adapters.targets.mysql.checks.holds import holds
from migrator.adapters.targets.mysql.checks.preflight import preflight
from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.mirror.joined_writer import JoinedWriter
from migrator.adapters.targets.mysql.mirror.keeper import MysqlMirrorKeeper
from migrator.adapters.targets.mysql.reflect import catalog, reflect
from migrator.adapters.targets.mysql.refusal import LOCK_WAIT, NO_SAVEPOINT, Refusal
from migrator.adapters.targets.mysql.rows.merge import qualified, quoted
from migrator.adapters.targets.mysql.rows.prepared import Prepared, prepare
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.rows.writer import BatchWriter
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Structure
from migrator.adapters.targets.shared.identities import WithRows, rows_there
from migrator.adapters.targets.shared.merging import MergingTarget
from migrator.adapters.targets.shared.reflected import require_tables
from migrator.adapters.targets.shared.refused import StatementRefused, check_once
from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.model.fit import Rule
from migrator.model.grants import NOTHING_BESIDE, Beside
from migrator.model.table import TableId
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import OrphansAside, TargetBatch, TargetRows
from migrator.schema import MYSQL_LEDGER, upgrade_target

# Made under the ledger's lock, asked for before the COMMIT: it is gone if anything has ended the transaction
# between.
_WHOLE = "migrator_whole"
_OLDER_EPOCHS = 100
_COLUMNS_NOW = (
    "SELECT table_name, column_name, column_type FROM information_schema.columns"
    " WHERE table_schema = %s AND table_name IN %s"
)
# One table each: of several in a list MariaDB opens all tables of the database.
_MADE_AT = "SELECT table_name, create_time FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
_TRIGGERS_NOW = (
    "SELECT event_object_table, trigger_name FROM information_schema.triggers"
    " WHERE event_object_schema = %s AND event_object_table IN %s ORDER BY 1, 2"
)
_ROLLED_BACK_WITHIN_S = 120.0


class MysqlTargetWriter(MergingTarget[Session, Structure, Prepared, BatchWriter]):
    """``ports.target.Target`` on MySQL 8.0 and MariaDB 10.6 or newer.

    Args:
        settings: where the target is.
        step: called at the points ``target.begun`` to ``target.committed``; what it raises rolls back.

    All writing goes through one session; ``preflight`` and ``tables`` use short ones of their own.
    """

    def __init__(self, settings: MysqlTarget, step: Callable[[str], None] = lambda name: None):
        super().__init__(settings, LEDGER, step)
        self._settings = settings
        self._staging: StagingTables | None = None
        self._mirrors = MysqlMirrorKeeper(settings)

    def preflight(self, tables: Sequence[str], beside: Beside = NOTHING_BESIDE) -> list[Finding]:
        """Everything that stands in the way. Changes nothing."""
        return preflight(self._settings, tables, beside)

    def holds(self, table: TargetTable) -> Mapping[str, Sequence[Rule]]:
        """Returns the rules for each column's values (see ``ports.target``)."""
        return holds(self._settings, self._structure(table))

    def _upgrade(self) -> None:
        upgrade_target(self._settings.engine())

    def _new_session(self) -> Session:
        return Session(self._settings)

    def _begin(self, session: Session, epoch: int) -> None:
        session.begin(epoch)

    def _waited_in_vain(self, refusal: StatementRefused) -> bool:
        return isinstance(refusal, Refusal) and refusal.code == LOCK_WAIT

    def _end_older(self, epoch: int) -> None:
        """Ends the sessions of the leaders since the ledger's, up to ours."""
        session = self._connected()
        session.run("ROLLBACK")
        stored = LEDGER.stored_epoch(session, self._settings.migration)
        for older in range(max(stored, epoch - _OLDER_EPOCHS), epoch + 1):
            session.end_leader(older, _ROLLED_BACK_WITHIN_S)
        session.run("ROLLBACK")

    def _end_session(self, session: Session, lost: Session) -> None:
        session.end_session(lost.id)

    def _ledger_rights(self) -> str:
        user, database = self._settings.server.user, self._settings.server.database
        return f"GRANT SELECT, INSERT, UPDATE ON `{database}`.{MYSQL_LEDGER} TO '{user}'"

    def _found(self, names: Sequence[str]) -> Mapping[TableId, Structure]:
        database = self._settings.server.database
        with catalog(self._settings) as session:
            found = reflect(session, database, names)
        require_tables(found, names, f"database {database}")
        return found

    def _columns_now(self, session: Session, names: Sequence[str]) -> list[tuple[Any, ...]]:
        database = self._settings.server.database
        places = [place for name in names for place in (database, name)]
        times = dict(session.rows(" UNION ALL ".join([_MADE_AT] * len(names)), places))
        columns = session.rows(_COLUMNS_NOW, [database, list(names)])
        return [(*column, times.get(column[0])) for column in columns]

    def _replaced(self, session: Session, tables: Sequence[str]) -> list[str]:
        """An ALTER moves the time at which a table was made, too; but it leaves the rows."""
        session.run("ROLLBACK")
        return self._identities.emptied(tables, self._rows_there(session))

    def _rows_there(self, session: Session) -> WithRows:
        place = self._settings.server.database
        return rows_there(session.rows, self._keys(), lambda name: qualified(TableId(place, name)), quoted)

    def _tried(self, structure: Structure, rows: Any, untried: Collection[str]) -> TargetError | None:
        return refused(self._settings, structure, rows, untried)

    def _make_mirror(self, session: Session, targets: Sequence[JoinedTarget]) -> None:
        session.run("ROLLBACK")
        self._mirrors.prepare(session, targets, LEDGER.known(session, self._settings.migration))

    def _prepare(self, session: Session, batch: TargetBatch) -> list[Prepared]:
        session.run("ROLLBACK")
        self._staging_of(session).clean(4 * len(batch.rows))
        return self._encoded(session, batch.rows)

    def _encoded(self, session: Session, batch: Sequence[TargetRows]) -> list[Prepared]:
        check_once(batch)
        self._know([rows.table.id for rows in batch])
        staging = self._staging_of(session)
        prepared = [prepare(self._structures[rows.table.id], rows, staging) for rows in batch]
        return [one for one in prepared if one is not None]

    def _begun(self, session: Session) -> None:
        session.run(f"SAVEPOINT {_WHOLE}")

    def _rows_writer(self, session: Session, orphans: OrphansAside | None, loose: bool) -> BatchWriter:
        return BatchWriter(session, self._structures, self._step, self._triggers_now(session), orphans)

    def _write_rows(
        self, session: Session, writer: BatchWriter, prepared: list[Prepared], loose: bool
    ) -> None:
        writer.write(prepared, checked=not loose)

    def _write_joined(
        self,
        session: Session,
        writer: BatchWriter,
        prepared: list[Prepared],
        joined: Iterator[TargetRows],
        loose: bool,
    ) -> bool:
        staging = self._staging_of(session)
        parts = JoinedWriter(
            session, staging, writer, self._structures, lambda rows: self._encoded(session, rows), not loose
        )
        return parts.write(prepared, joined)

    def _triggers_now(self, session: Session) -> Mapping[TableId, tuple[str, ...]]:
        """The names of triggers by the tables that have any; without the right to see them, none."""
        found: dict[TableId, tuple[str, ...]] = {}
        names = [table.name for table in self._structures]
        for table, name in (
            session.rows(_TRIGGERS_NOW, [self._settings.server.database, names]) if names else ()
        ):
            place = TableId(self._settings.server.database, str(table))
            found[place] = (*found.get(place, ()), str(name))
        return found

    def _check_whole(self, session: Session) -> None:
        try:
            session.run(f"RELEASE SAVEPOINT {_WHOLE}")
        except Refusal as refusal:
            if refusal.code != NO_SAVEPOINT:
                raise
            raise TargetError(
                "the batch's transaction was ended before its end",
                where=self._settings.server.address,
                cause="a statement committed by itself, or the server rolled back; the ledger wasn't moved",
                remedy="look for triggers and procedures with DDL in the target, then start again",
            ) from None

    def _staging_of(self, session: Session) -> StagingTables:
        self._staging = self._staging or StagingTables(session)
        return self._staging

    def _session_forgotten(self) -> None:
        self._staging = None
