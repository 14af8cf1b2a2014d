"""An independent judge of the rental shop: what the new tables must hold, by the words of the story, in plain
Python.

It shares no code with ``mapping.py``: the old rows are read with plain SELECTs and counted in dictionaries.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any

from migrator.errors import VerifyError
from scenarios.database import Connection, Database
from scenarios.stories import words as story_words
from scenarios.stories.words import (
    Difference,
    Row,
    Table,
    lower,
    naive,
    read,
    slug,
    table,
    trim,
    utc,
)

NAMESPACE = uuid.UUID("3f0a6c52-8d1b-5b7e-9c44-6b1f5a0e7d01")
FEATURES = ["Trailers", "Commentaries", "Deleted Scenes", "Behind the Scenes"]
RATINGS = [(1, "G", 0), (2, "PG", 0), (3, "PG-13", 13), (4, "R", 17), (5, "NC-17", 18)]

_UPDATED = "CAST(last_update AS CHAR) AS last_update"
_OLD = {
    "language": "SELECT language_id, name FROM language",
    "category": "SELECT category_id, name FROM category",
    "film": "SELECT film_id, title, description, CAST(release_year AS SIGNED) AS release_year, language_id,"
    " original_language_id, rental_duration, rental_rate, length, replacement_cost, rating, special_features,"
    f" {_UPDATED} FROM film",
    "film_text": "SELECT film_id, description FROM film_text",
    "film_category": "SELECT film_id, category_id FROM film_category",
    "actor": "SELECT actor_id, first_name, last_name FROM actor",
    "film_actor": "SELECT film_id, actor_id FROM film_actor",
    "country": f"SELECT country_id, country, {_UPDATED} FROM country",
    "city": f"SELECT city_id, city, country_id, {_UPDATED} FROM city",
    "address": "SELECT address_id, address, address2, district, city_id, postal_code, phone, ST_X(location) AS x,"
    f" ST_Y(location) AS y, {_UPDATED} FROM address",
    "store": f"SELECT store_id, manager_staff_id, address_id, {_UPDATED} FROM store",
    "staff": "SELECT staff_id, first_name, last_name, address_id, picture, email, store_id, active, username,"
    f" password, {_UPDATED} FROM staff",
    "customer": "SELECT customer_id, store_id, first_name, last_name, email, address_id, active,"
    f" CAST(create_date AS CHAR) AS create_date, {_UPDATED} FROM customer",
    "inventory": "SELECT inventory_id, film_id, store_id FROM inventory",
    "rental": "SELECT rental_id, CAST(rental_date AS CHAR) AS rental_date, inventory_id, customer_id,"
    f" CAST(return_date AS CHAR) AS return_date, staff_id, {_UPDATED} FROM rental",
    "payment": "SELECT payment_id, customer_id, staff_id, rental_id, amount,"
    " CAST(payment_date AS CHAR) AS payment_date FROM payment",
}


def differences(old: Database, new: Database) -> list[Difference]:
    """All rows in which the new tables are not what the old ones say they must be; empty if they agree.

    Both must stand still. Raises ``VerifyError`` if the old one has no rentals: agreement would mean nothing.
    """
    expected = expected_tables(old)
    connection = new.connect()
    try:
        return story_words.differences(expected, actual_tables(connection, expected))
    finally:
        connection.close()


def actual_tables(connection: Connection, expected: Mapping[str, Table]) -> dict[str, Table]:
    """Reads the new tables, as the connection's transaction sees them, in the columns of ``expected``."""
    found = {}
    cursor = connection.cursor()
    for name, (columns, _) in expected.items():
        cursor.execute(f"SELECT {', '.join(columns)} FROM {name}")
        found[name] = table(" ".join(columns), map(_hashable, cursor.fetchall()))
    return found


