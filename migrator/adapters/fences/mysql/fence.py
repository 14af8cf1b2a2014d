"""``ports.fence.Fence`` on MySQL, and its body on MariaDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pymysql.converters import escape_string

from migrator.adapters.fences.mysql.accounts import Accounts
from migrator.adapters.fences.mysql.counting import CountedErrors, Counting
from migrator.adapters.fences.mysql.read_only import ReadOnly
from migrator.adapters.fences.mysql.session import MysqlFenceSession, Words
from migrator.adapters.fences.mysql.survey import survey
from migrator.adapters.fences.mysql.transactions import on_tables, prepared, running, shared
from migrator.adapters.fences.mysql.triggers import Triggers
from migrator.adapters.fences.shared.kept_fence import KeptFence, Side
from migrator.adapters.fences.shared.notes import Notes
from migrator.connections.mysql.session import ENGINE_OPTIONS, REVISES
from migrator.connections.mysql.settings import BinlogSource, default_server_id, opened
from migrator.connections.mysql.sql import quote
from migrator.model.cutover.fence import FenceKind, FencePlan, OpenTransaction, Survey
from migrator.model.table import TableId
from migrator.schema import upgrade_fence
from migrator.schema.dialects import fence_table
from migrator.schema.engines import as_engine

_WORDS = Words(
    xa="XA RECOVER CONVERT XID",
    roles="SELECT CONCAT(FROM_USER, '@', FROM_HOST), CONCAT(TO_USER, '@', TO_HOST) FROM mysql.role_edges",
    channels="SELECT CHANNEL_NAME FROM performance_schema.replication_connection_configuration WHERE HOST <> ''",
    read_only=("super_read_only", "read_only"),
    keep="PERSIST",
    kept="SELECT VARIABLE_NAME, VARIABLE_VALUE FROM performance_schema.persisted_variables"
    " WHERE VARIABLE_NAME IN ('read_only', 'super_read_only')",
    exempt="",
    sees=("PROCESS", "XA_RECOVER_ADMIN"),
    innodb_tables="INNODB_TABLES",
)


class MysqlFence(KeptFence[MysqlFenceSession]):
    """The fence of a MySQL database.

    Args:
        side: what is fenced.
        step: see ``KeptFence``.
    """

    words = _WORDS

    def __init__(self, side: Side, step: Callable[[str], None] = lambda name: None):
        database, name = notes_place(side)
        table = f"{quote(database)}.{quote(name)}"
        place = f"TABLE_SCHEMA = '{escape_string(database)}' AND TABLE_NAME = '{name}'"
        self._there = f"FROM information_schema.TABLES WHERE {place}"
        self._kept = Notes(
            table,
            f"SELECT COUNT(*) {self._there}",
            side.name(),
            side.migration,
            side.side,
            side.server.address,
            "UNIX_TIMESTAMP(NOW(6))",
        )
        super().__init__(
            side,
            {
                FenceKind.TRIGGERS: Triggers(side.name(), self._kept, self._counting(side)),
                FenceKind.ACCOUNT_LOCK: Accounts(self._kept),
                FenceKind.READ_ONLY: ReadOnly(self._kept),
            },
            step,
        )

    def _counting(self, side: Side) -> Counting:
        return CountedErrors()

    def _notes(self) -> Notes:
        return self._kept

    def _new_session(self) -> MysqlFenceSession:
        return MysqlFenceSession(self._side.server, self._side.migration, self.words)

    def _make_notes_table(self) -> None:
        server, migration = self._side.server, self._side.migration
        source = BinlogSource(server, migration, default_server_id(migration))
        upgrade_fence(
            as_engine(f"{server.kind}+pymysql://", creator=lambda: opened(source, REVISES, **ENGINE_OPTIONS)),
            self._side.side,
        )

    def _alone(self, session: MysqlFenceSession) -> bool:
        return bool(session.rows("SELECT GET_LOCK(%s, 0)", (self._side.name(),))[0][0])

    def _lock_holders(self, session: MysqlFenceSession) -> Sequence[OpenTransaction]:
        found = session.rows("SELECT IS_USED_LOCK(%s)", (self._side.name(),))
        return [
            OpenTransaction(str(id_), "", "", "raises or opens the same fence") for (id_,) in found if id_
        ]

    def _our_holders(self, session: MysqlFenceSession) -> Sequence[OpenTransaction]:
        # Only fences take locks of this name; the login tells ours.
        found = session.rows(
            "SELECT CAST(ID AS CHAR), USER, '', 'raises or opens the same fence' FROM information_schema.PROCESSLIST"
            " WHERE ID = IS_USED_LOCK(%s) AND USER ="
            " (SELECT USER FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID())",
            (self._side.name(),),
        )
        return [OpenTransaction(*row) for row in found]

    def _surveyed(self, session: MysqlFenceSession, tables: Sequence[TableId], our_login: str) -> Survey:
        return survey(session, tables, our_login)

    def _open_transactions(self, session: MysqlFenceSession, plan: FencePlan) -> Sequence[OpenTransaction]:
        waiting = prepared(session)
        if plan.kind is not FenceKind.ACCOUNT_LOCK:
            # A trigger is made when nobody has the table, and a read-only server refuses their COMMIT.
            return waiting
        return [*running(session, plan.login, self._kept.up_at(session), changed=True), *waiting]

    def _in_the_way(self, session: MysqlFenceSession, plan: FencePlan) -> Sequence[OpenTransaction]:
        return [one for one in on_tables(session, plan.tables) if one.login != plan.login]

    def _end(self, session: MysqlFenceSession, one: OpenTransaction) -> None:
        if not one.prepared:
            session.kill(int(one.id))
        elif not shared(session, (self._side.server.database, notes_place(self._side)[0])):
            session.change(f"XA ROLLBACK {one.id}")

    def _forgotten_by_hand(self) -> list[str]:
        with self._session() as session:
            forget = f"DELETE FROM {self._kept.table} WHERE name = {session.literal(self._kept.name)}"
            found = f"SET @fence = (SELECT IF(COUNT(*), {session.literal(forget)}, 'DO 0') {self._there})"
        return [found, "PREPARE fence FROM @fence", "EXECUTE fence", "DEALLOCATE PREPARE fence"]


def notes_place(side: Side) -> tuple[str, str]:
    """Database and name of the table with the notes: everything that belongs to a fence is made in that database."""
    database, _, name = fence_table(side.server.kind, side.side).rpartition(".")
    return database or side.server.database, name
