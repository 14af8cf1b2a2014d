"""The catalogue of a server, for those who make rows for them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from scenarios.database import Database
from scenarios.faults.session import query
from scenarios.rehearsal.tables import Column, ForeignKey, Table

_POSTGRES_COLUMNS = """
    SELECT c.relname, a.attname, format_type(coalesce(nullif(t.typbasetype, 0), a.atttypid),
            CASE WHEN t.typtype = 'd' THEN t.typtypmod ELSE a.atttypmod END),
        NOT (a.attnotnull OR t.typnotnull), a.attgenerated = '',
        (SELECT array_agg(e.enumlabel ORDER BY e.enumsortorder) FROM pg_enum e WHERE e.enumtypid = a.atttypid)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    JOIN pg_type t ON t.oid = a.atttypid
    WHERE n.nspname = %s AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    ORDER BY c.relname, a.attnum"""
_POSTGRES_KEYS = """
    SELECT c.relname, i.indisprimary, array_agg(a.attname ORDER BY k.place)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    CROSS JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(number, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.number
    WHERE n.nspname = %s AND i.indisunique AND i.indexprs IS NULL AND k.place <= i.indnkeyatts
    GROUP BY c.relname, i.indexrelid, i.indisprimary
    ORDER BY i.indisprimary DESC, array_agg(a.attname ORDER BY k.place)"""
_POSTGRES_FOREIGN = """
    SELECT c.relname, k.oid::text, p.relname, a.attname, b.attname
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_class p ON p.oid = k.confrelid
    CROSS JOIN LATERAL unnest(k.conkey, k.confkey) WITH ORDINALITY AS u(own, other, place)
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = u.own
    JOIN pg_attribute b ON b.attrelid = p.oid AND b.attnum = u.other
    WHERE n.nspname = %s AND k.contype = 'f' AND k.conparentid = 0 ORDER BY k.conname, u.place"""
_POSTGRES_CHECKS = """
    SELECT c.relname, pg_get_constraintdef(k.oid) FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND k.contype = 'c'
    UNION ALL
    SELECT c.relname, replace(pg_get_constraintdef(k.oid), 'VALUE', a.attname) FROM pg_constraint k
    JOIN pg_attribute a ON a.atttypid = k.contypid JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND k.contypid <> 0"""
_MYSQL_COLUMNS = """
    SELECT c.TABLE_NAME, c.COLUMN_NAME, c.COLUMN_TYPE, c.IS_NULLABLE = 'YES', c.GENERATION_EXPRESSION
    FROM information_schema.COLUMNS c JOIN information_schema.TABLES t
        ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.TABLE_TYPE = 'BASE TABLE'
    WHERE c.TABLE_SCHEMA = %s ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION"""
_MYSQL_KEYS = """
    SELECT TABLE_NAME, INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = %s AND NON_UNIQUE = 0 AND COLUMN_NAME IS NOT NULL
    ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX"""
_MYSQL_FOREIGN = """
    SELECT TABLE_NAME, CONSTRAINT_NAME, REFERENCED_TABLE_NAME, COLUMN_NAME, REFERENCED_COLUMN_NAME
    FROM information_schema.KEY_COLUMN_USAGE WHERE TABLE_SCHEMA = %s AND REFERENCED_TABLE_NAME IS NOT NULL
    ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION"""
_MYSQL_CHECKS = """
    SELECT t.TABLE_NAME, c.CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS c
    JOIN information_schema.TABLE_CONSTRAINTS t ON t.CONSTRAINT_SCHEMA = c.CONSTRAINT_SCHEMA
        AND t.CONSTRAINT_NAME = c.CONSTRAINT_NAME WHERE c.CONSTRAINT_SCHEMA = %s"""

_INTRODUCED = re.compile(r"\b_\w+\\'")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_JSON = re.compile(r"^json_valid\([`\"](.*)[`\"]\)$")
"""The CHECK of a JSON column; the session's mode says how names are quoted."""


def tables(database: Database) -> dict[str, Table]:
    """The database's tables by name; the tool's own are left out."""
    postgres = database.kind == "postgresql"
    place = database.schema if postgres else database.database
    columns = defaultdict[str, list[Column]](list)
    if postgres:
        for table, name, of_type, nullable, written, chosen in query(database, _POSTGRES_COLUMNS, [place]):
            columns[table].append(Column(name, of_type, nullable, written, tuple(chosen or ())))
        keys = [
            (table, primary, tuple(names))
            for table, primary, names in query(database, _POSTGRES_KEYS, [place])
        ]
        foreign = query(database, _POSTGRES_FOREIGN, [place])
        checks = query(database, _POSTGRES_CHECKS, [place, place])
    else:
        for table, name, of_type, nullable, generation in query(database, _MYSQL_COLUMNS, [place]):
            words = _text(of_type)
            columns[table].append(
                Column(name, words.lower(), bool(nullable), not _text(generation), _chosen(words))
            )
        keys = _gathered(query(database, _MYSQL_KEYS, [place]))
        foreign = query(database, _MYSQL_FOREIGN, [place])
        checks = query(database, _MYSQL_CHECKS, [place])
        _mark_json(columns, checks)
    own = {name for name in columns if name.startswith("migrator_") or name == "alembic_version"}
    found = {}
    for name, members in columns.items():
        if name in own:
            continue
        mine = [(primary, one) for table, primary, one in keys if table == name]
        found[name] = Table(
            name,
            tuple(members),
            next((one for primary, one in mine if primary), ()),
            tuple(dict.fromkeys(one for primary, one in mine if not primary)),
            tuple(_foreign(row for row in foreign if row[0] == name)),
            tuple(sorted(as_written(_text(check)) for table, check in checks if table == name)),
        )
    return found


def as_written(check: str) -> str:
    """A CHECK as somebody would write it: MySQL lists it as a text of its own, with each quote behind a backslash."""
    return _ESCAPED.sub(r"\1", check) if _INTRODUCED.search(check) else check


def _mark_json(columns: Mapping[str, list[Column]], checks: Iterable[tuple[object, ...]]) -> None:
    """Gives JSON columns of MariaDB their type: there it is a text that a CHECK looks at."""
    for table, check in checks:
        names = _JSON.findall(_text(check))
        members = columns.get(_text(table), [])
        members[:] = [replace(one, type="json") if one.name in names else one for one in members]


def _gathered(rows: Iterable[tuple[object, ...]]) -> list[tuple[str, bool, tuple[str, ...]]]:
    found = defaultdict[tuple[str, str], list[str]](list)
    for table, index, column in rows:
        found[str(table), str(index)].append(str(column))
    return [(table, index == "PRIMARY", tuple(names)) for (table, index), names in found.items()]


def _foreign(rows: Iterable[tuple[object, ...]]) -> list[ForeignKey]:
    found = defaultdict[tuple[str, str], list[tuple[str, str]]](list)
    for _, constraint, parent, own, other in rows:
        found[str(constraint), str(parent)].append((str(own), str(other)))
    return [
        ForeignKey(tuple(own for own, _ in pairs), parent, tuple(other for _, other in pairs))
        for (_, parent), pairs in found.items()
    ]


def _chosen(of_type: str) -> tuple[str, ...]:
    if not of_type.lower().startswith(("enum(", "set(")):
        return ()
    inside = of_type[of_type.index("(") + 1 : of_type.rindex(")")]
    return tuple(part.strip("'").replace("''", "'") for part in inside.split("','"))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
