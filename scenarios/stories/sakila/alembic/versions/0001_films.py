"""Films, their prices, categories and actors; the ratings are constant rows.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = """
CREATE TABLE language (
    language_id smallint PRIMARY KEY,
    name        text NOT NULL
);
CREATE TABLE film_rating (
    rating_id smallint PRIMARY KEY,
    code      text NOT NULL UNIQUE,
    min_age   smallint NOT NULL
);
CREATE TABLE category (
    slug       text PRIMARY KEY,
    name       text NOT NULL,
    film_count integer NOT NULL
);
CREATE TABLE film (
    film_id              bigint PRIMARY KEY,
    title                text NOT NULL,
    description          text,
    release_year         smallint,
    language_id          smallint NOT NULL REFERENCES language,
    original_language_id smallint REFERENCES language,
    length_minutes       smallint,
    rating_id            smallint REFERENCES film_rating,
    special_features     text[] NOT NULL,
    updated_at           timestamptz NOT NULL
);
CREATE TABLE film_pricing (
    film_id            bigint PRIMARY KEY REFERENCES film,
    rental_days        smallint NOT NULL,
    rental_rate_cents  integer NOT NULL,
    replacement_cents  integer NOT NULL,
    margin_pct         numeric(7,2) GENERATED ALWAYS AS
        (CASE WHEN replacement_cents = 0 THEN NULL
              ELSE round(100.0 * rental_rate_cents / replacement_cents, 2) END) STORED
);
CREATE TABLE film_category (
    film_id bigint NOT NULL REFERENCES film,
    slug    text NOT NULL REFERENCES category,
    PRIMARY KEY (film_id, slug)
);
CREATE TABLE actor (
    actor_id   uuid PRIMARY KEY,
    first_name text NOT NULL,
    last_name  text NOT NULL,
    legacy_ids integer[] NOT NULL,
    film_count integer NOT NULL,
    UNIQUE (first_name, last_name)
);
CREATE TABLE film_cast (
    film_id  bigint NOT NULL REFERENCES film,
    actor_id uuid NOT NULL REFERENCES actor,
    PRIMARY KEY (film_id, actor_id)
)
"""
RATINGS = """
INSERT INTO film_rating (rating_id, code, min_age)
VALUES (1, 'G', 0), (2, 'PG', 0), (3, 'PG-13', 13), (4, 'R', 17), (5, 'NC-17', 18)
"""


def upgrade() -> None:
    """Create the tables."""
    for statement in TABLES.split(";\n"):
        op.execute(statement)
    op.execute(RATINGS)


def downgrade() -> None:
    """Drop them."""
    for table in (
        "film_cast",
        "actor",
        "film_category",
        "film_pricing",
        "film",
        "category",
        "film_rating",
        "language",
    ):
        op.drop_table(table)
