"""The old application at work: seeded concurrent writers for the flights database, on either engine.

The last day of the year is kept for the *hot rows*: a few flights that all threads update all the time, two by
two in one transaction, and only by raising ``air_time``. So at any true state of the database each hot value is at
least what it was at any earlier one, and the two of a pair always differ by the same amount.
"""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from scenarios.database import Database
from scenarios.flights.draws import anything, as_instruments_do, day
from scenarios.workload import Action, RollBack, Session, Workload

Row = dict[str, Any]

FLIGHT_KEY = ("year", "month", "day", "carrier", "flight", "origin")
FLIGHT_COLUMNS = (
    "year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time", "arr_delay",
    "carrier", "flight", "tailnum", "origin", "dest", "air_time", "distance", "hour", "minute", "time_hour",
)  # fmt: skip
WEATHER_KEY = ("origin", "year", "month", "day", "hour", "isdst")
WEATHER_COLUMNS = (
    *WEATHER_KEY, "temp", "dewp", "humid", "wind_dir", "wind_speed", "wind_gust", "precip", "pressure", "visib",
)  # fmt: skip
CARRIERS = ("9E", "AA", "B6", "DL", "EV", "FL", "MQ", "UA", "US", "VX", "WN")
_TYPE_BY_ENGINES = (
    ", type = CASE WHEN type = 'Rotorcraft' THEN type WHEN %s = 1 THEN 'Fixed wing single engine'"
    " ELSE 'Fixed wing multi engine' END"
)
HOT_DAY = (2013, 12, 31)
HOT_ROWS = 8
_NEW_YORK = ZoneInfo("America/New_York")
_REMEMBERED_ROWS = 200
_MINUTES_A_DAY = 1440


