"""The preflight checks of both engines. Each check yields findings; nothing is changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

import pymysql

from migrator.adapters.sources.binlog.catalog import LogicalType
from migrator.adapters.sources.binlog.place.undecided import prepared_now
from migrator.adapters.sources.binlog.rows.charsets import is_supported
from migrator.adapters.sources.binlog.statements.foreign_keys import ForeignKey
from migrator.adapters.sources.binlog.transactions.cascade_guard import read_cascading
from migrator.adapters.sources.binlog.transactions.watermark import WATERMARK_TABLE, WRITE
from migrator.connections.mysql.settings import BinlogSource
from migrator.connections.mysql.sql import account, query, quote, quote_table, variable
from migrator.connections.mysql.unlogged import NONE_GENERATED, UNLOGGED
from migrator.model.finding import Finding
from migrator.model.table import OURS, OURS_ONLY, TableId

SHORT_RETENTION_S = 86_400
_USUAL_PACKET = 16 * 2**20
"""Bytes: both servers' default is this or more."""
_ACCESS_DENIED = 1227
_DENIED = frozenset({1044, 1142, 1143, _ACCESS_DENIED})
Setting = tuple[str, tuple[str, ...], str, str]
"""Variable, right values, what is wrong otherwise, the statement that mends it."""


def log_settings(formats: tuple[str, ...]) -> tuple[Setting, ...]:
    """The settings that a log of whole rows needs; ``formats``: what ``binlog_format`` may be."""
    return (
        (
            "log_bin",
            ("1",),
            "the binary log is off",
            "set log_bin in the server's configuration and restart it",
        ),
        ("binlog_format", formats, "rows must be logged as rows", "SET GLOBAL binlog_format = 'ROW'"),
        (
            "binlog_row_image",
            ("FULL",),
            "row images must be complete",
            "SET GLOBAL binlog_row_image = 'FULL'",
        ),
        (
            "binlog_row_metadata",
            ("FULL",),
            "the log must name columns",
            "SET GLOBAL binlog_row_metadata = 'FULL'",
        ),
    )


