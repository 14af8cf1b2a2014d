"""Everything on the source that stands in the way, all at once, each finding with the statement that mends it.

Reads only. The server's findings come first, then each table's (``preflight_tables``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from migrator.adapters.sources.postgres.log.relations import WATERMARK_ID
from migrator.adapters.sources.postgres.log.slot import SLOT_STATE, SlotState
from migrator.adapters.sources.postgres.open_transactions import open_transactions
from migrator.adapters.sources.postgres.preflight_tables import table_findings
from migrator.adapters.sources.postgres.preflight_values import text_column_findings
from migrator.adapters.sources.postgres.publication import is_right, mending_statement
from migrator.adapters.sources.postgres.reflection import Query, reflect
from migrator.adapters.sources.postgres.settings import MESSAGE, WATERMARK, WITNESS, PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of
from migrator.connections.postgres.collations import stale_orders
from migrator.model.finding import Finding
from migrator.model.table import TableId

_OLDEST_VERSION = 150_000
_OLDEST_STANDBY = 160_000

SETTINGS = """
SELECT name, setting FROM pg_catalog.pg_settings WHERE name IN (
  'server_version_num', 'server_version', 'wal_level', 'max_replication_slots', 'max_wal_senders',
  'server_encoding', 'max_slot_wal_keep_size', 'idle_replication_slot_timeout', 'wal_sender_timeout',
  'synchronous_standby_names', 'hot_standby_feedback')
"""
_FACTS = """
SELECT pg_catalog.pg_is_in_recovery(),
       (SELECT count(*) FROM pg_catalog.pg_replication_slots),
       (SELECT count(*) FROM pg_catalog.pg_stat_replication),
       r.rolreplication OR r.rolsuper,
       r.rolsuper,
       pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE'),
       pg_catalog.current_database()::text,
       r.rolname::text
FROM pg_catalog.pg_roles r WHERE r.rolname = current_user
"""
_FORBIDDEN_MESSAGES = """
SELECT pg_catalog.format('%I(%s)', p.proname, pg_catalog.pg_get_function_identity_arguments(p.oid))
FROM pg_catalog.pg_proc p
WHERE p.proname = 'pg_logical_emit_message' AND p.proargtypes[2] = 'pg_catalog.text'::pg_catalog.regtype
  AND NOT pg_catalog.has_function_privilege(p.oid, 'EXECUTE')
"""


def findings(source: PostgresSource, query: Query, tables: Sequence[TableId]) -> list[Finding]:
    """All findings for a source and the tables to capture."""
    settings: dict[str, str] = dict(query(SETTINGS, []))
    recovery, slots, senders, replication, superuser, may_create, database, role = query(_FACTS, [])[0]
    found = list(version(settings))
    if recovery:
        found += _standby(source, settings)
    slot_rows = query(f"{SLOT_STATE} WHERE slot_name = $1", [source.slot])
    slot = SlotState.of(*slot_rows[0]) if slot_rows else None
    found += _log(source, settings, slots, senders, slot)
    if not replication:
        problem = f"role {role!r} may not read the log"
        found.append(Finding("replication_role", role, problem, f"ALTER ROLE {name_of(role)} REPLICATION;"))
    found += _warnings(source, settings)
    if slot is None and (waited_for := open_transactions(query, prepared_only=True)):
        found.append(
            Finding(
                "prepared_transactions",
                "server",
                f"the first run waits until these end, before it makes its slot: {waited_for}",
                "COMMIT PREPARED '...'; or ROLLBACK PREPARED '...';",
                fatal=False,
            )
        )
    for table in tables:
        found += table_findings(source, query, table, role)
    found += text_column_findings(source, query, tables)
    found += stale_orders(query, ("$1", "$2"), tables)
    if recovery:
        found += _standby_publication(source, query, tables)
    else:
        found += _publication(source, query, tables, bool(superuser), bool(may_create), database, role)
    return found


def standby(source: PostgresSource) -> Finding:
    """The finding about a server that isn't a primary."""
    return Finding(
        "standby",
        source.server.address,
        "this server is a standby: its snapshots don't say which transactions a chunk contains",
        "point source.host at the primary",
    )


def version(settings: dict[str, str]) -> Iterator[Finding]:
    """Findings about the server's version and the database's encoding, from rows of ``SETTINGS``."""
    if int(settings["server_version_num"]) < _OLDEST_VERSION:
        problem = f"the source is PostgreSQL {settings['server_version']}"
        yield Finding("server_version", "server", problem, "upgrade the source to PostgreSQL 15 or later")
    if settings["server_encoding"] == "SQL_ASCII":
        yield Finding(
            "server_encoding",
            "database",
            "the database's encoding is SQL_ASCII: its text has no defined characters",
            "dump and restore the source into a database with ENCODING 'UTF8'",
        )


def _standby(source: PostgresSource, settings: dict[str, str]) -> Iterator[Finding]:
    if int(settings["server_version_num"]) < _OLDEST_STANDBY:
        problem = f"this server is a standby with PostgreSQL {settings['server_version']}, which can't decode its log"
        yield Finding(
            "standby",
            source.server.address,
            problem,
            "point source.host at the primary, or upgrade to PostgreSQL 16",
        )
    if settings["hot_standby_feedback"] != "on":
        yield Finding(
            "hot_standby_feedback",
            "server",
            "hot_standby_feedback is off: VACUUM on the primary would make the replication slot here invalid",
            "on the standby: ALTER SYSTEM SET hot_standby_feedback = on; SELECT pg_reload_conf();",
        )
    if source.placement != WITNESS:
        problem = f"placement {source.placement!r} writes, and this server is a standby"
        yield Finding("placement", source.server.address, problem, "placement = 'witness'")