class FlightWriters(Workload):
    """The flights application's writers: :class:`~scenarios.workload.Workload` with its actions.

    Args:
        database: a database filled by :mod:`scenarios.flights.old_schema`.
        seed: decides what each thread draws.
        rate_per_s: row changes per second over all threads; None for as fast as it goes.
        threads: number of writers, each with its own connection.
        hot_percent: share of transactions that go to the hot rows; 0 to 100.
        limit_row_changes: stop by itself after about so many row changes.
    """

    def __init__(
        self,
        database: Database,
        seed: int = 1,
        rate_per_s: float | None = 500.0,
        threads: int = 4,
        *,
        hot_percent: int = 10,
        limit_row_changes: int | None = None,
    ):
        self._removed: deque[Row] = deque(maxlen=_REMEMBERED_ROWS)
        self._hot: list[tuple[Any, ...]] = []
        self._hot_lock = threading.Lock()
        usual = self._usual_actions()
        total = sum(action.weight for action in usual)
        # Weights are whole numbers: everything times 100, shared out by the percentage.
        actions = [Action(a.name, a.weight * (100 - hot_percent), a.run) for a in usual]
        actions.append(Action("raise hot pair", total * hot_percent, self._raise_hot_pair))
        super().__init__(
            database,
            actions,
            seed=seed,
            rate_per_s=rate_per_s,
            threads=threads,
            limit_row_changes=limit_row_changes,
        )

    def _usual_actions(self) -> list[Action]:
        actions: dict[str, tuple[int, Callable[[Session], None]]] = {
            "report times": (30, _report_times),
            "change aircraft": (10, _change_aircraft),
            "cancel": (6, _cancel),
            "divert": (3, _divert),
            "retime": (4, _retime),
            "add flights": (8, _add_flights),
            "remove flight": (5, self._remove_flight),
            "put flight back": (4, self._put_back),
            "replace flight": (4, _replace_flight),
            "renumber": (5, _renumber),
            "swap numbers": (3, _swap_numbers),
            "ground fleet": (1, _ground_fleet),
            "correct weather": (10, _correct_weather),
            "replace weather": (2, _replace_weather),
            "overhaul aircraft": (4, _overhaul),
            "register aircraft": (3, _register_aircraft),
            "retire aircraft": (1, _retire_aircraft),
            "rename carrier": (1, _rename_carrier),
            "survey airport": (1, _survey_airport),
            "change mind": (5, _change_mind),
        }
        return [Action(name, weight, run) for name, (weight, run) in actions.items()]

    def _remove_flight(self, session: Session) -> None:
        for row in _flights(session, 1):
            if _delete_flight(session, row):
                self._removed.append(row)

    def _put_back(self, session: Session) -> None:
        """Insert a flight that was removed some time ago; refused if its removal was undone meanwhile."""
        try:
            row = self._removed.popleft()
        except IndexError:
            return
        _insert_flight(session, _with_times(row, session.rng))

    def _raise_hot_pair(self, session: Session) -> None:
        with self._hot_lock:
            if not self._hot:
                self._hot = hot_keys(session)
        if not self._hot:
            return
        first = session.rng.randrange(len(self._hot) // 2) * 2
        for key in self._hot[first : first + 2]:
            session.change(f"UPDATE flights SET air_time = air_time + 1 WHERE {_is(FLIGHT_KEY)}", *key)


def hot_keys(session: Session) -> list[tuple[Any, ...]]:
    """Natural keys of the hot flights, pair after pair: an even number of them, possibly none."""
    keys = session.rows(
        f"SELECT {', '.join(FLIGHT_KEY)} FROM flights WHERE year = %s AND month = %s AND day = %s"
        " AND dep_time IS NOT NULL AND arr_time IS NOT NULL AND arr_delay IS NOT NULL AND air_time IS NOT NULL"
        f" ORDER BY carrier, flight, origin LIMIT {HOT_ROWS}",
        *HOT_DAY,
    )
    return keys[: len(keys) // 2 * 2]


def _report_times(session: Session) -> None:
    for row in _flights(session, 1):
        _update_flight(session, row, _with_times(row, session.rng))


def _change_aircraft(session: Session) -> None:
    for row in _flights(session, session.rng.randint(1, 3)):
        tail = session.rng.choice(
            ["", f"N{session.rng.randint(100, 999)}UA", f"N{session.rng.randint(1, 9)}DL"]
        )
        _update_flight(session, row, row | {"tailnum": tail})


def _cancel(session: Session) -> None:
    gone = dict.fromkeys(("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"))
    for row in _flights(session, 1):
        _update_flight(session, row, row | gone)


def _divert(session: Session) -> None:
    for row in _flights(session, 1):
        landed = session.rng.choice([None, _clock(session.rng.randrange(_MINUTES_A_DAY))])
        departed = row if row["dep_time"] is not None else _with_times(row, session.rng)
        _update_flight(session, row, departed | {"arr_time": landed, "arr_delay": None, "air_time": None})


def _retime(session: Session) -> None:
    """A new time of departure, also at hours that the clock skips or shows twice."""
    for row in _flights(session, 1):
        hour, minute = session.rng.randrange(24), session.rng.randrange(60)
        planned = {"sched_dep_time": hour * 100 + minute, "hour": hour, "minute": minute}
        moved = row | planned | {"time_hour": _time_hour(row, hour)}
        _update_flight(session, row, moved if row["dep_time"] is None else _with_times(moved, session.rng))


def _add_flights(session: Session) -> None:
    for row in _flights(session, session.rng.randint(1, 4)):
        added = row | {"flight": session.rng.randint(10_000, 99_999)}
        _insert_flight(session, _with_times(added, session.rng))


def _replace_flight(session: Session) -> None:
    """The same key deleted and inserted in one transaction."""
    for row in _flights(session, 1):
        if _delete_flight(session, row):
            _insert_flight(session, _with_times(row, session.rng))


def _renumber(session: Session) -> None:
    for row in _flights(session, 1):
        _update_flight(session, row, row | {"flight": session.rng.randint(10_000, 99_999)})


def _swap_numbers(session: Session) -> None:
    """Two flights take each other's key, by way of a number that nobody uses."""
    rows = _flights(session, 2)
    if len(rows) < 2 or rows[0]["flight"] == rows[1]["flight"]:
        return
    one, two = rows
    parked = one | {"flight": session.rng.randint(1_000_000, 8_000_000)}
    _update_flight(session, one, parked)
    _update_flight(session, two, two | {"flight": one["flight"], "origin": one["origin"]})
    _update_flight(session, parked, parked | {"flight": two["flight"], "origin": two["origin"]})


def _ground_fleet(session: Session) -> None:
    """Some dozen rows in one statement."""
    session.change(
        "UPDATE flights SET tailnum = '' WHERE year = %s AND month = %s AND day = %s AND carrier = %s"
        " AND tailnum <> ''",
        *day(session.rng, session.exact),
        session.rng.choice(CARRIERS),
    )


def _correct_weather(session: Session) -> None:
    rng = session.rng
    for row in _weather(session):
        measured = as_instruments_do(rng) if session.exact else anything(rng)
        changed = rng.sample(sorted(measured), rng.randint(1, len(measured)))
        settings = ", ".join(f"{name} = %s" for name in changed)
        values = [measured[name] for name in changed]
        session.change(
            f"UPDATE weather SET {settings} WHERE {_is(WEATHER_KEY)}", *values, *_values(row, WEATHER_KEY)
        )


def _replace_weather(session: Session) -> None:
    for row in _weather(session):
        if session.change(f"DELETE FROM weather WHERE {_is(WEATHER_KEY)}", *_values(row, WEATHER_KEY)):
            _insert(session, "weather", row | {"visib": f"{session.rng.uniform(0, 10):.2f}"})


def _overhaul(session: Session) -> None:
    """An aircraft and its flights of one day, in one transaction over two tables."""
    for row in _flights(session, 1):
        engines, speed = session.rng.randint(1, 4), session.rng.choice([None, session.rng.randint(90, 600)])
        year = session.rng.choice([0, session.rng.randint(1956, 2013)])
        more = _TYPE_BY_ENGINES if session.exact else ""
        session.change(
            f"UPDATE planes SET engines = %s, speed = %s, year = %s{more} WHERE tailnum = %s",
            engines,
            speed,
            year,
            *([engines] if more else []),
            row["tailnum"],
        )
        session.change(
            "UPDATE flights SET distance = distance + 1 WHERE year = %s AND month = %s AND day = %s"
            " AND tailnum = %s AND tailnum <> ''",
            *_values(row, ("year", "month", "day")),
            row["tailnum"],
        )


def _register_aircraft(session: Session) -> None:
    """A new aircraft, which some flights then use."""
    rng = session.rng
    tail = f"X{rng.randint(0, 99_999):05}"
    maker, model = rng.choice(
        [("BOEING", "787-9"), ("AIRBUS INDUSTRIE", "A320-214"), ("PIPER", "PA-32RT-300")]
    )
    row = {"tailnum": tail, "year": rng.choice([0, 2013]), "type": "Fixed wing multi engine", "engines": 2}
    row |= {"manufacturer": maker, "model": model, "seats": rng.randint(2, 400), "speed": None}
    _insert(session, "planes", row | {"engine": rng.choice(["Turbo-fan", "4 Cycle"])})
    for flight in _flights(session, 2):
        _update_flight(session, flight, flight | {"tailnum": tail})


def _retire_aircraft(session: Session) -> None:
    tail = f"X{session.rng.randint(0, 99_999):05}"
    for (found,) in session.rows(
        "SELECT tailnum FROM planes WHERE tailnum >= %s ORDER BY tailnum LIMIT 1", tail
    ):
        session.change("DELETE FROM planes WHERE tailnum = %s", found)


def _rename_carrier(session: Session) -> None:
    carrier = session.rng.choice(CARRIERS)
    for (name,) in session.rows("SELECT name FROM airlines WHERE carrier = %s", carrier):
        words = [word for word in name.split() if not word.isdigit()]
        renamed = " ".join([words[0], str(session.rng.randint(1, 999)), *words[1:]])
        session.change("UPDATE airlines SET name = %s WHERE carrier = %s", renamed, carrier)


def _survey_airport(session: Session) -> None:
    code = "".join(session.rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=3))
    for (found,) in session.rows("SELECT faa FROM airports WHERE faa >= %s ORDER BY faa LIMIT 1", code):
        session.change(
            "UPDATE airports SET alt = %s, dst = %s, tzone = %s WHERE faa = %s",
            session.rng.randint(-50, 9000),
            session.rng.choice("ANU"),
            session.rng.choice(["\\N", "America/Chicago", "Pacific/Honolulu"]),
            found,
        )


def _change_mind(session: Session) -> None:
    _report_times(session)
    _add_flights(session)
    _correct_weather(session)
    raise RollBack


def _flights(session: Session, count: int) -> list[Row]:
    """Selects up to ``count`` neighbouring flights of one carrier and day; none if there are none."""
    rows = session.rows(
        f"SELECT {', '.join(FLIGHT_COLUMNS)} FROM flights WHERE year = %s AND month = %s AND day = %s"
        " AND carrier = %s AND flight >= %s ORDER BY flight, origin LIMIT %s",
        *day(session.rng, session.exact),
        session.rng.choice(CARRIERS),
        session.rng.randint(1, 5000),
        count,
    )
    return [dict(zip(FLIGHT_COLUMNS, row, strict=True)) for row in rows]


def _weather(session: Session) -> list[Row]:
    rng = session.rng
    rows = session.rows(
        f"SELECT {', '.join(WEATHER_COLUMNS)} FROM weather WHERE origin = %s AND year = %s AND month = %s"
        " AND day = %s AND hour >= %s ORDER BY hour, isdst LIMIT 1",
        rng.choice(("EWR", "JFK", "LGA")),
        *day(rng, session.exact),
        rng.randint(0, 23),
    )
    return [dict(zip(WEATHER_COLUMNS, row, strict=True)) for row in rows]


def _update_flight(session: Session, before: Row, after: Row) -> int:
    changed = [name for name in FLIGHT_COLUMNS if before[name] != after[name]]
    if not changed:
        return 0
    settings = ", ".join(f"{name} = %s" for name in changed)
    return session.change(
        f"UPDATE flights SET {settings} WHERE {_is(FLIGHT_KEY)}",
        *_values(after, changed),
        *_values(before, FLIGHT_KEY),
    )


def _delete_flight(session: Session, row: Row) -> int:
    return session.change(f"DELETE FROM flights WHERE {_is(FLIGHT_KEY)}", *_values(row, FLIGHT_KEY))


def _insert_flight(session: Session, row: Row) -> None:
    _insert(session, "flights", row)


def _insert(session: Session, table: str, row: Row) -> None:
    places = ", ".join(["%s"] * len(row))
    session.change(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())


def _with_times(row: Row, rng: random.Random) -> Row:
    """The flight with new actual times, clocks and delays agreeing as they do in the real data."""
    dep_delay = rng.choice([rng.randint(-20, 15), rng.randint(-20, 120), rng.randint(-60, 1300)])
    arr_delay = dep_delay + rng.randint(-30, 30)
    return row | {
        "dep_delay": dep_delay,
        "dep_time": _clock(_minutes(row["sched_dep_time"]) + dep_delay),
        "arr_delay": arr_delay,
        "arr_time": _clock(_minutes(row["sched_arr_time"]) + arr_delay),
        "air_time": rng.randint(20, 700),
    }


def _minutes(hhmm: int) -> int:
    return hhmm // 100 * 60 + hhmm % 100


def _clock(minutes: int) -> int:
    """Minutes since some midnight as hhmm; midnight itself is 2400, as the old system writes it."""
    hour, minute = divmod(minutes % _MINUTES_A_DAY, 60)
    return hour * 100 + minute or 2400


def _time_hour(row: Row, hour: int) -> str:
    local = datetime(row["year"], row["month"], row["day"], hour, tzinfo=_NEW_YORK)
    return local.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is(names: Sequence[str]) -> str:
    return " AND ".join(f"{name} = %s" for name in names)


def _values(row: Row, names: Sequence[str]) -> list[Any]:
    return [row[name] for name in names]