def version(found: str, where: str, product: str, least: tuple[int, ...]) -> Iterator[Finding]:
    """A server of the other product ("MySQL", "MariaDB"), or one that is too old; ``found`` as it says it
    itself."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[: len(least)])
    other = ("mariadb" in found.lower()) is not (product == "MariaDB")
    if other or numbers < least:
        needed = f"a {product} server of version {'.'.join(map(str, least))} or later is needed"
        kind = "mysql" if product == "MariaDB" else "mariadb"
        remedy = f'write kind = "{kind}" in [source]; for this kind {needed}' if other else needed
        yield Finding("version", where, f"the server is {found}", remedy)


def settings(connection: Any, where: str, wanted: Collection[Setting]) -> Iterator[Finding]:
    """Global variables that must have certain values."""
    for name, right, problem, remedy in wanted:
        value = variable(connection, name)
        if value.upper() not in right:
            yield Finding(
                name, where, f"{problem}: {name} = {value}", f"{remedy}, then reconnect all writers"
            )


def own_server_id(connection: Any, source: BinlogSource) -> Iterator[Finding]:
    """Yields a finding when our server_id is the server's: no replica may have its source's id."""
    if variable(connection, "server_id") == str(source.server_id):
        yield Finding(
            "server_id",
            f"{source.server.host}:{source.server.port}",
            f"the migration uses the server's own server_id {source.server_id}",
            "choose another",
        )


def retention(connection: Any, where: str) -> Iterator[Finding]:
    """Binlogs that go away soon."""
    keep_s = float(variable(connection, "binlog_expire_logs_seconds") or 0)
    if 0 < keep_s < SHORT_RETENTION_S:
        yield Finding(
            "expire_logs",
            where,
            f"binlogs are kept for {keep_s / 3600:.1f} h only: a longer pause of the migration needs a new dump",
            "SET GLOBAL binlog_expire_logs_seconds = 604800",
            fatal=False,
        )


def packets(connection: Any, where: str, database: str, names: Collection[str]) -> Iterator[Finding]:
    """A ``max_allowed_packet`` below what servers have by default, and columns whose values may not fit into it.

    A value's hexadecimal digits travel in one packet: twice its bytes.
    """
    packet = int(variable(connection, "max_allowed_packet"))
    if packet >= _USUAL_PACKET or not names:
        return
    rows = query(
        connection,
        "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME IN %s"
        " AND 2 * CHARACTER_OCTET_LENGTH > %s ORDER BY TABLE_NAME, ORDINAL_POSITION",
        (database, tuple(names), packet),
    )
    if rows:
        first = ", ".join(f"{table}.{column}" for table, column in rows[:5])
        yield Finding(
            "max_allowed_packet",
            where,
            f"it is {packet} bytes: a value of more than half of that can't be read, and would stop the run by name;"
            f" columns that may have one: {first}{', ...' if len(rows) > 5 else ''}",
            "SET GLOBAL max_allowed_packet = 1073741824",
            fatal=False,
        )


def filters(connection: Any, where: str, database: str) -> Iterator[Finding]:
    """Filters by which the server leaves whole databases out of its log."""
    try:
        ((version,),) = query(connection, "SELECT VERSION()")
        rows = query(connection, log_status(version))
    except pymysql.err.MySQLError as error:
        if error.args and error.args[0] == _ACCESS_DENIED:
            yield Finding(
                "log filters",
                where,
                "the user may not see whether the log leaves out databases (binlog_do_db, binlog_ignore_db)",
                "GRANT REPLICATION CLIENT ON *.* TO the user (MariaDB: BINLOG MONITOR)",
                fatal=False,
            )
            return
        raise
    only, without = ({name.strip() for name in str(text or "").split(",")} - {""} for text in rows[0][2:4])
    if (only and database not in only) or database in without:
        yield Finding(
            "log filters",
            where,
            f"the log leaves out {database}: binlog_do_db = {', '.join(sorted(only))},"
            f" binlog_ignore_db = {', '.join(sorted(without))}",
            "take the filter out of the server's configuration and restart it",
        )
    elif only or without:
        yield Finding(
            "log filters",
            where,
            "the log is filtered by database, statements by the session's default database: TRUNCATE and other DDL on"
            f" {database} from a session elsewhere may be missing",
            "take the filter out of the server's configuration and restart it; until then `migrator verify` finds it",
            fatal=False,
        )


def log_status(version: str) -> str:
    """The statement for the log's file and offset. MySQL spells it without the word master since 8.2."""
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    return (
        "SHOW BINARY LOG STATUS"
        if "mariadb" not in version.lower() and numbers >= (8, 2)
        else "SHOW MASTER STATUS"
    )


def undecided(connection: Any, where: str) -> Iterator[Finding]:
    """XA transactions that a migration that begins would wait for, or couldn't know of."""
    prepared = prepared_now(connection)
    if prepared is None:
        yield Finding(
            "xa",
            where,
            "the user may not see prepared XA transactions: one of before the start would stop the run at its commit",
            "GRANT XA_RECOVER_ADMIN ON *.* TO the user",
            fatal=False,
        )
    elif prepared:
        yield Finding(
            "xa",
            where,
            f"{len(prepared)} XA transactions are prepared: a migration that begins waits until they are decided",
            f"XA COMMIT or XA ROLLBACK {'; '.join(sorted(prepared)[:5])}",
            fatal=False,
        )