def expected_tables(old: Database) -> dict[str, Table]:
    """Computes what the new tables must hold. Raises as :func:`differences` does."""
    tables = {name: read(old, query) for name, query in _OLD.items()}
    if not tables["rental"]:
        raise VerifyError(
            "the old database has no rentals, so there is nothing to judge",
            where=f"{old.host}:{old.port}/{old.database}",
            remedy="load it with scenarios.stories.sakila.old_schema",
        )
    shop = Shop(tables)
    return {**_films(shop), **_people(shop), **_sales(shop)}


class Shop:
    """The old rows, and what is known of them by way of other rows."""

    def __init__(self, tables: dict[str, list[Row]]):
        self.rows = tables
        self.items = {row["inventory_id"]: row for row in tables["inventory"]}
        self.films = {row["film_id"]: row for row in tables["film"]}
        self.slugs = {row["category_id"]: slug(row["name"]) for row in tables["category"]}
        self.names = {
            row["actor_id"]: (row["first_name"].strip(" "), row["last_name"].strip(" "))
            for row in tables["actor"]
        }
        self.staff_stores = {row["staff_id"]: row["store_id"] for row in tables["staff"]}

    def by(self, name: str, key: str) -> dict[Any, list[Row]]:
        """Rows of a table by a column."""
        found: dict[Any, list[Row]] = {}
        for row in self.rows[name]:
            found.setdefault(row[key], []).append(row)
        return found

    def rented_at(self, rental: Row, column: str = "rental_date") -> datetime | None:
        """A time of a rental as an instant."""
        return at_store(rental[column], self.items[rental["inventory_id"]]["store_id"])


def offset_minutes(store_id: int) -> int:
    """East of UTC."""
    return -7 * 60 if store_id == 1 else 10 * 60 if store_id == 2 else 0


def at_store(text: str | None, store_id: int) -> datetime | None:
    """The instant of a time that the store's clock showed."""
    found = utc(text)
    return None if found is None else found - timedelta(minutes=offset_minutes(store_id))


def cents(amount: Any) -> int:
    """The amount times 100; fails if that is no whole number."""
    whole = int(amount * 100)
    assert whole == amount * 100
    return whole


def _id(kind: str, *parts: object) -> uuid.UUID:
    return story_words.uuid5(NAMESPACE, kind, *parts)


