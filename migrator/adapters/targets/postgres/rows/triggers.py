"""Triggers of target tables: which ones run when a batch is written, and whether they leave its rows as they are.

A trigger may be right (it checks, it keeps a log) or change what the mapping made, of which the server says nothing.
So rows are compared with what was written, in the batch's transaction, where a table has triggers at all.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from migrator.adapters.targets.postgres.rows.merge import Merge, qualified, quoted
from migrator.adapters.targets.postgres.rows.prepared import Prepared
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.refused import not_as_written
from migrator.model.table import TableId

# Also those of a partition alone.
_TRIGGERS = (
    "SELECT c.relname::text, t.tgname::text FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " JOIN pg_catalog.pg_trigger t ON NOT t.tgisinternal AND t.tgenabled <> 'D' AND (t.tgrelid = c.oid"
    " OR t.tgrelid IN (SELECT p.relid FROM pg_catalog.pg_partition_tree(c.oid) p))"
    " WHERE n.nspname = $1::text AND c.relkind IN ('r', 'p') AND c.relname IN "
)


def triggers_of(session: Session, tables: Collection[TableId]) -> Mapping[TableId, tuple[str, ...]]:
    """The names of enabled triggers, by those of the tables that have any."""
    if not tables:
        return {}
    by_name = {table.name: table for table in tables}
    (schema,) = {table.schema for table in tables}
    places = ", ".join(f"${place}::text" for place in range(2, len(by_name) + 2))
    found: dict[TableId, tuple[str, ...]] = {}
    for table, name in session.rows(f"{_TRIGGERS}({places}) ORDER BY 1, 2", [schema, *by_name]):
        known = found.get(by_name[table], ())
        found[by_name[table]] = known if name in known else (*known, name)
    return found


def check_written(
    session: Session, ordered: Sequence[Prepared], triggers: Mapping[TableId, tuple[str, ...]]
) -> None:
    """Raises ``BesideError`` for a row that isn't as it was written; a trigger may be another table's."""
    if triggers.keys().isdisjoint(one.id for one in ordered):
        return
    table, names = next(iter(triggers.items()))
    for one in ordered:
        table, names = (one.id, triggers[one.id]) if one.id in triggers else (table, names)
        queries = [_otherwise(one.merge)] if one.source.num_rows else []
        if one.before is not None:
            queries.append(_survived(one.merge))
        for row in (row for query in queries for row in session.rows(query)):
            off = ", ".join(f"DISABLE TRIGGER {quoted(name)}" for name in names)
            off = f"ALTER TABLE {qualified(table)} {off}"
            raise not_as_written(one.id, one.structure.table.key, row, names, off)


def _otherwise(merge: Merge) -> str:
    """Finds a staged row that the table doesn't hold as it was written: the key's values as text."""
    texts = ", ".join(f"({merge.value(name)})::text" for name in merge.structure.table.key)
    stored = merge.structure.one_key(lambda name: f"t.{quoted(name)}", merge.value)
    held = _same([f"t.{quoted(name)}" for name in merge.written], [merge.assigned(n) for n in merge.written])
    return (
        f"SELECT {texts} FROM {merge.staging} s WHERE NOT EXISTS"
        f" (SELECT 1 FROM {merge.target} t WHERE {stored} AND {held}) LIMIT 1"
    )


def _survived(merge: Merge) -> str:
    """Finds a row that was deleted, and is there as it was: the key's values as text."""
    key = merge.structure.table.key
    before = {
        name: part.replace("{0}", f"b.k{place}")
        for place, (name, part) in enumerate(zip(key, merge.key_expressions, strict=True))
    }
    own = [f"t.{quoted(name)}" for name in key]
    columns = [storage for name in key if (storage := merge.structure.column(name)) is not None]
    values = [
        f"CAST(CAST({value} AS {storage.declared}) AS {storage.cast})"
        for value, storage in zip(before.values(), columns, strict=True)
    ]
    stored = merge.structure.one_key(lambda name: f"t.{quoted(name)}", before.__getitem__)
    staged = merge.structure.one_key(merge.value, before.__getitem__)
    return (
        f"SELECT {', '.join(f'{name}::text' for name in own)} FROM {merge.target} t"
        f" JOIN {merge.before} b ON {stored} AND {_same(own, values)}"
        f" WHERE NOT EXISTS (SELECT 1 FROM {merge.staging} s WHERE {staged}) LIMIT 1"
    )


def _same(ones: Sequence[str], others: Sequence[str]) -> str:
    """Two rows look the same, whatever the equality of their types says."""
    one, other = (f"ROW({', '.join(values)})::pg_catalog.record" for values in (ones, others))
    return f"{one} OPERATOR(pg_catalog.*=) {other}"