def grants(connection: Any) -> Iterator[Finding]:
    """The right to read the log."""
    ((user,),) = query(connection, "SELECT CURRENT_USER()")
    statements = " ; ".join(row[0] for row in query(connection, "SHOW GRANTS")).upper()
    # a role's rights show in SHOW GRANTS only while the role is active, and then they count
    on_server = " ; ".join(re.findall(r"GRANT ([^;]*?) ON \*\.\* ", statements))
    rights = {right.strip() for right in on_server.replace(";", ",").split(",")}
    if not rights & {"ALL PRIVILEGES", "REPLICATION SLAVE", "REPLICATION REPLICA"}:
        yield Finding(
            "grants",
            str(user),
            "the user may not read the binary log",
            f"GRANT REPLICATION SLAVE ON *.* TO {_account(user)}",
        )


def _account(user: str) -> str:
    name, _, host = user.rpartition("@")
    return f"{quote(name)}@{quote(host)}"


def watermark_table(connection: Any, source: BinlogSource) -> Iterator[Finding]:
    """The watermark row's table, where that placement is configured."""
    if source.placement != "watermark":
        return
    rows = query(
        connection,
        "SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
        (WATERMARK_TABLE.schema, WATERMARK_TABLE.name),
    )
    if not rows:
        yield Finding(
            "watermark",
            str(WATERMARK_TABLE),
            "the watermark table does not exist, or the user has no rights to it",
            "`migrator run` makes it where it may, so as an administrator:"
            f" GRANT ALL ON {quote(WATERMARK_TABLE.schema)}.* TO {account(source.server.user)}",
        )
        return
    try:  # the very statement, which isn't carried out
        query(connection, f"EXPLAIN {WRITE}", (source.migration, "", "low", "", "low"))
    except pymysql.err.MySQLError as error:
        if not error.args or error.args[0] not in _DENIED:
            raise
        yield Finding(
            "watermark",
            str(WATERMARK_TABLE),
            f"the user may not write the watermark: {error.args[1]}",
            f"GRANT SELECT, INSERT, UPDATE ON {quote_table(WATERMARK_TABLE)} TO {account(source.server.user)}",
        )


def kind_and_key(connection: Any, table: TableId, kind: str, engine: str | None) -> Iterator[Finding]:
    """A table that has rows of its own in InnoDB, and a key."""
    if kind == "VIEW":
        yield Finding("table", str(table), "it is a view", "map the tables that the view reads")
        return
    if (engine or "").upper() != "INNODB":
        yield Finding(
            "engine",
            str(table),
            f"its engine is {engine}: only InnoDB has snapshots that a witness can tell of",
            f"ALTER TABLE {quote_table(table)} ENGINE = InnoDB",
        )
    keys = query(
        connection,
        "SELECT s.INDEX_NAME FROM information_schema.STATISTICS s JOIN information_schema.COLUMNS c"
        " USING (TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME)"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND s.NON_UNIQUE = 0 GROUP BY s.INDEX_NAME"
        f" HAVING SUM(c.IS_NULLABLE = 'YES' OR {UNLOGGED}) = 0",
        (table.schema, table.name),
    )
    if not keys:
        yield Finding(
            "key",
            str(table),
            "it has neither a primary key nor a unique index over not-null columns",
            f"ALTER TABLE {quote_table(table)} ADD PRIMARY KEY (...)",
        )


def columns(
    connection: Any, table: TableId, one_byte: frozenset[str], logical_type: LogicalType
) -> Iterator[Finding]:
    """Types and character sets that can't be read from the log, and generated columns that it lacks."""
    rows = query(
        connection,
        f"SELECT COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, CHARACTER_SET_NAME, {UNLOGGED}, {NONE_GENERATED}"
        " FROM information_schema.COLUMNS"
        " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s ORDER BY ORDINAL_POSITION",
        (table.schema, table.name),
    )
    for name, data_type, column_type, charset, unlogged, none in rows:
        subject = f"{table}.{name}"
        if name.startswith(OURS):
            yield Finding("column name", subject, OURS_ONLY, "rename the column")
        if logical_type(data_type.lower(), column_type.lower()) is None:
            yield Finding(
                "column type",
                subject,
                f"the type {column_type} can't be read from the log",
                "change the column's type, or leave the table out of the migration",
            )
        elif charset is not None and not is_supported(charset, one_byte):
            yield Finding(
                "character set",
                subject,
                f"text in {charset} can't be read from the log",
                f"ALTER TABLE {quote_table(table)} MODIFY {quote(name)} {column_type} CHARACTER SET utf8mb4",
            )
        elif unlogged:
            yield _unlogged(subject, none)


