"""The old rental shop at work: seeded concurrent writers whose changes are hard to follow, on MariaDB or MySQL.

Some change the key of a new row, some reach other tables by a foreign key's action (which the engine makes by
itself, and many versions do not write to the binary log), and some touch a row that hundreds of new rows are
made from.
"""

from __future__ import annotations

import random
from typing import Any, ClassVar

from scenarios.session import RollBack, Session
from scenarios.stories.writers import StoryWriters, renumber

_CUSTOMERS, _FILMS, _RENTALS, _ITEMS = 599, 1000, 16_049, 4581
_FREE_RENTALS = (100_000, 2_000_000_000)
_FREE_FILMS = (32_768, 39_999)
"""Ids beyond those of the dump. The extra rows take the last id of most types, so none comes by itself."""

_FREE_CUSTOMERS = (10_000, 60_000)
_FREE_PAYMENTS = (20_000, 60_000)
_LAX = "SET SESSION sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'"
_STRICT = "SET SESSION sql_mode = 'TRADITIONAL,ANSI_QUOTES'"


def _rent(session: Session) -> None:
    """A rental and its payment, in one transaction over two tables."""
    rng = session.rng
    rental_id, item, customer = (
        rng.randint(*_FREE_RENTALS),
        rng.randint(1, _ITEMS),
        rng.randint(1, _CUSTOMERS),
    )
    rented = session.change(
        "INSERT IGNORE INTO rental (rental_id, rental_date, inventory_id, customer_id, staff_id)"
        " SELECT %s, %s, inventory_id, %s, %s FROM inventory WHERE inventory_id = %s",
        rental_id,
        _time(rng),
        customer,
        rng.randint(1, 2),
        item,
    )
    if rented:
        _pay(session, rental_id, customer)


def _pay_for_nothing(session: Session) -> None:
    _pay(session, None, session.rng.randint(1, _CUSTOMERS))


def _pay(session: Session, rental_id: int | None, customer: int) -> None:
    rng = session.rng
    session.change(
        "INSERT IGNORE INTO payment (payment_id, customer_id, staff_id, rental_id, amount, payment_date)"
        " SELECT %s, customer_id, %s, %s, %s, %s FROM customer WHERE customer_id = %s",
        rng.randint(*_FREE_PAYMENTS),
        rng.randint(1, 2),
        rental_id,
        f"{rng.randint(-500, 99_999) / 100:.2f}",
        _time(rng),
        customer,
    )


def _bring_back(session: Session) -> None:
    """Sets a rental's return; also to "not brought back", and to the zero date that an old program wrote for it."""
    for (rental_id,) in _some(session, "rental", "rental_id", _RENTALS):
        returned = session.rng.choice([None, "0000-00-00 00:00:00", _time(session.rng), _time(session.rng)])
        session.change(_LAX)
        session.change("UPDATE rental SET return_date = %s WHERE rental_id = %s", returned, rental_id)
        session.change(_STRICT)


def _flip_customer(session: Session) -> None:
    """The row leaves one new table and enters another."""
    session.change(
        "UPDATE customer SET active = 1 - (active <> 0) WHERE customer_id = %s",
        session.rng.randint(1, _CUSTOMERS),
    )


def _delete_rental(session: Session) -> None:
    """Deletes a rental; its payments lose it by ON DELETE SET NULL."""
    for (rental_id,) in _some(session, "rental", "rental_id", _RENTALS):
        session.change("DELETE FROM rental WHERE rental_id = %s", rental_id)


def _move_rental(session: Session) -> None:
    """Changes a rental's date or its item: both are part of the new key."""
    for (rental_id,) in _some(session, "rental", "rental_id", _RENTALS):
        rng = session.rng
        if rng.random() < 0.5:
            session.change("UPDATE rental SET rental_date = %s WHERE rental_id = %s", _time(rng), rental_id)
        else:
            for (item,) in _some(session, "inventory", "inventory_id", _ITEMS):
                session.change("UPDATE rental SET inventory_id = %s WHERE rental_id = %s", item, rental_id)


def _renumber_rental(session: Session) -> None:
    for (rental_id,) in _some(session, "rental", "rental_id", _RENTALS):
        number = session.rng.randint(*_FREE_RENTALS)
        renumber(session, "rental", rental_id, number, {"payment": "rental_id"})


def _renumber_film(session: Session) -> None:
    """Renumbers a film. By ON UPDATE CASCADE its items, categories and actors follow; ``film_text`` has no foreign
    key and does not."""
    for (film_id,) in _some(session, "film", "film_id", _FILMS):
        children = ("inventory", "film_category", "film_actor")
        renumber(
            session, "film", film_id, session.rng.randint(*_FREE_FILMS), dict.fromkeys(children, "film_id")
        )


def _renumber_customer(session: Session) -> None:
    """Renumbers a customer; by ON UPDATE CASCADE rentals and payments follow."""
    for (customer_id,) in _some(session, "customer", "customer_id", _CUSTOMERS):
        number = session.rng.randint(*_FREE_CUSTOMERS)
        children = dict.fromkeys(("rental", "payment"), "customer_id")
        renumber(session, "customer", customer_id, number, children)


