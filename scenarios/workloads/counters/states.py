"""Counters and clicks of either side in one snapshot, by SQL of its own, for the judge of a cut-over."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scenarios.database import Connection, Database
from scenarios.workloads.counters.writers import CLICK, TALLY
from verify.two_sides.history import OLD, State


def state(database: Database, side: str, at: int, *, whole: bool = False) -> State:
    """The state of a side; ``whole``: with all rows. Raises the driver's errors, and ``ConnectionFailed``."""
    tallies, clicks = (TALLY.old, CLICK.old) if side == OLD else (TALLY.new, CLICK.new)
    label, counted = ("label", "tally") if side == OLD else ("title", "counter_id")
    connection = database.connect()
    try:
        if database.kind == "postgresql":  # elsewhere it is what a transaction has by itself
            connection.cursor().execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        of_tally = (*tallies.keys, tallies.value, label, tallies.session, tallies.number)
        of_click = (*clicks.keys, counted, clicks.value, clicks.session, clicks.number)
        counters = _rows(connection, tallies.table, of_tally)
        counts = _rows(connection, clicks.table, of_click)
        connection.rollback()
    finally:
        connection.close()
    sums = Counter[int]()
    for _, counter, amount, _, _ in counts:
        sums[int(counter)] += int(amount)
    wrong = [
        f"counter {row[0]} is {row[1]}, its clicks make {sums[int(row[0])]}"
        for row in counters
        if int(row[1]) != sums[int(row[0])]
    ]
    keys = tuple(str(row[0]) for row in counts)
    if not whole:  # an observer asks again and again
        return State(side, at, keys, tuple(wrong))
    rows = [f"counter {_text(row)}" for row in counters] + [f"click {_text(row)}" for row in counts]
    return State(side, at, keys, tuple(wrong), tuple(rows))


def _rows(connection: Connection, table: str, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    cursor = connection.cursor()
    names = ", ".join(f'"{name}"' for name in columns)
    cursor.execute(f'SELECT {names} FROM "{table}" ORDER BY 1')
    return [tuple(row) for row in cursor.fetchall()]


def _text(row: tuple[Any, ...]) -> str:
    return ", ".join(map(str, row))
