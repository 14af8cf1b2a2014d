"""Preflight of one table: is it there, readable, keyed, and logged with full images?"""

from __future__ import annotations

from collections.abc import Iterator

from migrator.adapters.sources.postgres.preflight_values import value_findings
from migrator.adapters.sources.postgres.reflection import LOGGED, Query, ReflectedTable, reflect
from migrator.adapters.sources.postgres.settings import SERVER_LOG, PostgresSource
from migrator.adapters.sources.postgres.whole_images import name_of, quoted
from migrator.model.finding import Finding
from migrator.model.table import TableId

_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
_PERSISTENCE = {"u": "unlogged", "t": "temporary"}

_ACCESS = """
SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE'),
       pg_catalog.has_table_privilege(c.oid, 'SELECT'),
       pg_catalog.row_security_active(c.oid),
       EXISTS (SELECT 1 FROM pg_catalog.pg_inherits i
               WHERE c.relkind = 'r' AND (i.inhparent = c.oid OR (i.inhrelid = c.oid AND NOT c.relispartition))),
       c.relispartition
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = $1::int8::oid
"""
_IDENTITY = """
SELECT n.nspname::text, c.relname::text, c.relkind::text, c.relpersistence::text
FROM (SELECT $1::int8::oid AS oid
      UNION SELECT t.relid FROM pg_catalog.pg_partition_tree($1::int8::oid::regclass) t) tree
JOIN pg_catalog.pg_class c ON c.oid = tree.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relreplident <> 'f' OR (c.relkind NOT IN ('r', 'p')) OR (c.relkind = 'r' AND c.relpersistence <> 'p')
ORDER BY 1, 2
"""
_VERSION = "SELECT pg_catalog.current_setting('server_version_num')::int8"
_GENERATED = """
SELECT pg_catalog.string_agg(a.attname::text, ', ' ORDER BY a.attnum) FILTER (WHERE a.attgenerated = 's'),
       pg_catalog.string_agg(a.attname::text, ', ' ORDER BY a.attnum) FILTER (WHERE a.attgenerated = 'v')
FROM pg_catalog.pg_attribute a WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped
"""
_TYPES_WITHIN = f"""
WITH RECURSIVE made (name, oid) AS (
  SELECT a.attname::text, a.atttypid FROM pg_catalog.pg_attribute a
  WHERE a.attrelid = $1::int8::oid AND a.attnum > 0 AND NOT a.attisdropped AND {LOGGED}
  UNION
  SELECT m.name, p.oid FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid CROSS JOIN LATERAL (
    VALUES (t.typelem), (t.typbasetype)
    UNION ALL SELECT a.atttypid FROM pg_catalog.pg_attribute a
              WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
    UNION ALL SELECT r.rngsubtype FROM pg_catalog.pg_range r WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
  ) AS p(oid) WHERE p.oid <> 0
)
SELECT m.name, t.typname::text FROM made m JOIN pg_catalog.pg_type t ON t.oid = m.oid
WHERE t.typnamespace = 'pg_catalog'::pg_catalog.regnamespace
  AND t.typname IN ('aclitem', 'regclass', 'regcollation', 'regconfig', 'regdictionary', 'regnamespace', 'regoper',
                    'regoperator', 'regproc', 'regprocedure', 'regrole', 'regtype')
ORDER BY 1, 2
"""
"""Columns that hold, themselves or within, a type that is printed with names from the catalog."""


def table_findings(source: PostgresSource, query: Query, table: TableId, role: str) -> Iterator[Finding]:
    """All findings of one table for the role that reads it."""
    name, reflected = str(table), reflect(query, table, source.choices(table))
    if reflected is None:
        yield Finding("table", name, "the table does not exist", "correct the mapping, or source.schema")
        return
    if reflected.kind in _KINDS:
        problem = f"it is {_KINDS[reflected.kind]}, which has no log"
        yield Finding("table_kind", name, problem, "map the tables behind it instead")
        return
    if reflected.persistence in _PERSISTENCE:
        problem = f"it is {_PERSISTENCE[reflected.persistence]}, so its changes are not in the log"
        yield Finding("table_kind", name, problem, f"ALTER TABLE {quoted(table)} SET LOGGED;")
        return
    yield from _access(query, table, reflected, role)
    logged = source.log == SERVER_LOG
    if logged:
        yield from _identity(query, reflected)
    yield from _structure(query, table, reflected, logged)
    yield from value_findings(query, reflected)


