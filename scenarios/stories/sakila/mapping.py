"""The mapping from the old rental shop to the new one: one pure function per new table, as told in README.md.

A naive time is the local time of a store, and every store has a fixed offset: that of a rental is the store of its
inventory row, that of a payment the store of the staff member who took it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms import Mapping
from transforms.columns import (
    blank_to_null,
    cents,
    instant,
    lower_ascii,
    mysql_datetime,
    point_x,
    point_y,
    slug,
    uuid5,
)

mapping = Mapping()

SPACE = "3f0a6c52-8d1b-5b7e-9c44-6b1f5a0e7d01"
OFFSET_MINUTES = {1: -420, 2: 600}
"""Minutes east of UTC by store; any other store is at UTC."""

RATING_IDS = {"G": 1, "PG": 2, "PG-13": 3, "R": 4, "NC-17": 5}
FEATURES = ("Trailers", "Commentaries", "Deleted Scenes", "Behind the Scenes")
SECONDS_A_DAY = 86_400
PNG, JPEG = "89504E47", "FFD8FF"


@mapping.target("language", key="language_id")
def language(language: DataFrame) -> DataFrame:
    """Languages, their names without padding."""
    return language.select("language_id", F.rtrim("name").alias("name"))


@mapping.target("category", key="slug", grain=lambda category: [slug(category.name)])
def category(category: DataFrame, film_category: DataFrame) -> DataFrame:
    """Several old categories may share a slug: the oldest gives the name, their films count together."""
    return (
        category.join(film_category.select("category_id", "film_id"), "category_id", "left")
        .groupBy(slug("name").alias("slug"))
        .agg(F.min_by("name", "category_id").alias("name"), F.count_distinct("film_id").alias("film_count"))
    )


@mapping.target("film", key="film_id", grain="film.film_id", links=["film_text.film_id = film.film_id"])
def film(film: DataFrame, film_text: DataFrame) -> DataFrame:
    """The description of a film; its prices are in ``film_pricing``."""
    texts = film_text.select(
        F.col("film_id").cast("int").alias("film_id"), F.col("description").alias("text_description")
    )
    rating_id = F.lit(None).cast("smallint")
    for code, number in RATING_IDS.items():
        rating_id = F.when(F.col("rating") == code, number).otherwise(rating_id)
    return film.join(texts, "film_id", "left").select(
        "film_id",
        "title",
        F.coalesce(F.nullif("description", F.lit("")), F.nullif("text_description", F.lit(""))).alias(
            "description"
        ),
        F.nullif("release_year", F.lit(0)).alias("release_year"),
        "language_id",
        "original_language_id",
        F.col("length").alias("length_minutes"),
        rating_id.alias("rating_id"),
        _features("special_features").alias("special_features"),
        _updated("last_update").alias("updated_at"),
    )


@mapping.target("film_pricing", key="film_id")
def film_pricing(film: DataFrame) -> DataFrame:
    """The prices of a film."""
    return film.select(
        "film_id",
        F.col("rental_duration").alias("rental_days"),
        cents("rental_rate").alias("rental_rate_cents"),
        cents("replacement_cost").alias("replacement_cents"),
    )


@mapping.target("film_category", key=("film_id", "slug"), grain="film_category.film_id")
def film_category(film_category: DataFrame, category: DataFrame) -> DataFrame:
    """Two old categories of a film may have become one."""
    slugs = category.select("category_id", slug("name").alias("slug"))
    return film_category.join(slugs, "category_id").select("film_id", "slug").distinct()


@mapping.target(
    "actor", key="actor_id", grain=lambda actor: [F.trim(actor.first_name), F.trim(actor.last_name)]
)
def actor(actor: DataFrame, film_actor: DataFrame) -> DataFrame:
    """One actor a name: several old rows may have the same one."""
    ids = F.array_sort(F.collect_set("actor_id"))
    return (
        actor.join(film_actor.select("actor_id", "film_id"), "actor_id", "left")
        .groupBy(F.trim("first_name").alias("first_name"), F.trim("last_name").alias("last_name"))
        .agg(
            F.concat(F.lit("{"), F.concat_ws(",", ids.cast("array<string>")), F.lit("}")).alias("legacy_ids"),
            F.count_distinct("film_id").alias("film_count"),
        )
        .select(_actor_id("first_name", "last_name"), "first_name", "last_name", "legacy_ids", "film_count")
    )


@mapping.target("film_cast", key=("film_id", "actor_id"), grain="film_actor.film_id")
def film_cast(film_actor: DataFrame, actor: DataFrame) -> DataFrame:
    """Two old actors of a film may have become one."""
    names = actor.select("actor_id", F.trim("first_name").alias("first"), F.trim("last_name").alias("last"))
    played = film_actor.select("film_id", "actor_id").join(names, "actor_id")
    return played.select("film_id", _actor_id("first", "last")).distinct()


@mapping.target("address", key="address_id", grain="address.address_id")
def address(address: DataFrame, city: DataFrame, country: DataFrame) -> DataFrame:
    """Three tables in one, as new as the newest of its three rows."""
    cities = city.select("city_id", "country_id", "city", F.col("last_update").alias("city_update"))
    countries = country.select("country_id", "country", F.col("last_update").alias("country_update"))
    return (
        address.join(cities, "city_id")
        .join(countries, "country_id")
        .select(
            "address_id",
            F.col("address").alias("line1"),
            _trimmed("address2").alias("line2"),
            _trimmed("district").alias("district"),
            "city",
            "country",
            _trimmed("postal_code").alias("postal_code"),
            _trimmed("phone").alias("phone"),
            point_x("location").alias("longitude"),
            point_y("location").alias("latitude"),
            F.greatest(_updated("last_update"), _updated("city_update"), _updated("country_update")).alias(
                "updated_at"
            ),
        )
    )


@mapping.target("person", key="person_id")
def person(customer: DataFrame, staff: DataFrame) -> DataFrame:
    """Customers and staff are persons both."""
    return _persons(customer, "customer").unionByName(_persons(staff, "staff"))


@mapping.target(
    "store",
    key="store_id",
    grain="store.store_id",
    links=["staff.store_id = store.store_id", "inventory.store_id = store.store_id"],
)
def store(store: DataFrame, staff: DataFrame, inventory: DataFrame) -> DataFrame:
    """Stores with the numbers of their staff and of their items."""
    people = staff.groupBy("store_id").agg(F.count("*").alias("staff_count"))
    items = inventory.groupBy("store_id").agg(F.count("*").alias("item_count"))
    return (
        store.join(people, "store_id", "left")
        .join(items, "store_id", "left")
        .select(
            "store_id",
            _person_id("staff", "manager_staff_id").alias("manager_id"),
            "address_id",
            _offset_minutes("store_id").alias("utc_offset_minutes"),
            _or_zero("staff_count"),
            _or_zero("item_count"),
            _updated("last_update").alias("updated_at"),
        )
    )


@mapping.target(
    "customer_account",
    key="person_id",
    grain="customer.customer_id",
    links=[
        "payment.customer_id = customer.customer_id",
        "rental.customer_id = customer.customer_id",
        "rental.inventory_id = inventory.inventory_id",
    ],
)
def customer_account(
    customer: DataFrame, payment: DataFrame, rental: DataFrame, inventory: DataFrame
) -> DataFrame:
    """Active customers, what they paid and what they have."""
    rented_at = _local("rental_date", "item_store_id")
    rented = (
        rental.join(
            inventory.select("inventory_id", F.col("store_id").alias("item_store_id")), "inventory_id"
        )
        .groupBy("customer_id")
        .agg(F.count_if(_is_out()).alias("open_rentals"), F.max(rented_at).alias("last_rental_at"))
    )
    return (
        customer.where("active <> 0")
        .join(_paid(payment, "customer_id"), "customer_id", "left")
        .join(rented, "customer_id", "left")
        .select(
            _person_id("customer", "customer_id").alias("person_id"),
            "store_id",
            _local("create_date", "store_id").alias("opened_at"),
            _or_zero("payment_count"),
            _or_zero("paid_cents").alias("payment_total_cents"),
            _or_zero("open_rentals"),
            "last_rental_at",
        )
    )


@mapping.target("customer_archive", key="person_id", grain="customer.customer_id")
def customer_archive(customer: DataFrame, payment: DataFrame) -> DataFrame:
    """Customers who were deleted softly."""
    gone = customer.where("active = 0").join(_paid(payment, "customer_id"), "customer_id", "left")
    return gone.select(
        _person_id("customer", "customer_id").alias("person_id"),
        "store_id",
        _local("create_date", "store_id").alias("opened_at"),
        _updated("last_update").alias("archived_at"),
        _or_zero("paid_cents").alias("payment_total_cents"),
    )


@mapping.target("staff_account", key="person_id")
def staff_account(staff: DataFrame) -> DataFrame:
    """Logins."""
    return staff.select(
        _person_id("staff", "staff_id").alias("person_id"),
        "store_id",
        lower_ascii("username").alias("username"),
        F.nullif(lower_ascii("password"), F.lit("")).alias("password_sha1"),
        (F.col("active") != 0).alias("is_active"),
        _updated("last_update").alias("updated_at"),
    )


@mapping.target("staff_photo", key="person_id")
def staff_photo(staff: DataFrame) -> DataFrame:
    """Pictures apart from logins."""
    begins = F.hex(F.substring("picture", 1, 4))
    media_type = (
        F.when(begins.startswith(PNG), "image/png")
        .when(begins.startswith(JPEG), "image/jpeg")
        .otherwise("application/octet-stream")
    )
    return staff.where("length(picture) > 0").select(
        _person_id("staff", "staff_id").alias("person_id"),
        F.col("picture").alias("image"),
        F.length("picture").alias("image_bytes"),
        F.sha2("picture", 256).alias("sha256"),
        media_type.alias("media_type"),
    )


@mapping.target("inventory_item", key="inventory_id", grain="inventory.inventory_id")
def inventory_item(inventory: DataFrame, rental: DataFrame) -> DataFrame:
    """Items, how often they were rented and whether they are out."""
    rented = rental.groupBy("inventory_id").agg(
        F.count("*").alias("times_rented"), F.bool_or(_is_out()).alias("is_out")
    )
    return inventory.join(rented, "inventory_id", "left").select(
        "inventory_id",
        "film_id",
        "store_id",
        _or_zero("times_rented"),
        F.coalesce("is_out", F.lit(False)).alias("is_out"),
    )


@mapping.target("rental", key=("inventory_id", "rented_at", "person_id"), grain="rental.rental_id")
def rental(rental: DataFrame, inventory: DataFrame, film: DataFrame, payment: DataFrame) -> DataFrame:
    """Rentals with what was due and what was paid."""
    films = film.select("film_id", "rental_duration")
    items = inventory.select("inventory_id", "film_id", "store_id").join(films, "film_id")
    timed = (
        rental.join(items, "inventory_id")
        .join(_paid(payment, "rental_id"), "rental_id", "left")
        .withColumn("rented_at", _local("rental_date", "store_id"))
        .withColumn("returned_at", _local("return_date", "store_id"))
        .withColumn("due_at", F.col("rented_at") + F.make_dt_interval(hours=F.col("rental_duration") * 24))
    )
    late_s = F.greatest(F.unix_seconds("returned_at") - F.unix_seconds("due_at"), F.lit(0))
    return timed.select(
        "inventory_id",
        "rented_at",
        _person_id("customer", "customer_id").alias("person_id"),
        F.col("rental_id").alias("legacy_rental_id"),
        _person_id("staff", "staff_id").alias("handled_by"),
        "returned_at",
        "due_at",
        F.when(F.col("returned_at").isNotNull(), F.floor(late_s / SECONDS_A_DAY)).alias("days_late"),
        _or_zero("paid_cents"),
        _updated("last_update").alias("updated_at"),
    )


@mapping.target("payment", key="payment_id", grain="payment.payment_id")
def payment(payment: DataFrame, staff: DataFrame) -> DataFrame:
    """Payments for a rental."""
    return _payments(payment.where("rental_id IS NOT NULL"), staff, "rental_id")


@mapping.target("payment_unallocated", key="payment_id", grain="payment.payment_id")
def payment_unallocated(payment: DataFrame, staff: DataFrame) -> DataFrame:
    """Payments that no rental is known for."""
    return _payments(payment.where("rental_id IS NULL"), staff)


@mapping.target(
    "store_month_sales",
    key=("store_id", "month"),
    grain=lambda payment, staff: [staff.store_id, _month(payment.payment_date)],
)
def store_month_sales(payment: DataFrame, staff: DataFrame) -> DataFrame:
    """Payments by the store of who took them and by month, as the old system wrote it."""
    return (
        payment.join(staff.select("staff_id", "store_id"), "staff_id")
        .groupBy("store_id", _month("payment_date").alias("month"))
        .agg(F.count("*").alias("payment_count"), F.sum(cents("amount")).alias("amount_cents"))
    )


def _persons(rows: DataFrame, kind: str) -> DataFrame:
    return rows.select(
        _person_id(kind, f"{kind}_id").alias("person_id"),
        F.lit(kind).alias("kind"),
        F.col(f"{kind}_id").alias("legacy_id"),
        "first_name",
        "last_name",
        blank_to_null(lower_ascii(F.trim("email"))).alias("email"),
        "address_id",
    )


def _payments(payment: DataFrame, staff: DataFrame, *more: str) -> DataFrame:
    return payment.join(staff.select("staff_id", "store_id"), "staff_id").select(
        "payment_id",
        _person_id("customer", "customer_id").alias("person_id"),
        _person_id("staff", "staff_id").alias("handled_by"),
        cents("amount").alias("amount_cents"),
        _local("payment_date", "store_id").alias("paid_at"),
        *more,
    )


def _paid(payment: DataFrame, by: str) -> DataFrame:
    totals = F.count("*").alias("payment_count"), F.sum(cents("amount")).alias("paid_cents")
    return payment.groupBy(by).agg(*totals)


def _actor_id(first: str, last: str) -> Column:
    return uuid5(SPACE, F.lit("actor"), first, last).alias("actor_id")


def _person_id(kind: str, number: str) -> Column:
    return uuid5(SPACE, F.lit(kind), number)


def _offset_minutes(store_id: str) -> Column:
    minutes = F.lit(0)
    for number, offset in OFFSET_MINUTES.items():
        minutes = F.when(F.col(store_id) == number, offset).otherwise(minutes)
    return minutes


def _local(naive: str, store_id: str) -> Column:
    """The instant of a time that a clock in the store showed; NULL for the zero date."""
    return _updated(naive) - F.make_dt_interval(mins=_offset_minutes(store_id))


def _updated(timestamp: str) -> Column:
    return instant(mysql_datetime(timestamp), "UTC")


def _month(date: Column | str) -> Column:
    return F.trunc(mysql_datetime(date).cast("date"), "month")


def _is_out() -> Column:
    return mysql_datetime("return_date").isNull()


def _features(members: str) -> Column:
    """PostgreSQL's text of an array, as it prints it: members with a space are quoted."""
    found = F.split(members, ",")
    texts = [F.when(F.array_contains(found, name), f'"{name}"' if " " in name else name) for name in FEATURES]
    return F.concat(F.lit("{"), F.concat_ws(",", *texts), F.lit("}"))


def _trimmed(text: str) -> Column:
    return blank_to_null(F.trim(text))


def _or_zero(count: str) -> Column:
    return F.coalesce(count, F.lit(0)).alias(count)
