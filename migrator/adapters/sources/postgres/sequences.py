"""The values that the sequences of a PostgreSQL source have reached."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg
from psycopg import sql

from migrator.adapters.sources.postgres.connection import connect, query_failure
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.errors import SourceError
from migrator.model.sequence import HandedOut

# That of the column itself (identity, serial), or one that its default names.
_OF_COLUMNS = """
SELECT c.relname::text, a.attname::text, n.nspname::text, s.relname::text, q.seqincrement::int8
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace m ON m.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
JOIN pg_catalog.pg_class s ON s.relkind = 'S'
JOIN pg_catalog.pg_namespace n ON n.oid = s.relnamespace JOIN pg_catalog.pg_sequence q ON q.seqrelid = s.oid
WHERE m.nspname = $1::text AND c.relname = ANY($2::text[]) AND (
  EXISTS (SELECT 1 FROM pg_catalog.pg_depend d
          WHERE d.classid = 'pg_catalog.pg_class'::regclass AND d.objid = s.oid AND d.deptype IN ('a', 'i')
            AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = c.oid AND d.refobjsubid = a.attnum)
  OR EXISTS (SELECT 1 FROM pg_catalog.pg_attrdef f JOIN pg_catalog.pg_depend d
               ON d.classid = 'pg_catalog.pg_attrdef'::regclass AND d.objid = f.oid
                  AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid = s.oid
             WHERE f.adrelid = c.oid AND f.adnum = a.attnum))
"""


def handed_out(
    source: PostgresSource, columns: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], HandedOut]:
    """``ports.sequences.SourceNumbers``. What sessions have cached counts as given: the sequence stands
    behind it."""
    found: dict[tuple[str, str], HandedOut] = {}
    with connect(source, "sequences") as connection:
        try:
            tables = sorted({table for table, _ in columns})
            for table, column, schema, name, step in connection.execute(
                _OF_COLUMNS, [source.server.schema, tables]
            ).fetchall():
                if (table, column) not in columns:
                    continue
                query = sql.SQL("SELECT last_value, is_called FROM {}").format(sql.Identifier(schema, name))
                [last, called] = connection.execute(query).fetchone() or (0, False)
                found[table, column] = HandedOut(last if called else last - step, step)
        except psycopg.errors.InsufficientPrivilege as error:
            raise SourceError(
                "the source's sequences can't be read",
                where=source.server.address,
                cause=str(error).partition("\n")[0],
                remedy=f'GRANT SELECT ON ALL SEQUENCES IN SCHEMA "{source.server.schema}" TO'
                f' "{source.server.user}"; or leave the source out: --no-source',
            ) from None
        except psycopg.Error as error:
            raise query_failure(source, "the source's sequences can't be read", error) from error
    return found