def _rename_country(session: Session) -> None:
    for country_id, country in _some(session, "country", "country_id, country", 109):
        name = f"{country.split(' no. ')[0]} no. {session.rng.randint(1, 99)}"[:50]
        session.change("UPDATE country SET country = %s WHERE country_id = %s", name, country_id)


def _move_staff(session: Session) -> None:
    """The instant of every payment that the person took changes, and the sales of two stores."""
    session.change(
        "UPDATE staff SET store_id = %s WHERE staff_id = %s",
        session.rng.randint(1, 2),
        session.rng.randint(1, 2),
    )


def _change_terms(session: Session) -> None:
    """Changes a film's terms: the day on which each of its rentals was due changes."""
    session.change(
        "UPDATE film SET rental_duration = %s, rental_rate = %s WHERE film_id = %s",
        session.rng.randint(0, 9),
        f"{session.rng.randint(0, 9999) / 100:.2f}",
        session.rng.randint(1, _FILMS),
    )


def _rename_actor(session: Session) -> None:
    """Two old actors become one, or one becomes two; the lowest id of a name is often the one that changes."""
    rng = session.rng
    name = rng.choice(
        [("SUSAN", "DAVIS"), (" SUSAN", "DAVIS"), ("PENELOPE", "GUINESS"), ("A", f"B{rng.randint(1, 9)}")]
    )
    number = rng.choice([101, 110, 201, rng.randint(1, 200)])
    session.change("UPDATE actor SET first_name = %s, last_name = %s WHERE actor_id = %s", *name, number)


def _delete_actor(session: Session) -> None:
    for (actor_id,) in _some(session, "actor", "actor_id", 200):
        session.change("DELETE FROM film_actor WHERE actor_id = %s", actor_id)
        session.change("DELETE FROM actor WHERE actor_id = %s", actor_id)


def _cast(session: Session) -> None:
    for (actor_id,) in _some(session, "actor", "actor_id", 200):
        for (film_id,) in _some(session, "film", "film_id", _FILMS):
            session.change(
                "INSERT IGNORE INTO film_actor (actor_id, film_id) VALUES (%s, %s)", actor_id, film_id
            )


def _rename_category(session: Session) -> None:
    """Names of one slug become one category."""
    name = session.rng.choice(["Sci-Fi", "SCI  FI", "sci_fi", "Drama", "drama!", "Sports"])
    session.change("UPDATE category SET name = %s WHERE category_id = %s", name, session.rng.randint(1, 16))


def _describe(session: Session) -> None:
    """A description is here, there, or empty."""
    rng = session.rng
    film_id, text = rng.randint(1, _FILMS), rng.choice([None, "", f"text {rng.randint(1, 99)}"])
    if rng.random() < 0.5:
        session.change("UPDATE film SET description = %s WHERE film_id = %s", text, film_id)
    elif not session.change("DELETE FROM film_text WHERE film_id = %s", film_id):
        session.change("INSERT INTO film_text VALUES (%s, 'again', %s)", film_id, text)


def _photograph(session: Session) -> None:
    image = session.rng.choice(
        [None, b"", b"\x00", b"\x89PNG\r\n", b"\xff\xd8\xff\x00", session.rng.randbytes(900)]
    )
    session.change("UPDATE staff SET picture = %s WHERE staff_id = %s", image, session.rng.randint(1, 2))


def _change_mind(session: Session) -> None:
    _rent(session)
    _flip_customer(session)
    _move_rental(session)
    raise RollBack


class ShopWriters(StoryWriters):
    """The rental shop's writers."""

    ACTIONS: ClassVar = {
        "rent": (20, _rent),
        "pay for nothing": (5, _pay_for_nothing),
        "bring back": (15, _bring_back),
        "flip customer": (10, _flip_customer),
        "delete rental": (6, _delete_rental),
        "move rental": (8, _move_rental),
        "renumber rental": (3, _renumber_rental),
        "renumber film": (2, _renumber_film),
        "renumber customer": (1, _renumber_customer),
        "rename country": (2, _rename_country),
        "move staff": (1, _move_staff),
        "change terms": (5, _change_terms),
        "rename actor": (5, _rename_actor),
        "delete actor": (1, _delete_actor),
        "cast": (3, _cast),
        "rename category": (2, _rename_category),
        "describe": (4, _describe),
        "photograph": (2, _photograph),
        "change mind": (4, _change_mind),
    }


def _time(rng: random.Random) -> str:
    """A naive time, also before 1970 and in the year of a leap day."""
    year = rng.choice([1969, 2004, 2005, 2005, 2006, 2024, 2100])
    return (
        f"{year}-{rng.randint(1, 12):02}-{rng.randint(1, 28):02}"
        f" {rng.randint(0, 23):02}:{rng.randint(0, 59):02}:{rng.randint(0, 59):02}"
    )


def _some(session: Session, table: str, columns: str, last: int) -> list[tuple[Any, ...]]:
    """A row near a random id, if there is one; its first column is the key."""
    key = columns.split(",")[0]
    return session.rows(
        f"SELECT {columns} FROM {table} WHERE {key} >= %s ORDER BY {key} LIMIT 1",
        session.rng.randint(1, last),
    )
