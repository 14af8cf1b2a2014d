"""The new application at work: the transactions of ``writers.py`` as they are done in the new schema.

A flight is several rows here, which one function keeps in step. Values are such as the old schema can hold: whole
feet, miles and knots, and no flight near a change of clocks.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from scenarios.flights.draws import MPH_PER_KNOT, as_instruments_do, day
from scenarios.flights.writers import CARRIERS
from scenarios.workload import Action, RollBack, Session

Row = dict[str, Any]

NAMESPACES = {
    name: uuid.UUID(f"6a3e0f5c-52f1-5c3b-9a56-0d3f4b8b7a0{number}")
    for number, name in enumerate(("carrier", "place", "aircraft", "flight", "directory"), start=1)
}
_LATE_MIN = 15
_PLAN = (
    "flight_id", "carrier_id", "flight_number", "origin_id", "destination_code", "service_date", "departs_at",
    "arrives_local", "distance_km", "tail_number", "status",
)  # fmt: skip
_OUTCOMES = ("departure", "arrival", "diversion", "cancellation", "delay")
_MS_PER_MPH = Decimal("0.44704")


def identity(namespace: str, *parts: object) -> uuid.UUID:
    """The key of a row, from the natural key of what it stands for."""
    return uuid.uuid5(NAMESPACES[namespace], "|".join(map(str, parts)))


def actions() -> list[Action]:
    """The new application's transactions, by weight."""
    found: dict[str, tuple[int, Callable[[Session], None]]] = {
        "report times": (30, _report_times),
        "change aircraft": (10, _change_aircraft),
        "cancel": (6, _cancel),
        "divert": (3, _divert),
        "add flights": (8, _add_flights),
        "remove flight": (5, _remove_flight),
        "renumber": (5, _renumber),
        "correct weather": (10, _correct_weather),
        "overhaul aircraft": (4, _overhaul),
        "register aircraft": (3, _register_aircraft),
        "retire aircraft": (1, _retire_aircraft),
        "rename carrier": (1, _rename_carrier),
        "survey airport": (1, _survey_airport),
        "change mind": (5, _change_mind),
    }
    return [Action(name, weight, run) for name, (weight, run) in found.items()]


def put_cancelled(session: Session, flight: Row) -> None:
    """Inserts a cancelled flight: a row of the plan's columns but its status."""
    _insert(session, "flight", flight | {"status": "cancelled"})
    _insert(session, "cancellation", _cancellation(flight))


def _report_times(session: Session) -> None:
    for flight in _flights(session, 1):
        _store(session, flight, *_times(session))


def _change_aircraft(session: Session) -> None:
    rng = session.rng
    for flight in _flights(session, rng.randint(1, 3)):
        tail = rng.choice([None, f"N{rng.randint(100, 999)}UA", f"N{rng.randint(1, 9)}DL"])
        _assign(session, flight, tail)


def _assign(session: Session, flight: Row, tail: str | None) -> None:
    known = tail is not None
    session.change("UPDATE flight SET tail_number = %s WHERE flight_id = %s", tail, flight["flight_id"])
    session.change(
        "UPDATE cancellation SET aircraft_known = %s WHERE flight_id = %s", known, flight["flight_id"]
    )


def _cancel(session: Session) -> None:
    for flight in _flights(session, 1):
        _store(session, flight, None, None, None)


def _divert(session: Session) -> None:
    for flight in _flights(session, 1):
        minute = session.rng.randrange(1440)
        landed = session.rng.choice([None, f"{minute // 60:02}:{minute % 60:02}"])
        _store(session, flight, _times(session)[0], None, None, landed)


def _add_flights(session: Session) -> None:
    for flight in _flights(session, session.rng.randint(1, 4)):
        _store_anew(session, flight, session.rng.randint(10_000, 99_999))


def _remove_flight(session: Session) -> None:
    for flight in _flights(session, 1):
        _remove(session, flight)


def _renumber(session: Session) -> None:
    """Another number makes another key: the flight's rows are removed, and made again with it."""
    for flight in _flights(session, 1):
        _remove(session, flight)
        _store_anew(session, flight, session.rng.randint(10_000, 99_999))


