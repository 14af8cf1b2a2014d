"""The shop of the joined mappings: old tables, what the new ones must hold in plain SQL, random transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

HERE = Path(__file__).parent / "shop_project"
TABLES = ("category", "product", "customer", "orders", "order_line")
_CREATE = (
    "CREATE TABLE category (category_id int PRIMARY KEY, name varchar(40) NOT NULL)",
    "CREATE TABLE product (product_id int PRIMARY KEY, name varchar(40), price decimal(10,2) NOT NULL,"
    " category_id int NOT NULL, FOREIGN KEY (category_id) REFERENCES category (category_id))",
    "CREATE TABLE customer (customer_id int PRIMARY KEY, name varchar(40), referrer_id int,"
    " FOREIGN KEY (referrer_id) REFERENCES customer (customer_id))",
    "CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int NOT NULL, day int NOT NULL,"
    " FOREIGN KEY (customer_id) REFERENCES customer (customer_id))",
    "CREATE TABLE order_line (order_id int, line_no int, product_id int NOT NULL, quantity int NOT NULL,"
    " PRIMARY KEY (order_id, line_no), FOREIGN KEY (order_id) REFERENCES orders (order_id),"
    " FOREIGN KEY (product_id) REFERENCES product (product_id))",
)
# What each new table must hold, in SQL that PostgreSQL, MySQL and MariaDB share: an oracle beside the mapping.
EXPECTED = {
    "label": "SELECT category_id, name FROM category",
    "order_summary": """
        SELECT o.order_id, c.name, count(l.line_no), coalesce(sum(l.quantity * p.price), 0.00), {products}
        FROM orders o JOIN customer c ON c.customer_id = o.customer_id
        LEFT JOIN order_line l ON l.order_id = o.order_id LEFT JOIN product p ON p.product_id = l.product_id
        GROUP BY o.order_id, c.name""",
    "article": """
        SELECT lower(trim(p.name)), count(DISTINCT p.product_id), coalesce(sum(l.quantity), 0)
        FROM product p LEFT JOIN order_line l ON l.product_id = p.product_id GROUP BY lower(trim(p.name))""",
    "buyer": """
        SELECT c.customer_id, (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id),
            (SELECT o.order_id FROM orders o WHERE o.customer_id = c.customer_id
             ORDER BY o.day DESC, o.order_id DESC LIMIT 1) FROM customer c""",
    "pick": """
        SELECT order_id, row_number() OVER (PARTITION BY order_id ORDER BY quantity DESC, line_no), product_id,
            quantity FROM order_line""",
    "referral": """
        SELECT c.customer_id, r.name, (SELECT count(*) FROM customer b WHERE b.referrer_id = c.customer_id)
        FROM customer c LEFT JOIN customer r ON r.customer_id = c.referrer_id""",
    "party": """
        SELECT concat('customer ', c.customer_id), c.name,
            (SELECT count(*) FROM orders o WHERE o.customer_id = c.customer_id) FROM customer c
        UNION ALL SELECT concat('category ', c.category_id), c.name,
            (SELECT count(*) FROM product p WHERE p.category_id = c.category_id) FROM category c""",
    "sales": """
        SELECT c.name, floor(p.price / 10), count(*), sum(l.quantity) FROM order_line l
        JOIN product p ON p.product_id = l.product_id JOIN category c ON c.category_id = p.category_id
        GROUP BY c.name, floor(p.price / 10)""",
    "circle": """
        SELECT customer_id, row_number() OVER (PARTITION BY referrer_id ORDER BY customer_id) FROM customer""",
    "dispatch": """
        SELECT l.product_id, l.order_id, l.line_no, c.name FROM order_line l
        JOIN orders o ON o.order_id = l.order_id JOIN customer c ON c.customer_id = o.customer_id""",
    "band": """
        SELECT p.product_id, (SELECT count(*) FROM product q WHERE floor(q.price / 10) = floor(p.price / 10))
        FROM product p""",
    "namesake": """
        SELECT c.category_id, (SELECT coalesce(sum(l.quantity), 0) FROM order_line l
            JOIN product q ON q.product_id = l.product_id WHERE lower(trim(q.name)) IN
            (SELECT lower(trim(p.name)) FROM product p WHERE p.category_id = c.category_id)) FROM category c""",
    "fan": """
        SELECT c.category_id, (SELECT count(*) FROM customer u
            WHERE mod(u.customer_id, 7) = mod(c.category_id, 7)) FROM category c""",
}
_PRODUCTS = {
    "postgresql": "string_agg(p.name, ',' ORDER BY p.name COLLATE \"C\")",
    "mariadb": "group_concat(p.name ORDER BY p.name)",
    "mysql": "group_concat(p.name ORDER BY p.name)",
}


def create(old: Database, orders: int) -> None:
    """The old tables with their rows."""
    old.execute(*_CREATE)
    rows: dict[str, list[tuple[object, ...]]] = {
        "category": [(n, f"group {n % 5}") for n in range(1, 8)],
        "product": [(n, f" Thing {n % 12}", n * 1.25, n % 7 + 1) for n in range(1, 41)],
        "customer": [(n, f"person {n}", None if n < 5 else n // 2) for n in range(1, 31)],
        "orders": [(n, n % 30 + 1, n % 11) for n in range(1, orders + 1)],
        "order_line": [
            (n, line, (n * 7 + line * 3) % 40 + 1, n % 4 + line)
            for n in range(1, orders + 1)
            for line in range(1, n % 4 + 1)
        ],
    }
    connection = old.connect()
    for table, values in rows.items():
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(values[0]))
            cursor.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    connection.close()
    if old.kind == "postgresql":
        old.execute(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in TABLES))


def make(folder: Path, old: Database, new: Database, only: tuple[str, ...] = ()) -> Project:
    """The project between these databases; ``only``: its mapping makes no other tables."""
    more = ["[spark]", 'master = "local[2]"']
    config = make_project(folder, scenario_database(old), scenario_database(new), HERE, "shop", more)
    if only:
        with (config.parent / "mapping.py").open("a") as file:
            file.write(
                f"\nfor name in mapping._targets.keys() - {set(only)!r}:\n    del mapping._targets[name]\n"
            )
    wiring.upgrade_user_target(configuration.load(config))
    return Project(old, new, config)


def expected(old: Database, table: str) -> str:
    """The oracle's query for a new table."""
    return EXPECTED[table].replace("{products}", _PRODUCTS[old.kind])