def _hashable(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(tuple(value) if isinstance(value, list) else value for value in row)


def _is_out(rental: Row) -> bool:
    return naive(rental["return_date"]) is None


def _blank_to_none(text: str | None) -> str | None:
    return trim(text) or None


def _films(shop: Shop) -> dict[str, Table]:
    rows = shop.rows
    names: dict[str, str] = {}
    for row in sorted(rows["category"], key=lambda row: row["category_id"]):
        names.setdefault(shop.slugs[row["category_id"]], row["name"])
    filed = {(row["film_id"], shop.slugs[row["category_id"]]) for row in rows["film_category"]}
    cast = {(row["film_id"], shop.names[row["actor_id"]]) for row in rows["film_actor"]}
    filed_films = Counter(name for _, name in filed)
    films_of = Counter(name for _, name in cast)
    actors: dict[tuple[str, str], list[int]] = {}
    for number, name in sorted(shop.names.items()):
        actors.setdefault(name, []).append(number)
    return {
        "language": table(
            "language_id name", [(r["language_id"], r["name"].rstrip(" ")) for r in rows["language"]]
        ),
        "film_rating": table("rating_id code min_age", RATINGS),
        "category": table(
            "slug name film_count", [(key, name, filed_films[key]) for key, name in names.items()]
        ),
        **_film(shop),
        "film_category": table("film_id slug", filed),
        "actor": table(
            "actor_id first_name last_name legacy_ids film_count",
            [(_id("actor", *name), *name, tuple(ids), films_of[name]) for name, ids in actors.items()],
        ),
        "film_cast": table("film_id actor_id", [(film, _id("actor", *name)) for film, name in cast]),
    }


def _film(shop: Shop) -> dict[str, Table]:
    ratings = {code: number for number, code, _ in RATINGS}
    texts = {row["film_id"]: row["description"] for row in shop.rows["film_text"]}
    films, prices = [], []
    for row in shop.rows["film"]:
        members = set((row["special_features"] or "").split(","))
        films.append(
            (
                row["film_id"], row["title"], row["description"] or texts.get(row["film_id"]) or None,
                row["release_year"] or None, row["language_id"], row["original_language_id"], row["length"],
                ratings.get(row["rating"]), tuple(name for name in FEATURES if name in members),
                utc(row["last_update"]),
            )
        )  # fmt: skip
        rate, cost = cents(row["rental_rate"]), cents(row["replacement_cost"])
        prices.append((row["film_id"], row["rental_duration"], rate, cost))
    return {
        "film": table(
            "film_id title description release_year language_id original_language_id length_minutes rating_id"
            " special_features updated_at",
            films,
        ),
        "film_pricing": table("film_id rental_days rental_rate_cents replacement_cents", prices),
    }


def _people(shop: Shop) -> dict[str, Table]:
    rows = shop.rows
    people = [
        (
            _id(kind, row[f"{kind}_id"]), kind, row[f"{kind}_id"], row["first_name"], row["last_name"],
            _blank_to_none(None if row["email"] is None else lower(row["email"])), row["address_id"],
        )
        for kind in ("customer", "staff")
        for row in rows[kind]
    ]  # fmt: skip
    staff, items = shop.by("staff", "store_id"), shop.by("inventory", "store_id")
    stores = [
        (
            row["store_id"], _id("staff", row["manager_staff_id"]), row["address_id"],
            offset_minutes(row["store_id"]), len(staff.get(row["store_id"], [])),
            len(items.get(row["store_id"], [])), utc(row["last_update"]),
        )
        for row in rows["store"]
    ]  # fmt: skip
    return {
        "address": _addresses(shop),
        "person": table("person_id kind legacy_id first_name last_name email address_id", people),
        "store": table(
            "store_id manager_id address_id utc_offset_minutes staff_count item_count updated_at", stores
        ),
        **_customers(shop),
        **_staff(rows["staff"]),
    }


def _addresses(shop: Shop) -> Table:
    cities = {row["city_id"]: row for row in shop.rows["city"]}
    countries = {row["country_id"]: row for row in shop.rows["country"]}
    addresses = []
    for row in shop.rows["address"]:
        city = cities[row["city_id"]]
        country = countries[city["country_id"]]
        texts = [_blank_to_none(row[name]) for name in ("address2", "district", "postal_code", "phone")]
        latest = max(part["last_update"] for part in (row, city, country))
        addresses.append(
            (
                row["address_id"], row["address"], texts[0], texts[1], city["city"], country["country"], texts[2],
                texts[3], row["x"], row["y"], utc(latest),
            )
        )  # fmt: skip
    return table(
        "address_id line1 line2 district city country postal_code phone longitude latitude updated_at",
        addresses,
    )


def _customers(shop: Shop) -> dict[str, Table]:
    paid, rented = shop.by("payment", "customer_id"), shop.by("rental", "customer_id")
    accounts, archive = [], []
    for row in shop.rows["customer"]:
        number = row["customer_id"]
        opened_at = at_store(row["create_date"], row["store_id"])
        total = sum(cents(payment["amount"]) for payment in paid.get(number, []))
        if row["active"] == 0:
            archive.append(
                (_id("customer", number), row["store_id"], opened_at, utc(row["last_update"]), total)
            )
            continue
        rentals = rented.get(number, [])
        times = [time for rental in rentals if (time := shop.rented_at(rental)) is not None]
        accounts.append(
            (
                _id("customer", number), row["store_id"], opened_at, len(paid.get(number, [])), total,
                sum(map(_is_out, rentals)), max(times, default=None),
            )
        )  # fmt: skip
    return {
        "customer_account": table(
            "person_id store_id opened_at payment_count payment_total_cents open_rentals last_rental_at",
            accounts,
        ),
        "customer_archive": table("person_id store_id opened_at archived_at payment_total_cents", archive),
    }


def _staff(rows: list[Row]) -> dict[str, Table]:
    kinds: list[tuple[Callable[[bytes], bool], str]] = [
        (lambda image: image.startswith(b"\x89PNG"), "image/png"),
        (lambda image: image.startswith(b"\xff\xd8\xff"), "image/jpeg"),
        (lambda image: True, "application/octet-stream"),
    ]
    accounts, photos = [], []
    for row in rows:
        person = _id("staff", row["staff_id"])
        password = lower(row["password"] or "") or None
        accounts.append(
            (
                person, row["store_id"], lower(row["username"]), password, row["active"] != 0,
                utc(row["last_update"]),
            )
        )  # fmt: skip
        if image := row["picture"]:
            media_type = next(name for begins, name in kinds if begins(image))
            photos.append((person, image, len(image), hashlib.sha256(image).hexdigest(), media_type))
    return {
        "staff_account": table("person_id store_id username password_sha1 is_active updated_at", accounts),
        "staff_photo": table("person_id image image_bytes sha256 media_type", photos),
    }


def _sales(shop: Shop) -> dict[str, Table]:
    rented = shop.by("rental", "inventory_id")
    items = [
        (
            number, item["film_id"], item["store_id"], len(rented.get(number, [])),
            any(map(_is_out, rented.get(number, []))),
        )
        for number, item in shop.items.items()
    ]  # fmt: skip
    return {
        "inventory_item": table("inventory_id film_id store_id times_rented is_out", items),
        "rental": _rentals(shop),
        **_payments(shop),
    }


def _rentals(shop: Shop) -> Table:
    paid = shop.by("payment", "rental_id")
    rentals = []
    for row in shop.rows["rental"]:
        film = shop.films[shop.items[row["inventory_id"]]["film_id"]]
        rented_at, returned_at = shop.rented_at(row), shop.rented_at(row, "return_date")
        assert rented_at is not None
        due_at = rented_at + timedelta(hours=24 * film["rental_duration"])
        days_late = None if returned_at is None else max((returned_at - due_at).days, 0)
        rentals.append(
            (
                row["inventory_id"], rented_at, _id("customer", row["customer_id"]), row["rental_id"],
                _id("staff", row["staff_id"]), returned_at, due_at, days_late,
                sum(cents(payment["amount"]) for payment in paid.get(row["rental_id"], [])),
                utc(row["last_update"]),
            )
        )  # fmt: skip
    return table(
        "inventory_id rented_at person_id legacy_rental_id handled_by returned_at due_at days_late paid_cents"
        " updated_at",
        rentals,
    )


def _payments(shop: Shop) -> dict[str, Table]:
    allocated, others = [], []
    sales: dict[tuple[int, Any], list[int]] = {}
    for row in shop.rows["payment"]:
        store, amount = shop.staff_stores[row["staff_id"]], cents(row["amount"])
        people = _id("customer", row["customer_id"]), _id("staff", row["staff_id"])
        payment = (row["payment_id"], *people, amount, at_store(row["payment_date"], store))
        if row["rental_id"] is None:
            others.append(payment)
        else:
            allocated.append((*payment, row["rental_id"]))
        written = naive(row["payment_date"])
        assert written is not None
        sales.setdefault((store, written.date().replace(day=1)), []).append(amount)
    columns = "payment_id person_id handled_by amount_cents paid_at"
    return {
        "payment": table(f"{columns} rental_id", allocated),
        "payment_unallocated": table(columns, others),
        "store_month_sales": table(
            "store_id month payment_count amount_cents",
            [(*key, len(amounts), sum(amounts)) for key, amounts in sales.items()],
        ),
    }