def _correct_weather(session: Session) -> None:
    rng = session.rng
    read = {name: None if value is None else Decimal(value) for name, value in as_instruments_do(rng).items()}
    suspect = read["wind_speed"] is not None and read["wind_speed"] > 260
    found = session.rows(
        "SELECT observation_id FROM weather_observation"
        " WHERE observed_at >= make_date(%s, %s, %s) + interval '8 hours'"
        " AND observation_id %% 46656 = %s ORDER BY observed_at LIMIT 1",
        *day(rng, exact=True),
        int(rng.choice(("EWR", "JFK", "LGA")), 36),
    )
    for (observation,) in found:
        session.change(
            "UPDATE weather_observation SET temperature_c = %s, wind_speed_ms = %s, is_wind_suspect = %s,"
            " wind_gust_ms = %s, pressure_hpa = %s WHERE observation_id = %s",
            None if read["temp"] is None else (read["temp"] - 32) * 5 / 9,
            None if suspect else _metres(read["wind_speed"]),
            suspect,
            None if read["wind_gust"] == Decimal("999.9") else _metres(read["wind_gust"]),
            None if read["pressure"] == Decimal("9999.9") else read["pressure"],
            observation,
        )


def _metres(mph: Decimal | None) -> Decimal | None:
    return None if mph is None else round(mph / MPH_PER_KNOT) * MPH_PER_KNOT * _MS_PER_MPH


def _overhaul(session: Session) -> None:
    rng = session.rng
    tail = f"N{rng.randint(100, 999)}"
    for aircraft, kind in session.rows(
        "SELECT aircraft_id, kind FROM aircraft WHERE tail_number >= %s ORDER BY tail_number LIMIT 1", tail
    ):
        speed = rng.choice([None, rng.randint(90, 600) * Decimal("1.609344")])
        session.change(
            "UPDATE aircraft SET cruise_speed_kmh = %s, built_year = %s WHERE aircraft_id = %s",
            speed,
            rng.choice([None, rng.randint(1956, 2013)]),
            aircraft,
        )
        engines = session.rows("SELECT max(design) FROM aircraft_engine WHERE aircraft_id = %s", aircraft)
        session.change("DELETE FROM aircraft_engine WHERE aircraft_id = %s", aircraft)
        _put_engines(session, aircraft, engines[0][0], 1 if kind == "rotorcraft" else rng.randint(1, 4))


def _put_engines(session: Session, aircraft: uuid.UUID, design: str, count: int) -> None:
    for position in range(1, count + 1):
        row = {"aircraft_id": aircraft, "position": position, "design": design}
        _insert(session, "aircraft_engine", row | {"is_turbine": design.startswith("Turbo")})


def _register_aircraft(session: Session) -> None:
    rng = session.rng
    tail = f"Y{rng.randint(0, 99_999):05}"
    aircraft = identity("aircraft", tail)
    maker, model = rng.choice([("BOEING", "787-9"), ("AIRBUS", "A320-214"), ("PIPER", "PA-32RT-300")])
    row = {"aircraft_id": aircraft, "tail_number": tail, "kind": "aeroplane", "manufacturer": maker}
    row |= {"model": model, "built_year": rng.choice([None, 2013]), "seats": rng.randint(2, 400)}
    _insert(session, "aircraft", row)
    _put_engines(session, aircraft, rng.choice(["Turbo-fan", "4 Cycle"]), 2)
    entry = {"entry_id": identity("directory", "aircraft", tail), "kind": "aircraft", "code": tail}
    _insert(session, "directory_entry", entry | {"label": f"{maker} {model}"})
    for flight in _flights(session, 2):
        _assign(session, flight, tail)


def _retire_aircraft(session: Session) -> None:
    tail = f"X{session.rng.randint(0, 99_999):05}"
    for (found,) in session.rows(
        "SELECT tail_number FROM aircraft WHERE tail_number >= %s ORDER BY tail_number LIMIT 1", tail
    ):
        session.change("DELETE FROM aircraft_engine WHERE aircraft_id = %s", identity("aircraft", found))
        session.change("DELETE FROM aircraft WHERE tail_number = %s", found)
        session.change("DELETE FROM directory_entry WHERE kind = 'aircraft' AND code = %s", found)


def _rename_carrier(session: Session) -> None:
    carrier = session.rng.choice(CARRIERS)
    for name, legal in session.rows("SELECT name, legal_form FROM carrier WHERE code = %s", carrier):
        words = [word for word in name.split() if not word.isdigit()]
        renamed = " ".join([words[0], str(session.rng.randint(1, 999)), *words[1:]])
        session.change("UPDATE carrier SET name = %s WHERE code = %s", renamed, carrier)
        session.change(
            "UPDATE directory_entry SET label = %s WHERE kind = 'carrier' AND code = %s",
            " ".join(filter(None, [renamed, legal])),
            carrier,
        )


