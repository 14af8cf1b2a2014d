"""The old tables of the benchmark's shapes, made inside a PostgreSQL server, and what changes them."""

from __future__ import annotations

from scenarios.database import Database

TABLES = 20
_GAUGE = """
CREATE TABLE gauge_{n} (
    id bigint PRIMARY KEY, n int NOT NULL, label varchar(40) NOT NULL, changed timestamp NOT NULL);
ALTER TABLE gauge_{n} REPLICA IDENTITY FULL;
INSERT INTO gauge_{n} SELECT i, i, 'gauge ' || i, timestamp '2024-01-01' + i * interval '1 second'
FROM generate_series(1, {rows}) i;
ANALYZE gauge_{n}
"""
_SALES = """
CREATE TABLE customer (customer_id bigint PRIMARY KEY, customer_name varchar(40) NOT NULL);
CREATE TABLE product (product_id bigint PRIMARY KEY, product_name varchar(40) NOT NULL, price numeric(10,2)
NOT NULL); CREATE TABLE orders (order_id bigint PRIMARY KEY, customer_id bigint NOT NULL REFERENCES customer);
CREATE TABLE line (
    line_id bigint PRIMARY KEY, order_id bigint NOT NULL REFERENCES orders,
    product_id bigint NOT NULL REFERENCES product, quantity int NOT NULL);
ALTER TABLE customer REPLICA IDENTITY FULL; ALTER TABLE product REPLICA IDENTITY FULL;
ALTER TABLE orders REPLICA IDENTITY FULL; ALTER TABLE line REPLICA IDENTITY FULL;
INSERT INTO customer SELECT i, 'customer ' || i FROM generate_series(1, greatest({lines} / 20, 1)) i;
INSERT INTO product SELECT i, 'product ' || i, mod(i, 1000) / 4.0 FROM generate_series(1, 1000) i;
INSERT INTO orders SELECT i, mod(i, greatest({lines} / 20, 1)) + 1 FROM generate_series(1, {lines} / 4 + 1) i;
INSERT INTO line SELECT i, i / 4 + 1, CASE WHEN i <= {hot} THEN 1 WHEN i <= {hotter} THEN 2 ELSE mod(i, 998) +
3 END,
    mod(i, 9) + 1 FROM generate_series(1, {lines}) i;
ANALYZE
"""


def create_many(database: Database, rows: int) -> None:
    """Twenty tables of ``rows`` rows each."""
    with database.postgres(autocommit=True) as connection:
        for number in range(1, TABLES + 1):
            connection.execute(_GAUGE.format(n=number, rows=rows).encode())


def create_joined(database: Database, lines: int, reached: tuple[int, int] = (0, 0)) -> None:
    """Lines, orders, customers and a thousand products.

    Args:
        database: an empty one.
        lines: rows of the largest table.
        reached: how many lines the first product has, and how many the second.
    """
    hot, hotter = reached
    with database.postgres(autocommit=True) as connection:
        connection.execute(_SALES.format(lines=lines, hot=hot, hotter=hot + hotter).encode())


def touch_lines(database: Database, changes: int, rows_a_commit: int) -> None:
    """Updates the first ``changes`` lines: a backlog to stream."""
    with database.postgres(autocommit=True) as connection:
        for first in range(1, changes + 1, rows_a_commit):
            connection.execute(
                "UPDATE line SET quantity = quantity + 1 WHERE line_id BETWEEN %s AND %s",
                (first, min(changes, first + rows_a_commit - 1)),
            )


def touch_product(database: Database, product: int) -> None:
    """Changes one lookup row."""
    with database.postgres(autocommit=True) as connection:
        connection.execute("UPDATE product SET price = price + 1 WHERE product_id = %s", (product,))


def gauge_changes(database: Database) -> int:
    """Counts the updates that the twenty tables have seen: each adds one to ``n``, which began as ``id``."""
    tables = " UNION ALL ".join(
        f"SELECT coalesce(sum(n - id), 0) AS changes FROM gauge_{number}" for number in range(1, TABLES + 1)
    )
    with database.postgres(autocommit=True) as connection:
        row = connection.execute(
            f"SELECT sum(changes)::bigint FROM ({tables}) each_table".encode()
        ).fetchone()
    if row is None:
        raise AssertionError("a sum is one row")
    return int(row[0])
