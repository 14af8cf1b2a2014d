"""Changes as an application's users make them: most touch what no target reads. Each is a script of pgbench."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scenarios.bench.shapes.application.tables import BY_NAME, TABLES, named, rows_of

SHARES = {"unread": 0.80, "read": 0.15, "hot": 0.01, "life": 0.04}
"""The parts of all row changes: of columns that no target reads, of what targets read, of lookup rows that reach
many target rows, of entities that come and go with their children."""

THREE_TARGETS = ("product_titled", "customer_named", "order_totalled")
"""Changes of a column that three targets read."""


@dataclass(frozen=True, slots=True)
class Change:
    """One kind of transaction.

    Attributes:
        kind: a key of ``SHARES``.
        rows: row changes of the transaction, on average.
        weight: how often it is drawn among those of its kind.
    """

    name: str
    kind: str
    script: str
    rows: float = 1.0
    weight: float = 1.0


def changes(scale: float = 1.0) -> tuple[Change, ...]:
    """All kinds of transactions for tables of that scale."""
    return (*_unread(scale), *_read(scale), *_hot(scale), *_life(scale))


def per_transaction(chosen: tuple[Change, ...]) -> dict[str, float]:
    """Gives the chance of each to be drawn, by name: row changes get the shares of their kinds. The sum is 1.

    A kind that isn't among the chosen has no share: the others' are as they are to one another.
    """
    weights: dict[str, float] = {}
    for kind in dict.fromkeys(change.kind for change in chosen):
        alike = [change for change in chosen if change.kind == kind]
        rows = sum(change.weight * change.rows for change in alike)
        weights |= {change.name: SHARES[kind] * change.weight / rows for change in alike}
    total = sum(weights.values())
    return {name: weight / total for name, weight in weights.items()}


def rows_a_transaction(chosen: tuple[Change, ...]) -> float:
    """Row changes of a transaction, on average."""
    drawn = per_transaction(chosen)
    return sum(drawn[change.name] * change.rows for change in chosen)


def _unread(scale: float) -> Iterator[Change]:
    """Every entity is seen, counted and noted upon, the larger ones more often."""
    sets = {"seen": "last_seen = localtimestamp", "viewed": "views = views + 1"}
    sets["noted"] = "notes = 'note ' || :drawn, updated_at = localtimestamp"
    for table in (table for table in TABLES if table.kind == "entity"):
        for what, assigned in sets.items():
            script = _update(table.name, assigned, scale)
            yield Change(f"{table.name}_{what}", "unread", script, weight=table.rows**0.5)


def _read(scale: float) -> Iterator[Change]:
    assigned = {
        "product_titled": ("product", "title = 'title ' || :drawn"),
        "customer_named": ("customer", "customer_name = 'name ' || :drawn"),
        "order_totalled": ("orders", "total = :drawn / 100.0"),
        "address_moved": ("address", "city = 'city ' || :drawn"),
        "ticket_asked": ("ticket", "subject = 'subject ' || :drawn"),
        "stock_counted": ("stock", "quantity = :drawn % 100"),
        "subscription_seated": ("subscription", "seats = :drawn % 100"),
    }
    for name, (table, columns) in assigned.items():
        yield Change(name, "read", _update(table, columns, scale))
    for table in ("product_tag", "customer_tag"):
        yield Change(f"{table}_given", "read", _insert(table, scale))
        script = f"{_random('id', table, scale)}DELETE FROM {table} WHERE {table}_id = :id;\n"
        yield Change(f"{table}_taken", "read", script)
    for table in ("order_status", "price_history", "ticket_status", "subscription_event"):
        yield Change(f"{table}_written", "read", _insert(table, scale))
    for table in ("review", "payment", "ticket_message"):
        yield Change(f"{table}_written", "read", _insert(table, scale))


def _hot(scale: float) -> Iterator[Change]:
    """Lookup rows that some 150 target rows need at scale 1."""
    yield Change("category_named", "hot", _update("category", "category_name = 'name ' || :drawn", scale))
    yield Change("plan_priced", "hot", _update("plan", "monthly = :drawn / 100.0", scale))


def _life(scale: float) -> Iterator[Change]:
    lines = "".join(_insert("order_line", scale, orders=":orders_id") for _ in range(2))
    status = _insert("order_status", scale, orders=":orders_id")
    placed = _insert("orders", scale, returning=True) + lines + status
    yield Change("order_placed", "life", _whole(placed), rows=4.0)
    came = _insert("address", scale, returning=True) + _insert("customer", scale, address=":address_id")
    yield Change("customer_came", "life", _whole(came), rows=2.0)
    children = ("ticket_message", "ticket_status")
    opened = _insert("ticket", scale, returning=True)
    opened += "".join(_insert(child, scale, ticket=":ticket_id") for child in children)
    yield Change("ticket_opened", "life", _whole(opened), rows=3.0)
    removed = _random("id", "ticket", scale) + "SELECT 1 FROM ticket WHERE ticket_id = :id FOR UPDATE;\n"
    removed += "".join(f"DELETE FROM {table} WHERE ticket_id = :id;\n" for table in (*children, "ticket"))
    rows = 1.0 + sum(BY_NAME[child].rows for child in children) / BY_NAME["ticket"].rows
    yield Change("ticket_removed", "life", _whole(removed), rows=rows)


def _update(table: str, assigned: str, scale: float) -> str:
    drawn = _drawn() if ":drawn" in assigned else ""
    return f"{_random('id', table, scale)}{drawn}UPDATE {table} SET {assigned} WHERE {table}_id = :id;\n"


def _insert(name: str, scale: float, *, returning: bool = False, **known: str) -> str:
    """A row; of what it refers to, parents that are not ``known`` are drawn. The new key is ``:<table>_id``."""
    table = BY_NAME[name]
    head, values, found = _drawn(), {}, ""
    for parent in table.parents():
        values[f"{parent}_id"] = known.get(parent, f":{parent}")
        if parent not in known:
            head += _random(parent, parent, scale)
        if parent == "ticket" and parent not in known:  # it may have been removed: the next one
            values["ticket_id"], found = "ticket_id", _NEXT_TICKET
    values |= {column: _VALUES[kind] for column, kind in named(table.columns)}
    end = f" RETURNING {name}_id \\gset\n" if returning else ";\n"
    return f"{head}INSERT INTO {name} ({', '.join(values)}) SELECT {', '.join(values.values())}{found}{end}"


_NEXT_TICKET = " FROM ticket WHERE ticket_id >= :ticket ORDER BY ticket_id LIMIT 1 FOR KEY SHARE SKIP LOCKED"
_VALUES = {
    "text": "'text ' || :drawn",
    "numeric": ":drawn / 100.0",
    "int": ":drawn % 100",
    "timestamp": "localtimestamp",
}


def _whole(statements: str) -> str:
    return f"BEGIN;\n{statements}COMMIT;\n"


def _random(variable: str, table: str, scale: float) -> str:
    return f"\\set {variable} random(1, {rows_of(BY_NAME[table], scale)})\n"


def _drawn() -> str:
    return "\\set drawn random(1, 100000)\n"