def _survey_airport(session: Session) -> None:
    rng = session.rng
    code = "".join(rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=3))
    session.change(
        "UPDATE place SET elevation_m = %s, observes_dst = %s, time_zone = %s"
        " WHERE code = (SELECT min(code) FROM place WHERE code >= %s)",
        rng.randint(-50, 9000) * Decimal("0.3048"),
        rng.choice([True, False, None]),
        rng.choice([None, "America/Chicago", "Pacific/Honolulu"]),
        code,
    )


def _change_mind(session: Session) -> None:
    _report_times(session)
    _add_flights(session)
    _correct_weather(session)
    raise RollBack


def _flights(session: Session, count: int) -> list[Row]:
    """Selects up to ``count`` neighbouring flights of one carrier and day, as the plan has them."""
    rows = session.rows(
        f"SELECT {', '.join(_PLAN)} FROM flight WHERE service_date = make_date(%s, %s, %s) AND carrier_id = %s"
        " AND flight_number >= %s ORDER BY flight_number, origin_id LIMIT %s FOR UPDATE",
        *day(session.rng, exact=True),
        identity("carrier", session.rng.choice(CARRIERS)),
        session.rng.randint(1, 5000),
        count,
    )
    return [dict(zip(_PLAN, row, strict=True)) for row in rows]


def _times(session: Session) -> tuple[int, int, int]:
    """Delays of departure and arrival, and the time in the air, in minutes."""
    rng = session.rng
    late = rng.choice([rng.randint(-20, 15), rng.randint(-20, 120), rng.randint(-60, 600)])
    return late, late + rng.randint(-30, 30), rng.randint(20, 700)


def _store_anew(session: Session, flight: Row, number: int) -> None:
    """The same flight under another number, flown."""
    [[carrier, origin]] = session.rows(
        "SELECT c.code, p.code FROM carrier c, place p WHERE carrier_id = %s AND place_id = %s",
        flight["carrier_id"],
        flight["origin_id"],
    )
    date = flight["service_date"]
    added = flight | {
        "flight_number": number,
        "flight_id": identity("flight", date.year, date.month, date.day, carrier, number, origin),
    }
    _insert(session, "flight", added)
    _store(session, added, *_times(session))


def _store(
    session: Session,
    flight: Row,
    late: int | None,
    arrived_late: int | None,
    air: int | None,
    clock: Any = None,
) -> None:
    """Brings all rows of a flight to one outcome: cancelled without ``late``, diverted without ``arrived_late``."""
    status = "cancelled" if late is None else "diverted" if arrived_late is None else "flown"
    key = flight["flight_id"]
    session.change("UPDATE flight SET status = %s WHERE flight_id = %s", status, key)
    _remove_outcomes(session, flight)
    if late is None:
        _insert(session, "cancellation", _cancellation(flight))
        return
    departed: datetime = flight["departs_at"] + timedelta(minutes=late)
    _insert(session, "departure", {"flight_id": key, "departed_at": departed, "delay_min": late})
    if arrived_late is None:
        _insert(session, "diversion", {"flight_id": key, "departed_at": departed, "landed_clock": clock})
    else:
        landed = flight["arrives_local"] + timedelta(minutes=arrived_late)
        row = {"flight_id": key, "landed_local": landed, "delay_min": arrived_late}
        _insert(session, "arrival", row | {"air_time_min": air})
    for phase, minutes in (("departure", late), ("arrival", arrived_late)):
        if minutes is not None and minutes > _LATE_MIN:
            _insert(session, "delay", {"flight_id": key, "phase": phase, "minutes": minutes})


def _cancellation(flight: Row) -> Row:
    known = flight["tail_number"] is not None
    return {"flight_id": flight["flight_id"], "planned_at": flight["departs_at"], "aircraft_known": known}


def _remove(session: Session, flight: Row) -> None:
    _remove_outcomes(session, flight)
    session.change("DELETE FROM flight WHERE flight_id = %s", flight["flight_id"])


def _remove_outcomes(session: Session, flight: Row) -> None:
    for table in _OUTCOMES:
        session.change(f"DELETE FROM {table} WHERE flight_id = %s", flight["flight_id"])


def _insert(session: Session, table: str, row: Row) -> None:
    places = ", ".join(["%s"] * len(row))
    session.change(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({places})", *row.values())
