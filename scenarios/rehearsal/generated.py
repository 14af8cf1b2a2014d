"""Rows for a database that has none, made up and put to the test by the server itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from scenarios.database import Database
from scenarios.faults.session import SERVER_ERRORS, query
from scenarios.rehearsal.rows import CannotMake, RowMaker
from scenarios.rehearsal.scout import insert
from scenarios.rehearsal.tables import Table, in_order

_SEED = 1
_DRAWS = 8
_PARENTS = 200


@dataclass(frozen=True)
class Filled:
    """The rows that a table got: their number by table, and by table why fewer than wanted."""

    rows: Mapping[str, int]
    fewer: Mapping[str, str]


def empty(database: Database, tables: Collection[str]) -> bool:
    """Tells whether no table has a row."""
    return not any(query(database, f"SELECT 1 FROM {_q(name)} LIMIT 1") for name in tables)


def fill(database: Database, tables: Mapping[str, Table], number: int, seed: int = _SEED) -> Filled:
    """Makes ``number`` rows for every table, parents first."""
    rows, fewer = dict[str, int](), dict[str, str]()
    connection = database.connect(autocommit=True)
    try:
        keys: dict[tuple[str, tuple[str, ...]], list[tuple[object, ...]]] = {}
        for name in in_order(tables, tables):
            table, taken = tables[name], 0
            for count in range(number):
                for draw in range(_DRAWS):
                    try:
                        named = parents(database, table, keys, count + draw * 7)
                        maker = RowMaker(seed + count * _DRAWS + draw)
                        insert(connection, database, table, maker.row(table, count, named))
                    except (CannotMake, *SERVER_ERRORS) as error:
                        fewer[name] = str(error).strip().split("\n")[0]
                        continue
                    taken += 1
                    break
                if count == 20 and not taken:
                    break
            rows[name] = taken
            if taken == number:
                fewer.pop(name, None)
    finally:
        connection.close()
    return Filled(rows, fewer)


def parents(
    database: Database,
    table: Table,
    keys: dict[tuple[str, tuple[str, ...]], list[tuple[object, ...]]],
    number: int,
) -> dict[str, object]:
    """Values for the columns of a table's foreign keys, such that each names a row that is there.

    ``keys``: rows of parents by table and columns, as far as they were asked for. Raises ``CannotMake``.
    """
    found: dict[str, object] = {}
    widest_first = sorted(table.foreign_keys, key=lambda one: -len(one.columns))
    for place, one in enumerate(widest_first):
        if one.parent == table.name:
            known: list[tuple[object, ...]] = []
        else:
            wanted = (one.parent, one.parent_columns)
            if wanted not in keys:
                postgres = database.kind == "postgresql"
                chosen = ", ".join(
                    f"{_q(name)}::text" if postgres else _q(name) for name in one.parent_columns
                )
                keys[wanted] = query(database, f"SELECT {chosen} FROM {_q(one.parent)} LIMIT {_PARENTS}")
            known = [  # a column may be part of several foreign keys
                values
                for values in keys[wanted]
                if all(
                    found.get(name, value) == value for name, value in zip(one.columns, values, strict=True)
                )
            ]
        free = [name for name in one.columns if table.column(name).nullable]
        if not known and not free:
            raise CannotMake(f"{one.parent} has no row that {', '.join(one.columns)} could name")
        if not known:
            found |= {name: None for name in free if name not in found}
            continue
        # Further keys of a row move on at another pace, so that pairs of them differ.
        values = known[(number // (len(known) ** place)) % len(known)]
        for name, value in zip(one.columns, values, strict=True):
            found.setdefault(name, value)
    return found


def _q(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
