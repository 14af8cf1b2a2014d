"""Turns a server's refusal into a ``TargetError`` that names table, constraint or column, and the row's key.

The server names line and column of what it loads. Of a duplicate the row is the first that is refused beside those
before it; for the rest it is found by trying halves of the staged rows inside a savepoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from migrator.adapters.targets.mysql.refusal import DUPLICATE, NO_PRIVILEGE, TOO_LARGE, Refusal
from migrator.adapters.targets.mysql.rows.prepared import Prepared
from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.shared.refused import CORRECT_REMEDY, first_refused, temporary
from migrator.adapters.targets.shared.rows import TELL_APART_REMEDY, compared_by, duplicate, one_key
from migrator.columnar.bad_rows import key_at
from migrator.connections.mysql.settings import PACKET_OVERFLOW
from migrator.errors import CORRECTED_MAPPING, TargetError, of_row

_LOADED_ROW = re.compile(r"\bat row (\d+)")
_LOADED_COLUMN = re.compile(r"'(?:[^']*\.)?c(\d+)'|`c(\d+)`")
_BAD_NULL = re.compile(r"^Column '(.+?)' cannot be null")
_PROBE = "migrator_probe"

Build = Callable[[str], str]
"""A statement over staged rows, given a further condition on ``s.n``."""


def not_loaded(
    session: Session, refusal: Refusal, prepared: Prepared, staged: str, load: Callable[[int, int], None]
) -> TargetError:
    """A row that can't even be staged.

    ``load``: loads rows ``first`` to ``last`` (exclusive) of ``prepared.source`` into ``staged``.
    """
    if refusal.retryable():
        return temporary(refusal)
    if refusal.code == DUPLICATE:
        return _two_staged(session, refusal, prepared, staged, load)
    first, last = _rows_in(prepared, staged)
    found = _LOADED_ROW.search(refusal.message)
    row: int | None = first + refusal.before + int(found[1]) - 1 if found else None
    if row is None:
        session.run(f"DELETE FROM {staged}")
        row = first_refused(first, last, lambda a, b: _refused(session, refusal, lambda: load(a, b)))
    place = _LOADED_COLUMN.search(refusal.message)
    column = prepared.merge.written[int(place[1] or place[2])] if place else ""
    return _row_error(refusal, prepared, row, column)


def _two_staged(
    session: Session, refusal: Refusal, prepared: Prepared, staged: str, load: Callable[[int, int], None]
) -> TargetError:
    """Two rows of one side. Those that look the same were found before they were loaded."""
    shown, key = refusal.duplicate()[0], prepared.structure.table.key
    compares = prepared.structure.key_compares()
    if not compares:
        return duplicate(prepared.id, shown)
    session.run(f"DELETE FROM {staged}")

    def refused(first: int, last: int) -> bool:
        return bool(_refused(session, refusal, lambda: load(first, last)))

    if (pair := _first_pair(*_rows_in(prepared, staged), refused)) is not None:
        values = [prepared.source[name][row].as_py() for row in pair for name in key]
        return one_key(prepared.id, key, values, compares)
    return TargetError(
        f"the target takes two keys of {prepared.id} for one: {shown} is one of them",
        where=f"{prepared.id}, {shown}",
        cause=f"two source rows map to it, and the target's key compares {compares}: the last one would win by"
        " chance",
        remedy=TELL_APART_REMEDY,
    )


def _first_pair(first: int, last: int, refused: Callable[[int, int], bool]) -> tuple[int, int] | None:
    """The first row that isn't taken beside those before it, and which of these it isn't taken beside; None where
    all rows from ``first`` to ``last`` (exclusive) are taken now."""
    if not refused(first, last):
        return None
    taken, end = first + 1, last
    while end - taken > 1:
        middle = (taken + end) // 2
        taken, end = (taken, middle) if refused(first, middle) else (middle, end)
    begin, free = first, end - 1
    while free - begin > 1:
        middle = (begin + free) // 2
        begin, free = (middle, free) if refused(middle, end) else (begin, middle)
    return begin, end - 1


def not_merged(
    session: Session, refusal: Refusal, prepared: Prepared, staged: str, build: Build
) -> TargetError:
    """A statement that the server refused. The session must be in a usable transaction, the statement undone."""
    if refusal.retryable():
        return temporary(refusal)
    if refusal.code in NO_PRIVILEGE:
        return TargetError(
            f"the target doesn't allow us to write {prepared.id}",
            where=str(prepared.id),
            cause=refusal.cause(),
            remedy=f"GRANT SELECT, INSERT, UPDATE, DELETE ON {prepared.merge.target} to the migration's user",
        )
    if refusal.code == DUPLICATE:
        row, found = _first_in_order(session, refusal, prepared, staged, build)
        if found.code == DUPLICATE:
            return _not_unique(found, prepared, row)
        refusal = found  # a row before it is bad by itself: that one is told first
    null = _BAD_NULL.match(refusal.message)

    def refused(first: int, last: int) -> bool | None:
        statement = build(f" AND s.n >= {first:d} AND s.n < {last:d}")
        return _refused(session, refusal, lambda: session.run(statement))

    row = first_refused(*_rows_in(prepared, staged), refused)
    return _row_error(refusal, prepared, row, null[1] if null else "", refusal.constraint())


def _first_in_order(
    session: Session, refusal: Refusal, prepared: Prepared, staged: str, build: Build
) -> tuple[int | None, Refusal]:
    """The first row that is refused beside those before it, and its refusal: what the server prints of values is cut,
    and bytes are spelled. None where all are taken now."""
    begin, end = _rows_in(prepared, staged)
    taken, refused, found = begin, end + 1, refusal
    while refused - taken > 1:
        middle = (taken + refused) // 2
        statement = build(f" AND s.n >= {begin:d} AND s.n < {middle:d}")
        met = _met(session, lambda statement=statement: session.run(statement))  # type: ignore[misc]
        if met is None:
            taken = middle
        else:
            refused, found = middle, met
    return (taken if taken < end else None), found


def _not_unique(refusal: Refusal, prepared: Prepared, row: int | None) -> TargetError:
    values, index = refusal.duplicate()
    names = dict(prepared.structure.indexes).get(index, ())
    shown = f"({', '.join(names)})=({values})"
    key = "" if row is None else prepared.key_of(row)
    ours = None
    if row is not None and names and set(names) != set(prepared.merge.key):
        ours = key_at(prepared.source, prepared.merge.key, row)  # else two source rows have one key
    storages = [prepared.structure.column(name) for name in names]
    compares = compared_by(
        [
            (one.column.name, one.collation or None, one.column.native_type)
            for one in storages
            if one is not None and not one.exact
        ]
    )
    error = TargetError(
        f"a new row of {prepared.id} exists already: {shown}",
        where=f"{prepared.id}{', ' + key if key else ''}, {shown}, constraint {index}",
        cause=f"two source rows map to it, or somebody else wrote it{compares} ({refusal.cause()})",
        remedy="correct the mapping so that each source row has its own key, or remove the foreign row and repair"
        f"{CORRECTED_MAPPING}",
    )
    return of_row(error, str(prepared.id), ours)


def _row_error(
    refusal: Refusal, prepared: Prepared, row: int | None, column: str = "", constraint: str = ""
) -> TargetError:
    key = "" if row is None else prepared.key_of(row)
    place = f"column {column}{prepared.value_of(row, column)}" if column else ""
    parts = [key, place, f"constraint {constraint}" if constraint else ""]
    error = TargetError(
        f"the target refuses a row of {prepared.id}",
        where=", ".join([str(prepared.id), *(part for part in parts if part)]),
        cause=refusal.cause(),
        remedy="on the target: SET GLOBAL max_allowed_packet = 1073741824, then start the run again"
        if refusal.code in (TOO_LARGE, PACKET_OVERFLOW)
        else CORRECT_REMEDY,
    )
    if row is None or not refusal.of_content():
        return error
    return of_row(error, str(prepared.id), key_at(prepared.source, prepared.merge.key, row))


def _rows_in(prepared: Prepared, staged: str) -> tuple[int, int]:
    """First row and end of what a staging table holds; nothing of an unknown one."""
    return next((place[1:] for place in prepared.staged() if place[0] == staged), (0, 0))


def _refused(session: Session, refusal: Refusal, attempt: Callable[[], object]) -> bool | None:
    """Tells whether an attempt is refused likewise; None where it is refused for something else."""
    met = _met(session, attempt)
    return False if met is None else met.code == refusal.code or None


def _met(session: Session, attempt: Callable[[], object]) -> Refusal | None:
    """Returns the refusal that an attempt meets, which is undone; None where it meets none."""
    session.run(f"SAVEPOINT {_PROBE}")
    met = None
    try:
        attempt()
    except Refusal as found:
        if found.retryable():  # the transaction may be over: a statement now would be in another one
            raise
        met = found
    session.run(f"ROLLBACK TO SAVEPOINT {_PROBE}")
    return met