def differences(
    project: Project, tables: tuple[str, ...] = tuple(EXPECTED)
) -> dict[str, list[tuple[str, ...]]]:
    """Rows that only one side has, per table that has any."""
    found = {}
    for table in tables:
        wanted = sorted(map(_plain, project.old.query(expected(project.old, table))))
        actual = sorted(map(_plain, project.new.query(f"SELECT * FROM {table}")))
        assert wanted, f"an empty table {table} proves nothing"
        if wanted != actual:
            found[table] = sorted(set(wanted) ^ set(actual)) or [("rows twice",)]
    return found


def _plain(row: tuple[object, ...]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


def changes(seed: int, orders: int) -> Iterator[list[str]]:
    """Endless random transactions over all tables, each a list of statements that can't fail alone."""
    chance = random.Random(seed)
    fresh = 100_000 * (seed + 1)

    def line() -> str:
        return f"order_id = {chance.randint(1, orders)} AND line_no = {chance.randint(1, 4)}"

    while True:
        fresh += 1
        order, product, customer = chance.randint(1, orders), chance.randint(1, 40), chance.randint(1, 30)
        kinds = [
            [f"UPDATE order_line SET quantity = quantity + 1 WHERE {line()}"],
            [f"UPDATE product SET name = ' Thing {chance.randint(0, 14)}' WHERE product_id = {product}"],
            [f"UPDATE product SET category_id = {chance.randint(1, 7)} WHERE product_id = {product}"],
            [f"UPDATE customer SET name = 'person {fresh}' WHERE customer_id = {customer}"],
            [f"UPDATE category SET name = 'group {chance.randint(0, 6)}' WHERE category_id = {chance.randint(1, 7)}"],
            [f"UPDATE orders SET customer_id = {customer}, day = {chance.randint(0, 12)} WHERE order_id = {order}"],
            [f"DELETE FROM order_line WHERE order_id = {order}", f"DELETE FROM orders WHERE order_id = {order}"],
            [f"UPDATE order_line SET line_no = {fresh}, order_id = {order} WHERE {line()}"
             f" AND EXISTS (SELECT 1 FROM orders o WHERE o.order_id = {order})"],
            [f"INSERT INTO orders VALUES ({fresh}, {customer}, {chance.randint(0, 12)})",
             *(f"INSERT INTO order_line VALUES ({fresh}, {n}, {chance.randint(1, 40)}, {n})" for n in (1, 2, 3))],
            [f"INSERT INTO product VALUES ({fresh}, ' Thing {chance.randint(0, 14)}', {chance.randint(1, 50)}, 3)"],
            [f"DELETE FROM product WHERE product_id > 100 AND product_id < {fresh} AND NOT EXISTS"
             " (SELECT 1 FROM order_line l WHERE l.product_id = product.product_id)"],
            [f"UPDATE product SET price = {chance.randint(1, 60)} WHERE product_id = {product}"],
            [f"INSERT INTO customer VALUES ({fresh}, 'new', {customer})"],
        ]  # fmt: skip
        if chance.random() < 0.5:
            kinds.append(
                [
                    f"UPDATE customer SET referrer_id = {chance.randint(1, customer)} WHERE customer_id = {customer}"
                ]
            )
        yield [one for kind in chance.sample(kinds, chance.randint(1, 4)) for one in kind]
