"""Tables beside row-wise targets on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable

from migrator.adapters.targets.postgres.ledger import LEDGER
from migrator.adapters.targets.postgres.reflect import catalog, reflect
from migrator.adapters.targets.postgres.rows.all_of import merge_of, otherwise, statements
from migrator.adapters.targets.postgres.rows.merge import qualified, quoted
from migrator.adapters.targets.postgres.rows.triggers import triggers_of
from migrator.adapters.targets.postgres.rows.writer import BatchWriter, DirectLoads
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.shared.besides import BesideTables, bring
from migrator.adapters.targets.shared.reflected import require_tables
from migrator.model.progress import Remap

_FOUND = (
    "SELECT 1 FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE n.nspname = $1::text AND c.relname = $2::text"
)


class PostgresBesides(BesideTables[Session]):
    """``ports.besides.Besides`` on PostgreSQL."""

    def __init__(self, settings: PostgresTarget, step: Callable[[str], None] = lambda name: None):
        super().__init__(settings, LEDGER, step)
        self._settings = settings

    def _new_session(self) -> Session:
        return Session(self._settings)

    def _begin(self, session: Session, epoch: int | None) -> None:
        session.run("BEGIN")

    def _qualified(self, name: str) -> str:
        return qualified(self._table(name))

    def _found(self, session: Session, name: str) -> bool:
        return bool(session.rows(_FOUND, [self._settings.server.schema, name]))

    def _like(self, target: str, beside: str) -> str:
        # No statistics and comments: whoever reads them knows the target.
        return (
            f"CREATE TABLE {self._qualified(beside)} (LIKE {qualified(self._table(target))} INCLUDING ALL"
            " EXCLUDING COMMENTS EXCLUDING STATISTICS)"
        )

    def _rights(self) -> str:
        server = self._settings.server
        return f"as its owner: GRANT CREATE ON SCHEMA {quoted(server.schema)} TO {quoted(server.user)}"

    def _merging(self, session: Session, remap: Remap, written: tuple[str, ...]) -> Callable[[bool], None]:
        schema, table = self._settings.server.schema, self._table(remap.target)
        with catalog(self._settings) as connection:
            found = reflect(connection, schema, [remap.target])
        require_tables(found, [remap.target], f"schema {schema}")
        structure = found[table]
        merge = merge_of(structure, written, self._table(remap.beside))

        def run(checked: bool) -> None:
            triggers = triggers_of(session, found.keys())
            writer = BatchWriter(session, self._settings.server.user, DirectLoads(), found, triggers=triggers)
            writer.relax()
            bring(session, statements(merge), otherwise(merge), structure.table)
            if checked:
                writer.check_foreign_keys()

        return run
