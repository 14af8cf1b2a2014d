"""The 36 old tables of the application, and their rows, which a seed decides: made inside a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scenarios.database import Database


@dataclass(frozen=True, slots=True)
class Table:
    """One old table; its key is ``<name>_id``, a number from 1.

    Attributes:
        kind: ``lookup``, ``entity``, ``link`` or ``history``.
        rows: at scale 1.
        references: tables that a foreign key leads to, by ``<table>_id``; one that may be null ends with ``?``.
        columns: what the mapping reads besides, as ``name type``.
    """

    name: str
    kind: str
    rows: int
    references: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def unread(self) -> tuple[str, ...]:
        """Columns that no target reads, as ``name type``."""
        return _UNREAD[self.kind]

    def parents(self) -> tuple[str, ...]:
        """The tables that it refers to."""
        return tuple(reference.rstrip("?") for reference in self.references)


_UNREAD = {
    "lookup": ("notes text",),
    "entity": ("last_seen timestamp", "views int", "notes text", "updated_at timestamp"),
    "link": ("created_at timestamp",),
    "history": ("recorded_by int",),
}


def _tables(kind: str, text: str) -> Iterator[Table]:
    for line in filter(None, map(str.strip, text.splitlines())):
        name, rows, references, columns = (part.strip() for part in line.split("|"))
        found = tuple(filter(None, map(str.strip, columns.split(","))))
        yield Table(name, kind, int(rows), tuple(references.split()), found)


TABLES = (
    *_tables(
        "lookup",
        """
        country        | 200 |          | country_name text
        currency       | 30  |          | code text
        category       | 120 |          | category_name text
        tag            | 200 |          | tag_name text
        tax_rate       | 40  |          | percent numeric
        carrier        | 25  |          | carrier_name text
        payment_method | 20  |          | method_name text
        channel        | 20  |          | channel_name text
        reason         | 50  |          | reason_text text
        warehouse      | 40  |          | warehouse_name text
        plan           | 100 | currency | plan_name text, monthly numeric
        """,
    ),
    *_tables(
        "entity",
        """
        address      | 60000 | country | street text, city text
        company      | 5000  | address | company_name text
        customer     | 40000 | address company? | customer_name text, email text
        store        | 200   | address | store_name text
        employee     | 1000  | store | employee_name text
        contact      | 20000 | company | contact_name text
        supplier     | 2000  | address currency | supplier_name text
        product      | 18000 | category tax_rate currency | title text, price numeric
        orders       | 60000 | customer address channel currency | placed_at timestamp, total numeric
        shipment     | 50000 | orders carrier address | shipped_at timestamp, weight int
        invoice      | 50000 | orders currency | amount numeric, due_at timestamp
        payment      | 50000 | invoice payment_method | paid numeric
        ticket       | 20000 | customer employee? | subject text
        subscription | 15000 | customer plan | seats int
        """,
    ),
    *_tables(
        "link",
        """
        order_line       | 100000 | orders product | quantity int, line_price numeric
        product_tag      | 20000  | product tag |
        customer_tag     | 20000  | customer tag |
        product_supplier | 20000  | product supplier | lead_days int
        stock            | 30000  | product warehouse | quantity int
        review           | 30000  | product customer | stars int
        ticket_message   | 60000  | ticket | sent_at timestamp, characters int
        """,
    ),
    *_tables(
        "history",
        """
        order_status       | 100000 | orders reason? | status text, since timestamp
        price_history      | 40000  | product | list_price numeric, since timestamp
        ticket_status      | 50000  | ticket reason? | status text, since timestamp
        subscription_event | 30000  | subscription | event text, since timestamp
        """,
    ),
)
"""Parents stand before their children: this order can be filled."""
BY_NAME = {table.name: table for table in TABLES}

_TYPES = {"text": "varchar(60)", "numeric": "numeric(12,2)", "int": "integer", "timestamp": "timestamp"}
_VALUES = {
    "text": "'{name} ' || ({drawn} % 5000)",
    "numeric": "({drawn} % 100000) / 100.0",
    "int": "{drawn} % 100",
    "timestamp": "timestamp '2024-01-01' + ({drawn} % 60000000) * interval '1 second'",
}


def create(database: Database, *, scale: float = 1.0, seed: int = 1) -> None:
    """Makes and fills the tables of an empty PostgreSQL database."""
    with database.postgres(autocommit=True) as connection:
        for statement in statements(scale=scale, seed=seed):
            connection.execute(statement.encode())


def statements(*, scale: float = 1.0, seed: int = 1) -> Iterator[str]:
    """The statements that make the tables and their rows: with one seed, the same rows on every server."""
    for number, table in enumerate(TABLES):
        yield _definition(table)
        yield _filling(table, scale, seed * 1000 + number * 20)
        yield f"ALTER SEQUENCE {table.name}_{table.name}_id_seq RESTART WITH {rows_of(table, scale) + 1}"
        for parent in table.parents():
            yield f"CREATE INDEX {table.name}_by_{parent} ON {table.name} ({parent}_id)"
    yield "ANALYZE"


def rows_of(table: Table, scale: float = 1.0) -> int:
    """Rows of a table at the beginning, with the keys from 1; lookups don't grow."""
    return table.rows if table.kind == "lookup" else max(int(table.rows * scale), 1)


def named(columns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Name and type of columns that are written as ``name type``."""
    for column in columns:
        name, kind = column.split()
        yield name, kind


def _definition(table: Table) -> str:
    columns = [f"{table.name}_id bigserial PRIMARY KEY"]
    for reference in table.references:
        parent = reference.rstrip("?")
        null = "" if reference.endswith("?") else " NOT NULL"
        columns.append(f"{parent}_id bigint{null} REFERENCES {parent}")
    columns += [f"{name} {_TYPES[kind]} NOT NULL" for name, kind in named(table.columns)]
    columns += [f"{name} {_TYPES[kind]}" for name, kind in named(table.unread)]
    text = ", ".join(columns)
    return f"CREATE TABLE {table.name} ({text}); ALTER TABLE {table.name} REPLICA IDENTITY FULL"


def _filling(table: Table, scale: float, seed: int) -> str:
    values = ["i"]
    for reference in table.references:
        seed += 1
        parent = BY_NAME[reference.rstrip("?")]
        chosen = f"{_drawn(seed)} % {rows_of(parent, scale)} + 1"
        if reference.endswith("?"):  # every third row has none
            chosen = f"CASE WHEN {_drawn(seed)} / 7 % 3 > 0 THEN {chosen} END"
        values.append(chosen)
    for name, kind in named((*table.columns, *table.unread)):
        seed += 1
        values.append(_VALUES[kind].format(name=name, drawn=_drawn(seed)))
    rows = rows_of(table, scale)
    return f"INSERT INTO {table.name} SELECT {', '.join(values)} FROM generate_series(1, {rows}) i"


def _drawn(seed: int) -> str:
    """A number below 2^31 from the row's number: the server's own hash, which is the same everywhere."""
    return f"(hashint8extended(i, {seed}) & 2147483647)"
