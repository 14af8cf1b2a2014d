"""Tables of a PostgreSQL source, read together: see ``verify.readers.ports.SourceTables``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import LiteralString

from psycopg import sql

from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from verify.readers.chunk_keys import Key
from verify.readers.ports import Bracket, Part
from verify.readers.postgres.chunks import DIALECT, counted, nth_key, quoted
from verify.readers.postgres.session import Convert, PostgresViews
from verify.readers.snapshot import LogPlace

_REFERENCES: LiteralString = """
SELECT c.relname, ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS n(attnum, place)
                        JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = n.attnum ORDER BY n.place),
       p.relname, ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS n(attnum, place)
                        JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = n.attnum ORDER BY n.place)
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
JOIN pg_class p ON p.oid = k.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
WHERE k.contype = 'f' AND k.conparentid = 0 AND cn.nspname = %s AND pn.nspname = %s
  AND c.relname = ANY(%s) AND p.relname = ANY(%s)
"""
_INDEXED: LiteralString = """
SELECT EXISTS (
  SELECT FROM pg_index i JOIN pg_class r ON r.oid = i.indrelid JOIN pg_namespace n ON n.oid = r.relnamespace
  WHERE n.nspname = %s AND r.relname = %s AND i.indisvalid AND i.indpred IS NULL
    AND %s::text[] = ARRAY(
      SELECT a.attname::text FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
      WHERE k.place <= %s ORDER BY a.attname))
"""


class PostgresSourceTables:
    """See the port. ``place`` gives the log's end; it is called between views."""

    dialect = DIALECT

    def __init__(
        self,
        views: PostgresViews,
        place: Callable[[], LogPlace],
        schemas: Mapping[str, TableSchema],
        reading: Callable[[TableSchema], tuple[sql.Composed, Convert]],
    ):
        self._views, self._place, self._schemas, self._reading = views, place, schemas, reading

    @property
    def schemas(self) -> Mapping[str, TableSchema]:
        """The tables by name, as they were when reading began."""
        return self._schemas

    def count(self, table: str, upto: int, where: str = "1 = 1") -> int:
        """See the port."""
        with self._views.view() as view:
            return counted(view, self._name(table), upto, where)

    def end(self, table: str, key: Sequence[tuple[str, str]], where: str, rows: int) -> Key | None:
        """See the port."""
        with self._views.view() as view:
            return nth_key(view, self._name(table), key, where, rows)

    def read(self, parts: Sequence[Part]) -> tuple[Bracket, int]:
        """See the port."""
        low, rows = self._place(), 0
        with self._views.view(bulk=True) as view:
            for part in parts:
                schema = self._schemas[part.table]
                selected, convert = self._reading(schema)
                query = sql.SQL("SELECT {} FROM {} WHERE {}").format(
                    selected,
                    sql.Identifier(schema.id.schema, schema.id.name),
                    sql.Composed([sql.SQL(part.where)]),
                )
                rows += view.to_parquet(query, schema.names(), part.path, convert, f"table {schema.id}")
        return Bracket(low, self._place()), rows

    def references(self) -> list[Reference]:
        """See the port."""
        names = {schema.id.name: schema.id for schema in self._schemas.values()}
        space = next(iter(names.values())).schema
        with self._views.view() as view:
            rows = view.rows(_REFERENCES, (space, space, list(names), list(names)))
        return [Reference(names[c], tuple(cs), names[p], tuple(ps)) for c, cs, p, ps in rows]

    def has_index(self, table: str, columns: Sequence[str]) -> bool:
        """See the port."""
        own, wanted = self._schemas[table].id, sorted(columns)
        with self._views.view() as view:
            return bool(view.rows(_INDEXED, (own.schema, own.name, wanted, len(wanted)))[0][0])

    def _name(self, table: str) -> str:
        own = self._schemas[table].id
        return f"{quoted(own.schema)}.{quoted(own.name)}"
