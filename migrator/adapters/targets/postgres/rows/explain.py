"""Turns a server's refusal into a ``TargetError`` that names table, constraint or column, and the row's key.

The server names the key for uniqueness, and the line of a COPY; for the rest the row is found by trying
halves of the staged rows inside a savepoint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from migrator.adapters.targets.postgres.refusal import (
    FOREIGN_KEY_VIOLATIONS,
    NO_PRIVILEGE,
    SECOND_TIME,
    UNIQUE_VIOLATION,
    UNKNOWN_NAMES,
    Refusal,
)
from migrator.adapters.targets.postgres.rows.merge import quoted
from migrator.adapters.targets.postgres.rows.prepared import Prepared
from migrator.adapters.targets.postgres.session import Session
from migrator.adapters.targets.shared.refused import CORRECT_REMEDY, first_refused, temporary
from migrator.adapters.targets.shared.rows import compared_by, duplicate, one_key
from migrator.columnar.bad_rows import key_at
from migrator.columnar.shown import key_text
from migrator.errors import CORRECTED_MAPPING, BesideError, TargetError, of_row

_DETAIL_KEY = re.compile(r"\((.*?)\)=\((.*)\) ", re.DOTALL)
# The words around it are the server's language; it names a function as it is called, with its schema.
_FUNCTION = re.compile(r"((?:\"[^\"]+\"|\w+)\.(?:\"[^\"]+\"|\w+)\([^()]*\))")
_BY_NAME = (
    "SELECT p.oid::pg_catalog.regprocedure::text FROM pg_catalog.pg_proc p"
    " JOIN pg_catalog.pg_language l ON l.oid = p.prolang WHERE l.lanname = 'sql'"
    " AND p.pronamespace <> 'pg_catalog'::pg_catalog.regnamespace"
    " AND pg_catalog.strpos($1::text, '\"' || p.proname || '\"') > 0"
)
_WRITABLE = (
    "SELECT pg_catalog.bool_and(pg_catalog.has_table_privilege($1::text, one))"
    " FROM pg_catalog.unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS one"
)
_PROBE = "migrator_probe"
_SHOWN = 60
_COMPARES = """
SELECT a.attname::text, l.collname::text, pg_catalog.format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relname = $1::text
CROSS JOIN LATERAL pg_catalog.unnest(i.indcollation::pg_catalog.oid[]) WITH ORDINALITY k(collated, place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indexrelid AND a.attnum = k.place
LEFT JOIN pg_catalog.pg_collation l ON l.oid = k.collated
WHERE i.indrelid = pg_catalog.to_regclass($2::text) ORDER BY k.place
"""
_INDEXED = """
SELECT a.attname::text
FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid AND c.relname = $1::text
CROSS JOIN LATERAL pg_catalog.unnest(i.indkey::pg_catalog.int2[]) WITH ORDINALITY k(number, place)
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.number AND k.number > 0
WHERE i.indrelid = pg_catalog.to_regclass($2::text) AND k.place <= i.indnkeyatts ORDER BY k.place
"""
"""The columns of an index; NULL for an expression."""


def explained(session: Session, refusal: Refusal, prepared: Prepared, offset: int = 0) -> TargetError:
    """The error a user sees. The session must be in a usable (rolled back to savepoint) transaction.

    ``offset`` is the row of ``prepared.source`` that the first row of a refused COPY was.
    """
    if refusal.retryable():
        return temporary(refusal)
    if refusal.sqlstate == NO_PRIVILEGE:
        return _not_allowed(session, refusal, prepared)
    if refusal.sqlstate.startswith(UNKNOWN_NAMES) and (function := _function(session, refusal)):
        schema = quoted(prepared.id.schema)
        return BesideError(
            f"a function that runs when {prepared.id} is written doesn't find what it names",
            where=f"{prepared.id}, function {function}",
            cause=f"{refusal.cause()}; in our sessions names without a schema are pg_catalog's",
            remedy=f"ALTER FUNCTION {function} SET search_path = {schema}, pg_temp (or the schemas that it needs)",
        )
    if refusal.sqlstate == SECOND_TIME:
        key = prepared.structure.table.key
        for row in session.rows(prepared.merge.duplicates()):
            return one_key(prepared.id, key, row, prepared.structure.key_compares())
        return duplicate(prepared.id, "unknown")
    line = refusal.copy_line()
    if line is not None:
        place = offset + line - 1
        return _row_error(refusal, prepared, prepared.key_of(place), place)
    if refusal.sqlstate == UNIQUE_VIOLATION:
        return _not_unique(session, refusal, prepared)
    if refusal.sqlstate in FOREIGN_KEY_VIOLATIONS:
        return _row_error(refusal, prepared, _key_by_values(session, refusal, prepared))
    if refusal.about_a_row():
        found = _row_by_halving(session, refusal, prepared)
        return _row_error(refusal, prepared, "" if found is None else prepared.key_of(found), found)
    return _row_error(refusal, prepared, "")


def _not_allowed(session: Session, refusal: Refusal, prepared: Prepared) -> TargetError:
    """We may not write the table, or what runs when we do may not do what it does."""
    ((writable,),) = session.rows(_WRITABLE, [prepared.merge.target])
    if not writable:
        return TargetError(
            f"the target doesn't allow us to write {prepared.id}",
            where=str(prepared.id),
            cause=refusal.cause(),
            remedy=f"GRANT SELECT, INSERT, UPDATE, DELETE ON {prepared.merge.target} to the migration's role",
        )
    return BesideError(
        f"what runs when {prepared.id} is written isn't allowed to us",
        where=str(prepared.id),
        cause=refusal.cause(),
        remedy="grant the migration's role what the server names there, or have the function run as its owner:"
        " ALTER FUNCTION ... SECURITY DEFINER",
    )


def _function(session: Session, refusal: Refusal) -> str:
    """The innermost function of ours that ran, with its schema; empty if none did.

    Of a function in SQL the server tells only the name.
    """
    inner = refusal.context.partition("\n")[0]
    if found := _FUNCTION.search(inner):
        return found[1]
    named = session.rows(_BY_NAME, [inner]) if inner else []
    return str(named[0][0]) if len(named) == 1 else ""


def not_kept(
    session: Session, prepared: Prepared, column: str, row: Sequence[object], query: str
) -> TargetError:
    """A staged value that the server would round or cut.

    Args:
        session: in the open transaction.
        prepared: the rows.
        column: the value's.
        row: the key's values, then the value, as text.
        query: finds it among the staged rows.
    """
    storage, key = prepared.structure.column(column), prepared.structure.table.key
    kind = "" if storage is None else storage.column.native_type
    text = str(row[-1])
    error = TargetError(
        f"a value can't be stored in column {column} of {prepared.id} ({kind}) without loss",
        where=f"{prepared.id}, {key_text(key, list(row[:-1]))}, column {column}, value"
        f" {text if len(text) <= _SHOWN else text[:_SHOWN] + '...'!r}",
        cause=f"{kind} would round it or cut it, of which the server says nothing",
        remedy="round or cut it in the mapping if that is meant, or give the column a wider type; positions are kept,"
        f" nothing was written{CORRECTED_MAPPING}",
    )
    return _of_place(error, prepared, _place_found(session, prepared, query))


def _not_unique(session: Session, refusal: Refusal, prepared: Prepared) -> TargetError:
    found = _DETAIL_KEY.search(refusal.detail)
    key = f"({found[1]})=({found[2]})" if found else ""
    compares = compared_by(session.rows(_COMPARES, [refusal.constraint, prepared.merge.target]))
    error = TargetError(
        f"a new row of {prepared.id} exists already: {key or refusal.message}",
        where=f"{prepared.id}, {key}, constraint {refusal.constraint}",
        cause=f"two source rows map to it, or somebody else wrote it{compares} ({refusal.cause()})",
        remedy="correct the mapping so that each source row has its own key, or remove the foreign row and repair"
        f"{CORRECTED_MAPPING}",
    )
    names = [row[0] for row in session.rows(_INDEXED, [refusal.constraint, prepared.merge.target])]
    unread = not names or any(name not in prepared.merge.written for name in names)
    if found is None or unread or set(names) == set(prepared.structure.table.key):
        return error  # two source rows of one key: neither is bad by itself
    values = [_as_printed(prepared, str(name)) for name in names]
    # The server puts commas between values, and texts may have some: rows of other values aren't meant.
    query = f"SELECT DISTINCT {', '.join(values)} FROM {prepared.merge.staging} s WHERE {_printed(values)}"
    if len(session.rows(query, [found[2]])) != 1:
        return error
    return _of_place(error, prepared, _place_found(session, prepared, query, found[2]))


def _as_printed(prepared: Prepared, name: str) -> str:
    """A staged value as the server prints one of the column: not as a cast to text does (booleans, blanks of
    character(n))."""
    storage, value = prepared.structure.column(name), prepared.merge.value(name)
    stored = value if storage is None else f"CAST({value} AS {storage.cast})"
    return f"pg_catalog.format('%s', {stored})"


def _printed(values: Sequence[str]) -> str:
    return " || ', ' || ".join(values) + " = $1::text"


def _place_found(session: Session, prepared: Prepared, query: str, *parameters: str) -> int | None:
    """The first of the rows that a query finds once they are staged: the server's text of a key may not be ours."""

    def found(first: int, last: int) -> bool:
        session.run(f"SAVEPOINT {quoted(_PROBE)}")
        try:
            session.run(f"DELETE FROM {prepared.merge.staging}")
            session.load(prepared.merge.staging, prepared.for_staging(first, last))
            return bool(session.rows(query, list(parameters)))
        finally:
            session.run(f"ROLLBACK TO SAVEPOINT {quoted(_PROBE)}")

    return first_refused(0, prepared.source.num_rows, found)


def _of_place(error: TargetError, prepared: Prepared, place: int | None) -> TargetError:
    key = None if place is None else key_at(prepared.source, prepared.structure.table.key, place)
    return of_row(error, str(prepared.id), key)


def _row_error(refusal: Refusal, prepared: Prepared, key: str, row: int | None = None) -> TargetError:
    constraint = f", constraint {refusal.constraint}" if refusal.constraint else ""
    column = refusal.column or _target_column(refusal, prepared)
    place = f", column {column}{prepared.value_of(row, column)}" if column else ""
    error = TargetError(
        f"the target refuses a row of {prepared.id}",
        where=f"{prepared.id}{', ' + key if key else ''}{place}{constraint}",
        cause=refusal.cause(),
        remedy=CORRECT_REMEDY,
    )
    if row is None or not refusal.of_content():
        return error
    return _of_place(error, prepared, row)


def _target_column(refusal: Refusal, prepared: Prepared) -> str:
    """The column a refused COPY names; staging columns are called c0, c1, ... in written order."""
    column = refusal.copy_column()
    if not re.search(r"COPY migrator_stage_\d+,", refusal.context):
        return column
    number = column.removeprefix("c")
    return prepared.merge.written[int(number)] if number.isdigit() else ""


def _key_by_values(session: Session, refusal: Refusal, prepared: Prepared) -> str:
    values = _values_of_key(session, refusal, prepared)
    return key_text(prepared.structure.table.key, values) if values else ""


def _values_of_key(session: Session, refusal: Refusal, prepared: Prepared) -> list[object]:
    """The key, as text, of a staged row with the values that the server names; none where it isn't found."""
    found = _DETAIL_KEY.search(refusal.detail)
    names = found[1].split(", ") if found else []
    if found is None or any(name not in prepared.merge.written for name in names):
        return []
    merge, key = prepared.merge, prepared.structure.table.key
    same = " || ', ' || ".join(f"({merge.value(name)})::text" for name in names)
    texts = ", ".join(f"({merge.value(name)})::text" for name in key)
    rows = session.rows(f"SELECT {texts} FROM {merge.staging} s WHERE {same} = $1::text LIMIT 1", [found[2]])
    return list(rows[0]) if rows else []


def _row_by_halving(session: Session, refusal: Refusal, prepared: Prepared) -> int | None:
    """Tries halves of the rows until one refused row is left: twice the work of the batch in all, at most."""
    rows = prepared.source.num_rows
    return first_refused(0, rows, lambda first, last: _refused(session, refusal, prepared, first, last))


def _refused(session: Session, refusal: Refusal, prepared: Prepared, first: int, last: int) -> bool | None:
    session.run(f"SAVEPOINT {quoted(_PROBE)}")
    try:
        session.run(f"DELETE FROM {prepared.merge.staging}")
        session.load(prepared.merge.staging, prepared.for_staging(first, last))
        session.run(prepared.merge.upsert(strict=False))
    except Refusal as found:
        return found.sqlstate == refusal.sqlstate or None
    finally:
        session.run(f"ROLLBACK TO SAVEPOINT {quoted(_PROBE)}")
    return False
