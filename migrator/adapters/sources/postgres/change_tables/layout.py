"""Change tables in the manner of SQL Server's CDC, and the SQL that makes them.

One change table per captured table, ``<schema>_<table>_CT``, in the schema ``migrator_cdc``. SQL Server's
names, and what they hold here:

=================  ================================================================================================
``__$start_lsn``   what the change's transaction is called: its 64-bit transaction id (a trigger knows no
commit LSN)
``__$seqval``      a sequence number taken after the row was locked; both rows of an update have the same
``__$operation``   1 delete, 2 insert, 3 update (row before), 4 update (row after), 5 the table was truncated
``__$command_id``  a sequence number taken when the statement began
=================  ================================================================================================

Sources: sys.sp_cdc_enable_table and cdc.<capture_instance>_CT in the documentation of SQL Server.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from migrator.adapters.sources.postgres.reflection import ReflectedTable
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import SourceError
from migrator.model.table import TableId

SCHEMA = "migrator_cdc"
TRANSACTION, PLACE, OPERATION, COMMAND = "__$start_lsn", "__$seqval", "__$operation", "__$command_id"
DELETE, INSERT, BEFORE, AFTER, TRUNCATE = 1, 2, 3, 4, 5
METADATA = ((TRANSACTION, "xid8"), (PLACE, "bigint"), (OPERATION, "smallint"), (COMMAND, "bigint"))
SEQUENCE = f"{SCHEMA}.seqval"
FORGET = f"{SCHEMA}.forget(xid8, integer)"

CAPTURE_TRIGGER = "!migrator_capture"
"""Triggers of one event fire in the order of their names: before any other may change rows in its turn."""
COMMAND_TRIGGER = "~migrator_command"
"""The name of a trigger that fires after any other: what others change lies before the statement."""
TRUNCATE_TRIGGER = "~migrator_truncate"

_MOST_NAME_BYTES = 55
_COMMAND_SETTING = "migrator_cdc.command_"
_FUNCTION = "LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp"


def change_table(table: TableId) -> TableId:
    """The change table of a captured table. A long name is cut and gets a digest."""
    name = f"{table.schema}_{table.name}"
    if len(name.encode()) > _MOST_NAME_BYTES:
        digest = hashlib.sha256(repr((table.schema, table.name)).encode()).hexdigest()[:8]
        name = name.encode()[: _MOST_NAME_BYTES - 9].decode(errors="ignore") + f"_{digest}"
    return TableId(SCHEMA, f"{name}_CT")


def function(table: TableId) -> TableId:
    """The trigger function of a captured table."""
    return TableId(SCHEMA, change_table(table).name.removesuffix("_CT") + "_fn")


def identifier(name: str) -> str:
    """A quoted name."""
    return '"' + name.replace('"', '""') + '"'


def columns(table: ReflectedTable) -> list[tuple[str, str]]:
    """Names and types of the captured columns; a domain's own type, because its checks are not the change
    table's."""
    return [(reflected.column.name, reflected.base_declared) for reflected in table.columns]


def function_body(table: ReflectedTable) -> str:
    """The body of the trigger function. Preflight compares it letter by letter with what the server has."""
    names = [identifier(name) for name, _ in columns(table)]
    listed = ", ".join([*(identifier(name) for name, _ in METADATA), *names])

    def values(operation: int, row: str) -> str:
        images = [f"{row}.{name}" for name in names]
        return f"(pg_current_xact_id(), place, {operation}, command, {', '.join(images)})"

    into = f"INSERT INTO {quoted(change_table(table.schema.id))} ({listed}) VALUES"
    return f"""
DECLARE
    place bigint := nextval('{SEQUENCE}');
    began text := current_setting('{_COMMAND_SETTING}' || pg_trigger_depth(), true);
    command bigint := coalesce(nullif(began, '')::bigint, place);
BEGIN
    IF TG_OP = 'INSERT' THEN
        {into} {values(INSERT, "NEW")};
    ELSIF TG_OP = 'UPDATE' THEN
        {into} {values(BEFORE, "OLD")}, {values(AFTER, "NEW")};
    ELSIF TG_OP = 'DELETE' THEN
        {into} {values(DELETE, "OLD")};
    ELSE
        INSERT INTO {quoted(change_table(table.schema.id))} ({", ".join(identifier(name) for name, _ in METADATA)})
        VALUES (pg_current_xact_id(), place, {TRUNCATE}, command);
    END IF;
    RETURN NULL;
END
"""


COMMAND_BODY = f"""
BEGIN
    PERFORM set_config('{_COMMAND_SETTING}' || pg_trigger_depth(), nextval('{SEQUENCE}')::text, true);
    RETURN NULL;
END
"""

_FORGET_BODY = f"""
DECLARE
    one record;
    deleted bigint;
    total bigint := 0;
BEGIN
    UPDATE {SCHEMA}.forgotten SET below = greatest(forgotten.below, forget.below);
    FOR one IN SELECT c.relname FROM pg_class c WHERE c.relnamespace = '{SCHEMA}'::regnamespace
            AND c.relkind = 'r' AND c.relname LIKE '%\\_CT' LOOP
        EXECUTE format('DELETE FROM {SCHEMA}.%1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM {SCHEMA}.%1$I'
            ' WHERE "{TRANSACTION}" < $1 ORDER BY "{TRANSACTION}" LIMIT $2))', one.relname) USING
            forget.below, most;
        GET DIAGNOSTICS deleted = ROW_COUNT;
        total := total + deleted;
    END LOOP;
    RETURN total;
END
"""