def _unlogged(subject: str, none_generated: bool) -> Finding:
    if none_generated:
        problem = "a generated column is not captured: this server logs updates without it"
        return Finding("generated column", subject, problem, "compute it in the mapping", fatal=False)
    remedy = "compute it in the mapping, or make it STORED"
    return Finding("virtual column", subject, "a virtual column is not captured", remedy, fatal=False)


def cascades(connection: Any, database: str, names: Collection[str]) -> Iterator[Finding]:
    """Foreign keys by which the server changes captured rows on its own, where it doesn't log that.

    They are in the way only where they can't be watched: see ``foreign_keys``.
    """
    captured = [TableId(database, name) for name in names]
    found = read_cascading(connection, database)
    watched = found.cascades(captured)
    reasons = {why for watch in watched.watched.values() for why in (watch.delete, *watch.update.values())}
    only_updates = []
    for key in found.keys:
        if not key.acts() or key.child not in watched.concerned:
            continue
        subject = f"{key.child} constraint {key.name}"
        if not _readable(connection, key.parent) or key.parent.schema != database:
            yield Finding(
                "foreign key cascade",
                subject,
                f"{key.rules()} from {key.parent}: the server doesn't log what it changes there, and rows of"
                f" {key.parent} can't be watched: it is in another database, or the user may not SELECT from it",
                f"GRANT SELECT ON {quote(database)}.* TO the user; across databases: make the foreign key RESTRICT",
            )
        elif any(why.startswith(subject) for why in reasons):
            if key.trigger() and any(watch.delete.startswith(subject) for watch in watched.watched.values()):
                yield _deletes_cascade(key, subject)
            else:
                only_updates.append(f"{subject} from {key.parent}")
    if only_updates:
        yield Finding(
            "foreign key cascade",
            ", ".join(only_updates),
            "ON UPDATE: the server doesn't log the rows that it changes: the run stops when such a key is updated",
            "don't update keys that are referred to while the migration runs",
            fatal=False,
        )


def _deletes_cascade(key: ForeignKey, subject: str) -> Finding:
    name = quote(f"{key.parent.name}_{key.name}"[:64])
    return Finding(
        "foreign key cascade",
        subject,
        f"{key.rules()} from {key.parent}: the server doesn't log the rows of {key.child.name} that it changes: the"
        f" run stops when a row of {key.parent.name} is deleted",
        f"let a trigger do it, whose changes are logged: CREATE TRIGGER {name} BEFORE DELETE ON"
        f" {quote_table(key.parent)} FOR EACH ROW {key.trigger()}; and GRANT TRIGGER ON"
        f" {quote(key.parent.schema)}.* TO the user, who must see it",
        fatal=False,
    )


def _readable(connection: Any, table: TableId) -> bool:
    return bool(
        query(
            connection,
            "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (table.schema, table.name),
        )
    )


def triggers_elsewhere(connection: Any, source: BinlogSource) -> Iterator[Finding]:
    """Triggers of other databases that name ours: a statement-format session there would change our rows unseen."""
    rows = query(
        connection,
        "SELECT TRIGGER_SCHEMA, TRIGGER_NAME FROM information_schema.TRIGGERS"
        " WHERE TRIGGER_SCHEMA <> %s AND LOCATE(%s, ACTION_STATEMENT) > 0",
        (source.server.database, source.server.database),
    )
    for schema, name in rows:
        yield Finding(
            "trigger",
            f"{schema}.{name}",
            f"a trigger of another database names {source.server.database}",
            "make sure that no session there writes with binlog_format = STATEMENT",
            fatal=False,
        )
