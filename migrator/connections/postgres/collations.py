"""Collations by which a PostgreSQL sorts keys: what decides an order, and orders that changed under their indexes.

The server asks a library of its operating system, or ICU, how texts sort. Another version of that library may sort
otherwise. The server warns of it and uses the old indexes all the same: searches by them, and reads in key order,
then miss rows that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, LiteralString

from migrator.model.finding import Finding
from migrator.model.table import TableId

_OF_DATABASE: LiteralString = """(SELECT coalesce(
    (SELECT pg_catalog.pg_collation_actual_version(100)),
    (SELECT max(pg_catalog.pg_collation_actual_version(x.oid)) FROM pg_catalog.pg_collation x
     WHERE x.collprovider = coalesce(pg_catalog.to_jsonb(d) ->> 'datlocprovider', 'c')
       AND x.collcollate IS NOT DISTINCT FROM d.datcollate))
  FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())"""
"""The present version behind the database's own collation; servers before 16 don't tell it of number 100."""
_ACTUAL: LiteralString = f"""CASE WHEN l.collprovider = 'd' THEN {_OF_DATABASE}
       ELSE pg_catalog.pg_collation_actual_version(l.oid) END"""
_RULES: LiteralString = """pg_catalog.concat_ws(' ', CASE WHEN l.collprovider = 'd' THEN (
    SELECT pg_catalog.concat_ws(' ', o.d ->> 'datlocprovider', o.d ->> 'datcollate', o.d ->> 'datctype',
                                o.d ->> 'datlocale', o.d ->> 'daticulocale', o.d ->> 'daticurules')
    FROM (SELECT pg_catalog.to_jsonb(one) FROM pg_catalog.pg_database one
          WHERE one.datname = pg_catalog.current_database()) AS o(d)) END,
  j.l ->> 'collprovider', j.l ->> 'collcollate', j.l ->> 'collctype', j.l ->> 'colllocale',
  j.l ->> 'colliculocale', j.l ->> 'collicurules')"""
_PARTS: LiteralString = """(
  WITH RECURSIVE part (type, sorting) AS (
    SELECT a.atttypid, a.attcollation
    UNION
    SELECT n.type, n.sorting FROM part p JOIN pg_catalog.pg_type t ON t.oid = p.type CROSS JOIN LATERAL (
      SELECT t.typbasetype, p.sorting WHERE t.typtype = 'd'
      UNION ALL SELECT t.typelem, p.sorting WHERE t.typelem <> 0 AND t.typlen = -1
      UNION ALL SELECT r.rngsubtype, r.rngcollation FROM pg_catalog.pg_range r
                WHERE t.oid IN (r.rngtypid, r.rngmultitypid)
      UNION ALL SELECT f.atttypid, f.attcollation FROM pg_catalog.pg_attribute f
                WHERE t.typtype = 'c' AND f.attrelid = t.typrelid AND f.attnum > 0 AND NOT f.attisdropped
    ) AS n(type, sorting)
  )
  SELECT p.type, p.sorting, t.typtype FROM part p JOIN pg_catalog.pg_type t ON t.oid = p.type)"""
"""The types within a column's and the collations by which they sort, as SQL over ``a``, its row of ``pg_attribute``.

A range sorts its bounds by a collation of its own, a composite its members by theirs: the column has none then.
"""
ORDER_OF: LiteralString = f"""(SELECT pg_catalog.concat_ws(' ',
    (SELECT pg_catalog.string_agg(pg_catalog.concat_ws(' ', {_RULES}, {_ACTUAL}), ' ' ORDER BY l.oid)
     FROM pg_catalog.pg_collation l, LATERAL (SELECT pg_catalog.to_jsonb(l)) AS j(l)
     WHERE l.oid = ANY (pg_catalog.array_agg(w.sorting))),
    'by type ' || pg_catalog.string_agg(w.type::text, ' ' ORDER BY w.type) FILTER (WHERE w.typtype <> 'b'))
  FROM {_PARTS} AS w)"""
"""All that decides how the values of a column sort, as SQL over ``a``, its row of ``pg_attribute``.

Types that somebody made are told by their numbers: an enum that is made again has its labels in another order.
"""
_STALE: LiteralString = f"""
SELECT n.nspname::text, l.collname::text, l.collprovider = 'd', pg_catalog.current_database()::text,
       f.recorded, f.actual, pg_catalog.string_agg(DISTINCT c.oid::pg_catalog.regclass::text, ', ')
FROM (SELECT r.oid FROM pg_catalog.pg_class r JOIN pg_catalog.pg_namespace s ON s.oid = r.relnamespace
      WHERE s.nspname = {{schema}}::text AND r.relname = {{table}}::text) AS w(oid)
CROSS JOIN pg_catalog.pg_class c
JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisunique
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indexrelid AND a.attnum <= i.indnkeyatts
CROSS JOIN LATERAL {_PARTS} AS used
JOIN pg_catalog.pg_collation l ON l.oid = used.sorting
JOIN pg_catalog.pg_namespace n ON n.oid = l.collnamespace
CROSS JOIN LATERAL (SELECT CASE WHEN l.collprovider = 'd' THEN (
    SELECT pg_catalog.to_jsonb(d) ->> 'datcollversion' FROM pg_catalog.pg_database d
    WHERE d.datname = pg_catalog.current_database()) ELSE l.collversion END, {_ACTUAL}) AS f(recorded, actual)
WHERE c.oid IN (SELECT w.oid UNION
                SELECT t.relid::pg_catalog.oid FROM pg_catalog.pg_partition_tree(w.oid) t)
  AND f.recorded <> f.actual
GROUP BY n.nspname, l.collname, l.collprovider, f.recorded, f.actual
ORDER BY 1, 2
"""


def stale_orders(
    ask: Callable[[LiteralString, Sequence[Any]], Sequence[tuple[Any, ...]]],
    placeholders: tuple[LiteralString, LiteralString],
    tables: Sequence[TableId],
) -> Iterator[Finding]:
    """Yields the collations that sort otherwise than when unique indexes of these tables were built.

    Args:
        ask: runs a statement.
        placeholders: of its first two parameters, such as ``$1`` and ``$2``.
        tables: their names.
    """
    found: dict[tuple[Any, ...], list[str]] = {}
    statement = _STALE.format(schema=placeholders[0], table=placeholders[1])
    for table in tables:
        for *collation, sorted_by_it in ask(statement, [table.schema, table.name]):
            found.setdefault(tuple(collation), []).append(sorted_by_it)
    for (schema, name, of_database, database, recorded, actual), names in found.items():
        subject = f"database {database}" if of_database else f"collation {schema}.{name}"
        refresh = (
            f"ALTER DATABASE {_quoted(database)} REFRESH COLLATION VERSION;"
            if of_database
            else f"ALTER COLLATION {_quoted(schema, name)} REFRESH VERSION;"
        )
        yield Finding(
            "collation_version",
            subject,
            f"it sorts by version {actual}, and sorted by {recorded} when keys of {', '.join(names)} were indexed:"
            " rows that those indexes no longer find would be missed in silence",
            f"REINDEX DATABASE {_quoted(database)}; {refresh}",
        )


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
