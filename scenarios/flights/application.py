"""The flights application through a cut-over: it writes to whichever side takes its writes.

Each transaction leaves a **receipt** beside what it does: a cancelled flight with a number that no other transaction
has. So an acknowledged transaction that was lost is one receipt too few, on either side, found by plain SQL.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal

from scenarios.database import Database
from scenarios.flights import new_writers
from scenarios.flights.writers import FlightWriters
from scenarios.two_sides import FailsOver
from scenarios.workload import Action, Place, RowWrite, Session

_CARRIER, _DAY, _ORIGIN = "OO", date(2013, 1, 15), "EWR"
"""Carrier, day and origin of all receipts: nothing else changes a flight of this carrier."""
_FIRST = 10_000_000
_CLIENT = 1_000_000
"""Receipts of one client at most."""
_RECEIPTS = {
    "old": f"SELECT flight FROM flights WHERE carrier = '{_CARRIER}' AND flight >= {_FIRST}",
    "new": "SELECT flight_number FROM flight JOIN carrier USING (carrier_id)"
    f" WHERE code = '{_CARRIER}' AND flight_number >= {_FIRST}",
}


class FlightApplication(FailsOver, FlightWriters):
    """Writers that fail over by themselves: who is refused by a fence goes to the other side.

    Args:
        old: the old database, as the application logs in.
        new: the new one.
        seed: decides what each thread draws.
        rate_per_s: row changes per second over all threads.
    """

    exact = True

    def __init__(self, old: Database, new: Database, seed: int, rate_per_s: float):
        # No hot rows here: a row that changes several times a second can only be set aside by a comparison.
        super().__init__(old, seed=seed, rate_per_s=rate_per_s, threads=4, hot_percent=0)
        self._sides = (
            Place(old, _with_receipts(self._actions, _leave_in_old)),
            Place(new, _with_receipts(new_writers.actions(), _leave_in_new)),
        )
        self._open = self._sides[0]


def _with_receipts(actions: Sequence[Action], leave: Callable[[Session, int], None]) -> tuple[Action, ...]:
    return tuple(replace(one, run=_Receipted(one.run, leave)) for one in actions if one.weight)


@dataclass(frozen=True)
class _Receipted:
    run: Callable[[Session], None]
    leave: Callable[[Session, int], None]

    def __call__(self, session: Session) -> None:
        number = session.number()
        receipt = _FIRST + session.client * _CLIENT + number
        self.leave(session, receipt)
        session.note_put("receipt", str(receipt), number)
        self.run(session)


def _leave_in_old(session: Session, receipt: int) -> None:
    session.change(
        "INSERT INTO flights (year, month, day, sched_dep_time, sched_arr_time, carrier, flight, origin, dest,"
        " distance, hour, minute, time_hour) VALUES (%s, %s, %s, 515, 819, %s, %s, %s, 'IAH', 1400, 5, 15,"
        " '2013-01-15T10:00:00Z')",
        *(_DAY.year, _DAY.month, _DAY.day, _CARRIER, receipt, _ORIGIN),
    )


def _leave_in_new(session: Session, receipt: int) -> None:
    parts = (_DAY.year, _DAY.month, _DAY.day, _CARRIER, receipt, _ORIGIN)
    flight = {
        "flight_id": new_writers.identity("flight", *parts),
        "carrier_id": new_writers.identity("carrier", _CARRIER),
        "flight_number": receipt,
        "origin_id": new_writers.identity("place", _ORIGIN),
        "destination_code": "IAH",
        "service_date": _DAY,
        "departs_at": datetime(_DAY.year, _DAY.month, _DAY.day, 10, 15, tzinfo=UTC),
        "arrives_local": datetime(_DAY.year, _DAY.month, _DAY.day, 8, 19),
        "distance_km": Decimal("2253.082"),
        "tail_number": None,
    }
    new_writers.put_cancelled(session, flight)


@dataclass(frozen=True, slots=True)
class Receipts:
    """The fate of the transactions, by their receipts' numbers.

    Attributes:
        acknowledged: transactions whose COMMIT was answered.
        lost: by side, those of them whose receipt isn't there.
        invented: by side, receipts of transactions that were refused or rolled back.
    """

    acknowledged: int
    lost: dict[str, list[int]]
    invented: dict[str, list[int]]

    def kept(self) -> bool:
        """Tells whether each side has just the receipts that it must have, and there are some."""
        return self.acknowledged > 0 and not any([*self.lost.values(), *self.invented.values()])

    def text(self) -> str:
        """One line for people."""
        if self.kept():
            return (
                f"all {self.acknowledged:,} acknowledged transactions are on both sides, and no other one is"
            )
        wrong = [
            f"{len(numbers)} {word} on the {side} side (first: {numbers[0]})"
            for word, sides in (("lost", self.lost), ("not acknowledged and there", self.invented))
            for side, numbers in sides.items()
            if numbers
        ]
        return f"of {self.acknowledged:,} acknowledged transactions: {'; '.join(wrong) or 'none at all'}"


def receipts(writes: Sequence[RowWrite], old: Database, new: Database) -> Receipts:
    """Looks all receipts up on both sides, which must be at rest, by SQL of its own."""
    return judged(writes, {"old": _found(old, "old"), "new": _found(new, "new")})


def judged(writes: Sequence[RowWrite], found: dict[str, set[int]]) -> Receipts:
    """Compares the receipts found on each side with what the clients were told."""
    acknowledged = {int(one.key) for one in writes if one.outcome == "ok"}
    possible = acknowledged | {int(one.key) for one in writes if one.outcome == "unknown"}
    return Receipts(
        len(acknowledged),
        {side: sorted(acknowledged - there) for side, there in found.items()},
        {side: sorted(there - possible) for side, there in found.items()},
    )


def _found(database: Database, side: str) -> set[int]:
    connection = database.connect()
    try:
        cursor = connection.cursor()
        cursor.execute(_RECEIPTS[side])
        return {int(number) for (number,) in cursor.fetchall()}
    finally:
        connection.close()