def script(
    tables: Sequence[ReflectedTable], role: str, forget: bool, bodies: Mapping[str, str] | None = None
) -> str:
    """The SQL that an owner of the tables runs once. Running it again adds what is missing.

    What is as it must be isn't made again: it would then look as if it had been off for a moment.

    Args:
        tables: the captured tables that lack something.
        role: who will read.
        forget: whether the role may delete what was read.
        bodies: of the functions that there are.

    Raises ``SourceError`` if two tables would share a change table.
    """
    check_names([table.schema.id for table in tables])
    common = [_COMMON.strip()]
    common += [statement for name, body, statement in _FUNCTIONS if (bodies or {}).get(name) != body]
    parts = ["\n".join(common), *(_table_script(table) for table in tables), _grants(role, forget)]
    return "BEGIN;\nSET LOCAL lock_timeout = '10s';\n\n" + "\n\n".join(parts) + "\n\nCOMMIT;\n"


FORMAT = 1
"""Number of the present layout of change tables and their functions; without a comment they have the first."""
COMMENT = "migrator change tables, format "
_COMMON = f"""
CREATE SCHEMA IF NOT EXISTS {SCHEMA};
COMMENT ON SCHEMA {SCHEMA} IS '{COMMENT}{FORMAT}';
CREATE SEQUENCE IF NOT EXISTS {SEQUENCE} CACHE 1;
CREATE TABLE IF NOT EXISTS {SCHEMA}.forgotten (one boolean PRIMARY KEY DEFAULT true CHECK (one), below xid8
NOT NULL); INSERT INTO {SCHEMA}.forgotten (below) VALUES ('0') ON CONFLICT DO NOTHING;
"""
_FUNCTIONS = (
    (
        "command",
        COMMAND_BODY,
        f"CREATE OR REPLACE FUNCTION {SCHEMA}.command() RETURNS trigger {_FUNCTION} AS $f${COMMAND_BODY}$f$;",
    ),
    (
        "forget",
        _FORGET_BODY,
        f"CREATE OR REPLACE FUNCTION {SCHEMA}.forget(below xid8, most integer) RETURNS bigint\n"
        f"{_FUNCTION} AS $f${_FORGET_BODY}$f$;\nREVOKE ALL ON FUNCTION {FORGET} FROM PUBLIC;",
    ),
)
"""Name, body, and the statements that make it, of functions that all tables share."""


def _table_script(table: ReflectedTable) -> str:
    own, changes = quoted(table.schema.id), quoted(change_table(table.schema.id))
    metadata = [f"    {identifier(name)} {kind} NOT NULL," for name, kind in METADATA]
    captured = [f"    {identifier(name)} {kind}," for name, kind in columns(table)]
    body = "\n".join([*metadata, *captured])
    run = f"EXECUTE FUNCTION {quoted(function(table.schema.id))}()"
    lines = [
        f"CREATE TABLE IF NOT EXISTS {changes} (",
        f"{body}\n    PRIMARY KEY ({identifier(PLACE)}, {identifier(OPERATION)})\n);",
        f"CREATE INDEX IF NOT EXISTS {identifier(change_table(table.schema.id).name + '_by')} ON {changes}"
        f" ({identifier(TRANSACTION)}, {identifier(PLACE)});",
        f"CREATE OR REPLACE FUNCTION {quoted(function(table.schema.id))}() RETURNS trigger",
        f"{_FUNCTION} AS $f${function_body(table)}$f$;",
        f"CREATE OR REPLACE TRIGGER {identifier(COMMAND_TRIGGER)} BEFORE INSERT OR UPDATE OR DELETE ON {own}",
        f"    FOR EACH STATEMENT EXECUTE FUNCTION {SCHEMA}.command();",
        f"CREATE OR REPLACE TRIGGER {identifier(CAPTURE_TRIGGER)} AFTER INSERT OR UPDATE OR DELETE ON {own}",
        f"    FOR EACH ROW {run};",
        f"CREATE OR REPLACE TRIGGER {identifier(TRUNCATE_TRIGGER)} AFTER TRUNCATE ON {own}",
        f"    FOR EACH STATEMENT {run};",
        *(
            f"ALTER TABLE {own} ENABLE ALWAYS TRIGGER {identifier(trigger)};"
            for trigger in (COMMAND_TRIGGER, CAPTURE_TRIGGER, TRUNCATE_TRIGGER)
        ),
    ]
    return "\n".join(lines)


def _grants(role: str, forget: bool) -> str:
    to = identifier(role)
    lines = [
        f"GRANT USAGE ON SCHEMA {SCHEMA} TO {to};",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {SCHEMA} TO {to};",
    ]
    return "\n".join([*lines, f"GRANT EXECUTE ON FUNCTION {FORGET} TO {to};"] if forget else lines)


def check_names(tables: Sequence[TableId]) -> None:
    """Raises ``SourceError`` if two tables would share a change table."""
    taken: dict[TableId, TableId] = {}
    for table in tables:
        other = taken.setdefault(change_table(table), table)
        if other != table:
            raise SourceError(
                f"{other} and {table} would share the change table {change_table(table)}",
                remedy="rename one of them, or migrate them apart",
            )
