"""Transactions that are open on MySQL or MariaDB: sessions', and those of XA that wait for their outcome."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.fences.mysql.rights import must_see
from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.errors import CutoverError
from migrator.model.cutover.fence import OpenTransaction
from migrator.model.table import TableId

_RUNNING = (
    "SELECT CAST(p.ID AS CHAR), p.USER, CAST(t.trx_started AS CHAR),"
    " LEFT(COALESCE(t.trx_query, p.INFO, p.COMMAND), 200)"
    " FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id"
    " WHERE p.ID <> CONNECTION_ID()"
)
_BEGAN = "UNIX_TIMESTAMP(CONVERT_TZ(t.trx_started, 'SYSTEM', @@session.time_zone))"
"""Seconds since 1970. The server writes it in its machine's time, whatever zone the session has."""
_OF_TABLES = (
    "SELECT DISTINCT CAST(p.ID AS CHAR), p.USER, COALESCE(CAST(x.trx_started AS CHAR), ''),"
    " LEFT(COALESCE(p.INFO, p.COMMAND), 200)"
    " FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID"
    " JOIN information_schema.PROCESSLIST p ON p.ID = t.PROCESSLIST_ID"
    " LEFT JOIN information_schema.INNODB_TRX x ON x.trx_mysql_thread_id = p.ID WHERE m.OBJECT_TYPE = 'TABLE'"
    " AND m.LOCK_STATUS = 'GRANTED' AND p.ID <> CONNECTION_ID() AND (m.OBJECT_SCHEMA, m.OBJECT_NAME) IN ({places})"
)
_UNDECIDED = "an XA transaction, which its coordinator decides, or XA COMMIT, XA ROLLBACK"
_METADATA = (
    "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'performance_schema'"
    " AND TABLE_NAME = 'metadata_locks' AND @@performance_schema = 1"
)


def holding(session: MysqlFenceSession, tables: Sequence[TableId]) -> list[OpenTransaction]:
    """The transactions that hold these tables, as far as the server tells; else whoever is in a transaction."""
    return on_tables(session, tables) or [*running(session), *prepared(session)]


def on_tables(session: MysqlFenceSession, tables: Sequence[TableId]) -> list[OpenTransaction]:
    """The transactions of sessions that hold these tables; none where the server doesn't tell, as without
    performance_schema."""
    if not session.rows(_METADATA)[0][0]:
        return []
    places = ", ".join(["(%s, %s)"] * len(tables))
    names = [name for table in tables for name in (table.schema, table.name)]
    return [OpenTransaction(*row) for row in session.rows(_OF_TABLES.format(places=places), names)]


def running(
    session: MysqlFenceSession, but: str = "", until: float | None = None, changed: bool = False
) -> list[OpenTransaction]:
    """Transactions of sessions.

    Args:
        session: ours.
        but: a login whose transactions don't count.
        until: those that began later don't count, seconds since 1970; None where all count.
        changed: whether only those count that have changed rows.

    Raises ``CutoverError`` where the server hides others' from us: none are then no proof.
    """
    must_see(session)
    sql, values = _RUNNING, list[object]()
    if but:
        sql, values = sql + " AND p.USER <> %s", [*values, but]
    if until is not None:
        sql, values = f"{sql} AND {_BEGAN} <= %s", [*values, until]
    if changed:
        sql += " AND t.trx_rows_modified > 0"
    return [OpenTransaction(*row) for row in session.rows(f"{sql} ORDER BY 3, 1", values)]


def prepared(session: MysqlFenceSession) -> list[OpenTransaction]:
    """Transactions of XA that wait for their outcome: whose, and on which tables, the server doesn't tell."""
    return [
        OpenTransaction(_xid(int(format_id), int(length), str(data)), "", "", _UNDECIDED, True)
        for format_id, length, _, data in session.rows(session.words.xa)
    ]


def shared(session: MysqlFenceSession, ours: Sequence[str]) -> bool:
    """Tells whether a prepared transaction may be another application's: it has promised its coordinator to commit.

    So it is where tables of databases beside ``ours`` are there, and where the server doesn't tell.
    """
    places = ", ".join(["%s"] * len(ours))
    try:
        [(every,)] = session.rows(
            "SELECT COUNT(DISTINCT SUBSTRING_INDEX(NAME, '/', 1))"
            f" FROM information_schema.{session.words.innodb_tables}"
            " WHERE NAME LIKE '%/%' AND SUBSTRING_INDEX(NAME, '/', 1) NOT IN ('mysql', 'sys')"
        )
        # Counted, because InnoDB writes names as files have them, and no function of the server does.
        [(known,)] = session.rows(
            "SELECT COUNT(DISTINCT TABLE_SCHEMA) FROM information_schema.TABLES WHERE ENGINE = 'InnoDB'"
            f" AND TABLE_SCHEMA IN ({places})",
            ours,
        )
    except CutoverError:
        return True
    return int(every) > int(known)


def _xid(format_id: int, length: int, data: str) -> str:
    if not data.startswith("0x"):  # as XA COMMIT takes it already
        return data
    text = data.removeprefix("0x")
    return f"X'{text[: 2 * length]}',X'{text[2 * length :]}',{format_id}"
