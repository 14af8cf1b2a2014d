"""Operators of a table's own types (citext, ltree): where they are, beside pg_catalog, for comparing keys in order.

ORDER BY takes a type's own operators whatever the path. So ``>`` and ``=`` must be those too, else pieces of such a
table would overlap or leave rows out. Their schema comes behind pg_catalog in the path. What somebody else
has put in there, and would be taken for an operator or function of ours, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from migrator.errors import VerifyError
from verify.readers.postgres.session import PostgresSnapshot

_SCHEMAS = """
WITH RECURSIVE held AS (
  SELECT a.atttypid AS type FROM pg_attribute a
  JOIN pg_class r ON r.oid = a.attrelid JOIN pg_namespace n ON n.oid = r.relnamespace
  WHERE n.nspname = %s AND r.relname = ANY(%s) AND a.attnum > 0 AND NOT a.attisdropped
  UNION
  SELECT t.typbasetype FROM held h JOIN pg_type t ON t.oid = h.type WHERE t.typtype = 'd'
)
SELECT DISTINCT s.nspname FROM held h
JOIN pg_opclass c ON c.opcintype = h.type AND c.opcdefault
JOIN pg_am m ON m.oid = c.opcmethod AND m.amname = 'btree'
JOIN pg_amop a ON a.amopfamily = c.opcfamily AND a.amoplefttype = h.type AND a.amoprighttype = h.type
JOIN pg_operator o ON o.oid = a.amopopr
JOIN pg_namespace s ON s.oid = o.oprnamespace AND s.nspname <> 'pg_catalog'
ORDER BY 1
"""
_SHADOWS = """
SELECT 'OPERATOR ' || o.oid::regoperator::text FROM pg_operator o JOIN pg_namespace n ON n.oid = o.oprnamespace
WHERE n.nspname = ANY(%(schemas)s)
  AND EXISTS (SELECT FROM pg_operator p WHERE p.oprname = o.oprname AND p.oprnamespace = 'pg_catalog'::regnamespace)
  AND NOT EXISTS (SELECT FROM pg_type t WHERE t.oid IN (o.oprleft, o.oprright)
                    AND t.typnamespace <> 'pg_catalog'::regnamespace)
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_operator'::regclass AND d.objid = o.oid
                    AND d.deptype = 'e')
UNION ALL
SELECT 'FUNCTION ' || f.oid::regprocedure::text FROM pg_proc f JOIN pg_namespace n ON n.oid = f.pronamespace
WHERE n.nspname = ANY(%(schemas)s) AND f.proname = ANY(%(names)s)
  AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_proc'::regclass AND d.objid = f.oid
                    AND d.deptype = 'e')
ORDER BY 1 LIMIT 1
"""
_OURS = (
    "btrim char_length convert_to count daterange_subdiff encode format getdatabaseencoding hash_record_extended"
    " hashfloat4extended hashfloat8extended hashint4extended hashint8extended hashtextextended isfinite left length"
    " lower lpad ltrim max md5 min num_nulls octet_length replace rtrim sha256 string_agg substr substring sum"
    " timestamp_hash_extended translate trim_scale trunc tsrange_subdiff tstzrange_subdiff upper uuid_hash_extended"
    " uuid_send"
)
"""Functions that the judge's queries of rows call."""


def operator_path(view: PostgresSnapshot, schema: str, tables: Sequence[str]) -> str:
    """Returns the ``search_path`` that these tables need; empty where pg_catalog will do. Raises ``VerifyError``."""
    schemas = [str(name) for (name,) in view.rows(_SCHEMAS, (schema, list(tables)))]
    if not schemas:
        return ""
    for (found,) in view.rows(_SHADOWS, {"schemas": schemas, "names": _OURS.split(" ")}):
        raise VerifyError(
            f"{found} would be taken for the server's own by the judge's queries",
            where=f"schema {', '.join(schemas)}",
            cause="the operators of a key's type are in that schema, so names are looked for in it",
            remedy=f"CREATE SCHEMA IF NOT EXISTS another_schema; ALTER {found} SET SCHEMA another_schema",
        )
    return sql.SQL(", ").join(map(sql.Identifier, ("pg_catalog", *schemas))).as_string()
