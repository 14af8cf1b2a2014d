"""The uniqueness of keys: where nothing keeps one unique, two rows may have it, and are merged into one by it.

A constraint or index that is dropped leaves no row in the log, nor does one that is made again. So it is noted what
keeps each key unique, by all of it that may stay when something else changes: REINDEX CONCURRENTLY leaves the
constraint, ADD PRIMARY KEY USING INDEX the index, and a type that is widened the index's file. A unique index without
a constraint is trusted: REINDEX CONCURRENTLY, which everybody runs, leaves nothing of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from migrator.adapters.sources.postgres.reflection import Query
from migrator.model.table import TableId

_CONSTRAINT, _KEY = "constraint ", "key "
_UNIQUE = """
SELECT captured.schema, captured.name, 'index ' || i.indexrelid,
       coalesce('constraint ' || k.oid, ''), coalesce('file ' || nullif(x.relfilenode, 0), ''),
       ARRAY(SELECT a.attname::text FROM pg_catalog.unnest(i.indkey) WITH ORDINALITY AS u(number, place)
             JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = u.number
             WHERE u.place <= i.indnkeyatts)
FROM unnest($1::text[], $2::text[]) AS captured (schema, name)
JOIN pg_catalog.pg_namespace n ON n.nspname = captured.schema
JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = captured.name AND c.relkind IN ('r', 'p')
JOIN pg_catalog.pg_index i ON i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid
  AND i.indpred IS NULL AND i.indexprs IS NULL
JOIN pg_catalog.pg_class x ON x.oid = i.indexrelid
LEFT JOIN pg_catalog.pg_constraint k ON k.conindid = i.indexrelid AND k.conrelid = c.oid AND k.contype IN ('p', 'u')
"""


def found_keepers(query: Query, keys: Mapping[TableId, Sequence[str]]) -> dict[TableId, list[str]]:
    """Returns the columns of each table's key, and what keeps it unique now; tables of whose key nothing does are
    left out."""
    found: dict[TableId, set[str]] = {}
    tables = [[table.schema for table in keys], [table.name for table in keys]]
    for schema, name, *keepers, columns in query(_UNIQUE, tables):
        table = TableId(schema, name)
        if set(columns) <= set(keys[table]):
            key = f"{_KEY}{json.dumps(list(keys[table]))}"
            found.setdefault(table, {key}).update(filter(None, keepers))
    return {table: sorted(keepers) for table, keepers in found.items()}


def became(noted: Sequence[str], found: Sequence[str]) -> str:
    """Tells whether a key may have been of two rows since; empty if not, and of another key: that one is new."""
    before, now = set(noted), set(found)
    keys = {one for one in before if one.startswith(_KEY)}
    if not keys & now or not any(one.startswith(_CONSTRAINT) for one in before) or (before - keys) & now:
        return ""
    return "what keeps its key unique was dropped and made again: two rows may have had one key meanwhile"