def _access(query: Query, table: TableId, reflected: ReflectedTable, role: str) -> Iterator[Finding]:
    name = str(table)
    usage, select, row_security, inherits, partition = query(_ACCESS, [reflected.oid])[0]
    schema = name_of(table.schema)
    if not usage:
        remedy = f"GRANT USAGE ON SCHEMA {schema} TO {name_of(role)};"
        yield Finding("usage", name, f"role {role!r} may not use schema {table.schema!r}", remedy)
    if not select:
        remedy = f"GRANT SELECT ON {quoted(table)} TO {name_of(role)};"
        yield Finding("select", name, f"role {role!r} may not read the table", remedy)
    if row_security:
        problem = f"row-level security hides rows from role {role!r}"
        yield Finding("row_security", name, problem, f"ALTER ROLE {name_of(role)} BYPASSRLS;")
    if inherits:
        problem = "it takes part in table inheritance: its rows and its log events are not the same set"
        yield Finding(
            "inheritance", name, problem, "turn the tables into a partitioned table, or separate them"
        )
    if partition:
        problem = "it is a partition: its changes are published as its root's"
        yield Finding("partition", name, problem, "map the partitioned table itself")


def _identity(query: Query, reflected: ReflectedTable) -> Iterator[Finding]:
    """Yields what is wrong with the table and, where it is partitioned, with every partition: the log has what each
    leaf says."""
    for schema, name, kind, persistence in query(_IDENTITY, [reflected.oid]):
        member = TableId(schema, name)
        if kind not in ("r", "p") or persistence != "p":
            problem = "a partition that isn't an ordinary logged table has no log"
            yield Finding("table_kind", str(member), problem, f"ALTER TABLE {quoted(member)} SET LOGGED;")
        else:
            problem = "its replica identity is not FULL: before images lack columns"
            remedy = f"ALTER TABLE {quoted(member)} REPLICA IDENTITY FULL;"
            yield Finding("replica_identity", str(member), problem, remedy)


def _generated(query: Query, reflected: ReflectedTable, logged: bool) -> Iterator[Finding]:
    name, published = str(reflected.schema.id), logged and query(_VERSION, [])[0][0] >= 180000
    stored, virtual = query(_GENERATED, [reflected.oid])[0]
    unread = [names for names in ((None if published else stored), virtual) if names]
    if unread:
        yield Finding(
            "generated_columns",
            name,
            f"generated columns are not in the log and will not be read: {', '.join(unread)}",
            "compute them in the mapping, or in the new schema",
            fatal=False,
        )
    if (
        published and virtual
    ):  # which can't be published: the server refuses the application's UPDATE and DELETE then
        yield Finding(
            "generated_columns",
            name,
            "REPLICA IDENTITY FULL with a virtual generated column makes PostgreSQL refuse UPDATE and DELETE on the"
            f" published table: {virtual}",
            "make it STORED (drop it and add it again), drop it before the migration, or capture the changes by"
            ' triggers: source.log = "change_tables"',
        )


def _structure(query: Query, table: TableId, reflected: ReflectedTable, logged: bool) -> Iterator[Finding]:
    name = str(table)
    if not reflected.schema.key:
        yield Finding(
            "key",
            name,
            "neither an immediate primary key nor a unique index on columns that are NOT NULL "
            "(a deferrable key does not count, nor a NOT NULL that is NOT VALID, nor one compared by operators other "
            "than pg_catalog's, citext's, ltree's)",
            f"ALTER TABLE {quoted(table)} ADD PRIMARY KEY (...);",
        )
    yield from _generated(query, reflected, logged)
    for column_name, within in query(_TYPES_WITHIN, [reflected.oid]):
        yield Finding(
            "column_type",
            f"{name}.{column_name}",
            f"{within} is printed with a name from the catalog: a rename there changes values, and no row in the log",
            "store the number instead (oid), or the name as text",
        )
    for column_name, why in reflected.schema.unfit_names().items():
        yield Finding("column_name", name, f"column {column_name!r}: {why}", "rename the column")
