"""Facts about what captures a table's changes on the server: whether all of it is there, and whether it ever was not.

A trigger that was disabled for a moment, or replaced, leaves no trace in what it captures. But it leaves one in the
catalog: every change of a catalog row gives it a new ``xmin``. So a digest over the rows concerned, kept in the
position, tells whether capture went on undisturbed since then, over restarts as well.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from migrator.adapters.sources.postgres.change_tables.layout import (
    CAPTURE_TRIGGER,
    COMMAND_BODY,
    COMMAND_TRIGGER,
    METADATA,
    SCHEMA,
    SEQUENCE,
    TRUNCATE_TRIGGER,
    change_table,
    columns,
    function,
    function_body,
    identifier,
)
from migrator.adapters.sources.postgres.reflection import Query, ReflectedTable, reflect
from migrator.adapters.sources.postgres.settings import Choices, chosen_otherwise
from migrator.adapters.sources.postgres.whole_images import quoted
from migrator.errors import GapError, MigratorError, SchemaError
from migrator.model.finding import Finding
from migrator.model.table import TableId, TableSchema

REMEDY = "as the owner of the tables, run what `migrator changetables` prints"
_ANEW = "start the migration anew (docs/how-to/start-anew.md)"

_WATCHED = """
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[])
     AS w(table_schema, table_name, changes_schema, changes_name, function_name)
LEFT JOIN LATERAL (SELECT c.oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = w.table_schema AND c.relname = w.table_name) o ON true
LEFT JOIN LATERAL (SELECT c.oid, c.relpersistence FROM pg_catalog.pg_class c
                   JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
                   WHERE n.nspname = w.changes_schema AND c.relname = w.changes_name) h ON true
"""
# What may bring changes of another table, or keep or reorder those of this one: as a rule there is nothing of it.
_STRANGE = """
SELECT 'other' AS kind, t.tgname::text AS name, t.tgrelid::pg_catalog.regclass::text AS on_table
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname = w.changes_schema AND p.proname = w.function_name AND t.tgrelid IS DISTINCT FROM o.oid
UNION ALL
SELECT 'parent', i.inhparent::pg_catalog.regclass::text, '' FROM pg_catalog.pg_inherits i WHERE i.inhrelid = o.oid
UNION ALL
SELECT 'trigger', t.tgname::text, '' FROM pg_catalog.pg_trigger t WHERE t.tgrelid = h.oid
UNION ALL
SELECT 'rule', r.rulename::text, '' FROM pg_catalog.pg_rewrite r WHERE r.ev_class = h.oid
UNION ALL
SELECT 'unlogged', '', '' WHERE h.relpersistence <> 'p'
"""
_STRANGE_HERE = (
    f"SELECT s.kind, s.name, s.on_table {_WATCHED} CROSS JOIN LATERAL ({_STRANGE}) s ORDER BY 1, 2, 3"
)
_DIGESTS = f"""
SELECT w.table_schema, w.table_name, pg_catalog.md5(pg_catalog.concat_ws('|',
  h.oid,
  (SELECT pg_catalog.string_agg(
            pg_catalog.concat_ws(',', n.nspname, CASE WHEN $7::bool OR c.oid = h.oid THEN a.attnum END,
                                 a.attname, a.atttypid, a.atttypmod), ';'
            ORDER BY n.nspname = w.changes_schema, a.attnum)
   FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
   JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
   WHERE (n.nspname, c.relname) IN ((w.table_schema, w.table_name), (w.changes_schema, w.changes_name))
     AND a.attnum > 0 AND NOT a.attisdropped),
  (SELECT pg_catalog.string_agg(DISTINCT i.indkey::text, ';') FROM pg_catalog.pg_index i
   WHERE i.indrelid = o.oid AND i.indisprimary),
  (SELECT pg_catalog.string_agg(
            pg_catalog.concat_ws(',', t.oid, t.xmin, t.tgenabled, p.oid, p.xmin), ';' ORDER BY t.tgname)
   FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
   WHERE t.tgrelid = o.oid AND t.tgname = ANY ($6::text[])),
  o.oid,
  (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(',', s.kind, s.name, s.on_table), ';'
            ORDER BY s.kind, s.name, s.on_table) FROM ({_STRANGE}) s)))
{_WATCHED}
"""
_TRIGGERS = """
SELECT t.tgname::text, t.tgenabled::text, t.tgtype::int4, n.nspname::text, p.proname::text, p.prosrc,
       t.tgqual IS NULL AND t.tgattr::text = '', pg_catalog.pg_has_role(p.proowner, c.relowner, 'USAGE')
FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid
JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = $2::text::pg_catalog.regnamespace AND c.relname = $3::text
WHERE t.tgrelid = $1::int8::oid
"""
_SEQUENCE = (
    "SELECT seqcache, seqincrement, seqcycle FROM pg_catalog.pg_sequence"
    " WHERE seqrelid = pg_catalog.to_regclass($1::text)"
)
# pg_trigger.h: ROW 1, BEFORE 2, INSERT 4, DELETE 8, UPDATE 16, TRUNCATE 32
_TYPES = {COMMAND_TRIGGER: 2 + 4 + 8 + 16, CAPTURE_TRIGGER: 1 + 4 + 8 + 16, TRUNCATE_TRIGGER: 32}


def digests(
    query: Query, tables: Sequence[TableId], choices: Choices, *, with_numbers: bool = False
) -> dict[str, str]:
    """Digest of what captures each table, by the table's name, and after it the columns that travel as text.

    ``with_numbers``: of the table's columns too, as positions of earlier versions have it. One that is dropped and
    made again has another number; what that means for its values is told by ``rewritten``.
    """
    return {
        f"{schema}.{name}": ",".join([digest[:8], *sorted(choices(TableId(schema, name)).as_text)])
        for schema, name, digest in query(_DIGESTS, [*_watched(tables), list(_TYPES), with_numbers])
    }


def _watched(tables: Sequence[TableId]) -> list[list[str]]:
    """The parameters of ``_WATCHED``."""
    changes = [change_table(table) for table in tables]
    return [
        [table.schema for table in tables],
        [table.name for table in tables],
        [table.schema for table in changes],
        [table.name for table in changes],
        [function(table).name for table in tables],
    ]


def undisturbed(
    query: Query,
    schemas: Sequence[TableSchema],
    choices: Choices,
    known: dict[str, str] | None,
    where: str,
    fresh: Container[TableId] = (),
) -> dict[str, str]:
    """The digests, when they are what they were. Raises GapError or SchemaError naming what is wrong.

    Args:
        query: runs queries in one snapshot.
        schemas: the captured tables with the columns that are captured.
        choices: made about a table's columns.
        known: as of the last position; None for a first start.
        where: the position, for messages.
        fresh: tables that took the place of others, whose rows will all be read: captured from now on.
    """
    tables = [schema.id for schema in schemas]
    found = digests(query, tables, choices)
    if known is not None and all(known.get(str(table)) == found[str(table)] for table in tables):
        return found
    former = digests(query, tables, choices, with_numbers=True)
    for schema in schemas:
        name = str(schema.id)
        table = reflect(query, schema.id, choices(schema.id))
        if table is None or table.schema.version() != schema.version():
            raise _changed(schema, table, where)
        problems = list(findings(query, table))
        if problems:
            raise _gap(name, "; ".join(finding.problem for finding in problems), where)
        if known is None or schema.id in fresh or known.get(name) in (found[name], former[name]):
            continue
        if known.get(name, "")[:8] in (found[name][:8], former[name][:8]):
            raise chosen_otherwise(schema.id, choices(schema.id).as_text, where)
        raise _gap(name, "a trigger, its function or the change table was changed or replaced", where)
    return found


def missing_for(choices: Choices, query: Query, table: TableId) -> list[str]:
    """Tells what to do before changes of this table, which replaced another one, are captured; none if nothing.

    Raises ``SchemaError`` where it can't be captured at all.
    """
    reflected = reflect(query, table, choices(table))
    if reflected is None:
        return []
    if reflected.kind == "p":
        raise SchemaError(
            f"table {table} was replaced by a partitioned table, which change tables can't capture",
            where=str(table),
            remedy=f"put the other one back, or {_ANEW}",
        )
    found = list(findings(query, reflected))
    steps = [finding.remedy.removesuffix(REMEDY).rstrip("; ") for finding in found]
    others = sorted({row[2] for row in query(_STRANGE_HERE, _watched([table])) if row[0] == "other"})
    steps += [f"DROP TRIGGER IF EXISTS {identifier(COMMAND_TRIGGER)} ON {other}" for other in others]
    steps += [REMEDY] if any(finding.remedy.endswith(REMEDY) for finding in found) else []
    return [step for step in dict.fromkeys(steps) if step]


def findings(query: Query, table: ReflectedTable) -> Iterator[Finding]:
    """Lists what is missing or wrong, for a table to be captured from now on."""
    name, changes = str(table.schema.id), reflect(query, change_table(table.schema.id))
    if table.kind == "p":
        problem = "it is partitioned: a TRUNCATE or DETACH of a partition would go unnoticed by its triggers"
        yield Finding("change_table", name, problem, 'capture it from the log: source.log = "server"')
        return
    yield from _strange(query, table.schema.id)
    if changes is None:
        yield Finding(
            "change_table", name, f"its change table {change_table(table.schema.id)} doesn't exist", REMEDY
        )
        return
    for problem in _unfit_columns(table, changes):
        yield Finding(
            "change_table", name, problem, f"DROP TABLE {quoted(change_table(table.schema.id))}; {REMEDY}"
        )
    yield from _triggers(query, table)
    found = query(_SEQUENCE, [SEQUENCE])
    if found != [(1, 1, False)]:
        problem = f"the sequence {SEQUENCE} is missing, or caches, counts or cycles otherwise than it must"
        yield Finding(
            "change_sequence", name, problem, f"ALTER SEQUENCE {SEQUENCE} CACHE 1 INCREMENT 1 NO CYCLE;"
        )


def _unfit_columns(table: ReflectedTable, changes: ReflectedTable) -> Iterator[str]:
    has = {reflected.column.name: reflected.column.source_type for reflected in changes.columns}
    for column, declared in [*METADATA, *columns(table)]:
        if has.get(column) != declared:
            yield f"the change table's column {column!r} is {has.get(column, 'missing')}, not {declared}"


def _triggers(query: Query, table: ReflectedTable) -> Iterator[Finding]:
    name, own = str(table.schema.id), function(table.schema.id)
    bodies = {
        COMMAND_TRIGGER: (TableId(SCHEMA, "command"), COMMAND_BODY),
        CAPTURE_TRIGGER: (own, function_body(table)),
        TRUNCATE_TRIGGER: (own, function_body(table)),
    }
    found = {
        row[0]: row[1:] for row in query(_TRIGGERS, [table.oid, SCHEMA, change_table(table.schema.id).name])
    }
    for trigger, (wanted, body) in bodies.items():
        if trigger not in found:
            yield Finding("change_trigger", name, f"the trigger {trigger!r} is missing", REMEDY)
            continue
        enabled, kind, schema, runs, source, whole, may_write = found[trigger]
        if enabled != "A":
            problem = f"the trigger {trigger!r} isn't enabled for all sessions (ENABLE ALWAYS)"
            yield Finding("change_trigger", name, problem, REMEDY)
        if kind != _TYPES[trigger] or not whole or TableId(schema, runs) != wanted or source != body:
            yield Finding("change_trigger", name, f"the trigger {trigger!r} doesn't do what it must", REMEDY)
        elif not may_write:
            problem = f"the function of {trigger!r} has another owner than the change table"
            yield Finding("change_trigger", name, problem, REMEDY)


def _strange(query: Query, table: TableId) -> Iterator[Finding]:
    changes = change_table(table)
    for kind, name, on_table in query(_STRANGE_HERE, _watched([table])):
        problem, remedy = {
            "other": (
                f"the trigger {name!r} of {on_table} writes into its change table",
                f"DROP TRIGGER {identifier(name)} ON {on_table};",
            ),
            "parent": (
                f"it is a part of {name}: statements there change its rows, and its triggers don't see them begin",
                'separate the tables, or capture it from the log: source.log = "server"',
            ),
            "trigger": (
                f"its change table has the trigger {name!r}, which may change or drop what is captured",
                f"DROP TRIGGER {identifier(name)} ON {quoted(changes)};",
            ),
            "rule": (
                f"its change table has the rule {name!r}, which may change or drop what is captured",
                f"DROP RULE {identifier(name)} ON {quoted(changes)};",
            ),
            "unlogged": (
                "its change table isn't logged: a crash of the server would empty it",
                f"ALTER TABLE {quoted(changes)} SET LOGGED;",
            ),
        }[kind]
        yield Finding("change_table", str(table), problem, remedy)


def _changed(schema: TableSchema, table: ReflectedTable | None, where: str) -> SchemaError:
    cause = "it is gone"
    if table is not None:
        was = {column.name: column.source_type for column in schema.columns}
        now = {column.name: column.source_type for column in table.schema.columns}
        names = sorted(name for name in was.keys() | now.keys() if was.get(name) != now.get(name))
        cause = (
            f"columns differ: {', '.join(names)}"
            if names
            else "its key, or the order of its columns, differs"
        )
    return SchemaError(
        f"table {schema.id} no longer has the columns that its change table captures",
        where=f"{schema.id} after {where}",
        cause=cause,
        remedy=f"undo the change, or {_ANEW}",
    )


def _gap(table: str, cause: str, where: str) -> MigratorError:
    return GapError(
        f"changes of {table} may have gone by without being captured",
        where=f"{table} after {where}",
        cause=cause,
        remedy=f"{REMEDY}, then {_ANEW}",
    )
