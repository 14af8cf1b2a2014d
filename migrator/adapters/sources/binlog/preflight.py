"""The preflight of both engines: the server, the login's rights, the tables, and what may change them unseen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from migrator.adapters.sources.binlog import preflight_checks as checks
from migrator.adapters.sources.binlog.catalog import LogicalType
from migrator.adapters.sources.binlog.rows.charsets import one_byte_charsets
from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.connections.mysql.sql import query, quote
from migrator.model.finding import Finding
from migrator.model.table import TableId

ServerChecks = Callable[[Any, BinlogSource], Iterator[Finding]]


def found(
    source: BinlogSource,
    names: Sequence[str],
    server: ServerChecks,
    logical_type: LogicalType,
    logs_cascades: Callable[[Any], bool],
) -> list[Finding]:
    """All findings for the named tables. Raises ``ConnectionFailed`` when the server can't be asked.

    ``server``, ``logical_type`` and ``logs_cascades`` are the engine's: what its server must be, its types, and
    whether its log has the rows that foreign keys cascade to.
    """
    connection = connect(source)
    with named_errors(source, "preflight can't ask the source"), connection:
        findings = [
            *server(connection, source),
            *checks.grants(connection),
            *checks.watermark_table(connection, source),
        ]
        findings += _tables(connection, source, names, logical_type)
        if not logs_cascades(connection):
            findings += checks.cascades(connection, source.server.database, names)
        findings += checks.triggers_elsewhere(connection, source)
        findings += checks.packets(connection, source.server.address, source.server.database, names)
    return findings


def _tables(
    connection: Any, source: BinlogSource, names: Sequence[str], logical_type: LogicalType
) -> Iterator[Finding]:
    one_byte = one_byte_charsets(connection)
    for name in names:
        table = TableId(source.server.database, name)
        rows = query(
            connection,
            "SELECT TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (table.schema, table.name),
        )
        if not rows:
            yield Finding(
                "table",
                str(table),
                "the table does not exist, or the user may not SELECT from it",
                f"check the mapping's parameter names; GRANT SELECT ON {quote(table.schema)}.* TO the user",
            )
            continue
        if rows[0][0] == "SYSTEM VERSIONED":
            yield Finding(
                "table",
                str(table),
                "it is system-versioned: history rows are logged as rows",
                "leave the table out",
            )
        yield from checks.kind_and_key(connection, table, *rows[0])
        yield from checks.columns(connection, table, one_byte, logical_type)