def _log(
    source: PostgresSource, settings: dict[str, str], slots: int, senders: int, slot: SlotState | None
) -> Iterator[Finding]:
    if settings["wal_level"] != "logical":
        problem = f"wal_level is {settings['wal_level']!r}: the log has no row changes"
        yield Finding(
            "wal_level", "server", problem, "ALTER SYSTEM SET wal_level = 'logical'; then restart it"
        )
    for name, used in (("max_replication_slots", slots), ("max_wal_senders", senders)):
        needed = used if slot is not None and name == "max_replication_slots" else used + 1
        if needed > int(settings[name]):
            problem = f"{name} is {settings[name]}, and {used} are in use"
            remedy = f"ALTER SYSTEM SET {name} = {used + 5}; then restart it"
            yield Finding(name, "server", problem, remedy)
    if slot is not None and slot.lost:
        yield Finding(
            "slot",
            source.slot,
            f"the replication slot no longer holds the log: {slot.lost}",
            f"SELECT pg_drop_replication_slot('{source.slot}'); then start the migration anew"
            " (docs/how-to/start-anew.md)",
        )
    elif slot is not None and slot.unfit:
        yield Finding(
            "slot",
            source.slot,
            f"a replication slot of this name can't be read: {slot.unfit}",
            f"SELECT pg_drop_replication_slot('{source.slot}'); the first run makes its own",
        )


def _warnings(source: PostgresSource, settings: dict[str, str]) -> Iterator[Finding]:
    keep = settings.get("max_slot_wal_keep_size", "-1")
    if keep != "-1":
        yield Finding(
            "max_slot_wal_keep_size",
            "server",
            f"the server drops the log of a slot that is more than {keep} MB behind; then the dump starts again",
            "ALTER SYSTEM SET max_slot_wal_keep_size = -1; SELECT pg_reload_conf(); and watch the disk",
            fatal=False,
        )
    idle = settings.get("idle_replication_slot_timeout", "0")
    if idle != "0":
        yield Finding(
            "idle_replication_slot_timeout",
            "server",
            f"the server invalidates a slot that is not used for {idle} (its unit: seconds)",
            "ALTER SYSTEM SET idle_replication_slot_timeout = 0; SELECT pg_reload_conf();",
            fatal=False,
        )
    names = settings["synchronous_standby_names"]
    if "*" in names or f"{source.slot}_log" in names:
        yield Finding(
            "synchronous_standby_names",
            "server",
            f"synchronous_standby_names is {names!r}: commits of the application may wait for this tool",
            "name the real standbys instead of '*'",
            fatal=False,
        )


def _standby_publication(
    source: PostgresSource, query: Query, tables: Sequence[TableId]
) -> Iterator[Finding]:
    """Nobody can make it here, and it must be there before the slot is."""
    present = [table for table in tables if reflect(query, table) is not None]
    if present and not is_right(query, source.slot, tables):
        yield Finding(
            "publication",
            source.slot,
            "the publication isn't there with these tables, and a standby can't make it",
            f"on the primary, as the owner of the tables: {mending_statement(query, source.slot, tables)}",
        )


def _publication(
    source: PostgresSource,
    query: Query,
    tables: Sequence[TableId],
    superuser: bool,
    may_create: bool,
    database: str,
    role: str,
) -> Iterator[Finding]:
    """Lists what ``prepare`` could not do by itself."""
    captured = list(tables)
    if source.placement == WATERMARK:
        captured.append(WATERMARK_ID)
        yield from _watermark(query, role)
    for (function,) in query(_FORBIDDEN_MESSAGES, []) if source.placement == MESSAGE else ():
        problem = f"role {role!r} may not write logical messages"
        yield Finding(
            "message", role, problem, f"GRANT EXECUTE ON FUNCTION pg_catalog.{function} TO {name_of(role)};"
        )
    present = [table for table in captured if reflect(query, table) is not None]
    if superuser or is_right(query, source.slot, captured) or not present:
        return
    foreign = [table for table in present if not _owns(query, table)]
    if foreign or not may_create:
        lacks = f"does not own {', '.join(map(str, foreign))}" if foreign else f"may not CREATE in {database}"
        yield Finding(
            "publication",
            source.slot,
            f"the publication isn't there with these tables, and role {role!r} {lacks}",
            f"as the owner of the tables: {mending_statement(query, source.slot, captured)}",
        )


_MADE_BY_RUN = "`migrator run` makes it where it may, so as the database's owner: "


def _watermark(query: Query, role: str) -> Iterator[Finding]:
    name = str(WATERMARK_ID)
    if reflect(query, WATERMARK_ID) is None:
        yield Finding(
            "watermark",
            name,
            "the watermark table does not exist",
            f"{_MADE_BY_RUN}CREATE SCHEMA migrator AUTHORIZATION {name_of(role)};",
        )
        return
    allowed: list[tuple[Any, ...]] = query(
        "SELECT pg_catalog.has_table_privilege($1::text, 'INSERT') "
        "AND pg_catalog.has_table_privilege($1::text, 'UPDATE')",
        [name],
    )
    if not allowed[0][0]:
        remedy = f"GRANT SELECT, INSERT, UPDATE ON {name} TO {name_of(role)};"
        yield Finding("watermark", name, f"role {role!r} may not write the watermark", remedy)


def _owns(query: Query, table: TableId) -> bool:
    rows = query(
        "SELECT pg_catalog.pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c "
        "JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2",
        [table.schema, table.name],
    )
    return bool(rows and rows[0][0])
