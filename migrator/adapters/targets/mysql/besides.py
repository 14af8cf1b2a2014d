"""Tables beside row-wise targets on MySQL and MariaDB."""

from __future__ import annotations

from collections.abc import Callable

from migrator.adapters.targets.mysql.ledger import LEDGER
from migrator.adapters.targets.mysql.reflect import catalog, reflect
from migrator.adapters.targets.mysql.rows.all_of import merge_of, otherwise, statements
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.adapters.targets.mysql.rows.staging import StagingTables
from migrator.adapters.targets.mysql.rows.writer import BatchWriter
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.shared.besides import BesideTables, bring
from migrator.adapters.targets.shared.reflected import require_tables
from migrator.model.progress import Remap

_FOUND = "SELECT 1 FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"

_LET_GO_WITHIN_S = 5


class MysqlBesides(BesideTables[Session]):
    """``ports.besides.Besides`` on MySQL and MariaDB."""

    def __init__(self, settings: MysqlTarget, step: Callable[[str], None] = lambda name: None):
        super().__init__(settings, LEDGER, step)
        self._settings = settings

    def _new_session(self) -> Session:
        return Session(self._settings)

    def _named(self, session: Session, epoch: int) -> None:
        # The writer's session has let go of the lock, or is about to: it was closed for that.
        session.rows("SELECT GET_LOCK(%s, %s)", [self._settings.lock_name(epoch), _LET_GO_WITHIN_S])

    def _begin(self, session: Session, epoch: int | None) -> None:
        session.run("ROLLBACK")
        session.run("START TRANSACTION")

    def _qualified(self, name: str) -> str:
        return qualified(self._table(name))

    def _found(self, session: Session, name: str) -> bool:
        return bool(session.rows(_FOUND, [self._settings.server.database, name]))

    def _like(self, target: str, beside: str) -> str:
        return f"CREATE TABLE {self._qualified(beside)} LIKE {qualified(self._table(target))}"

    def _rights(self) -> str:
        server = self._settings.server
        return f"as an administrator: GRANT CREATE, DROP ON `{server.database}`.* TO '{server.user}'"

    def _merging(self, session: Session, remap: Remap, written: tuple[str, ...]) -> Callable[[bool], None]:
        database, table = self._settings.server.database, self._table(remap.target)
        with catalog(self._settings) as connection:
            found = reflect(connection, database, [remap.target])
        require_tables(found, [remap.target], f"database {database}")
        structure = found[table]
        merge = merge_of(structure, written, self._table(remap.beside), StagingTables(session))

        def run(checked: bool) -> None:
            bring(session, statements(merge), otherwise(merge), structure.table)
            if checked:
                BatchWriter(session, found).check_foreign_keys()

        return run
