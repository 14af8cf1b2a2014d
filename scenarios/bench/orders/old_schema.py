"""The old table ``orders`` and its rows, made inside the server; and writers that change it."""

from __future__ import annotations

from typing import Any

from scenarios.database import Database
from scenarios.workload import Action, Session, Workload

_POSTGRES = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer bigint NOT NULL, items int NOT NULL, state varchar(12) NOT NULL,
    comment varchar(80) NOT NULL, total numeric(12,2) NOT NULL, rebate double precision NOT NULL,
    created timestamp NOT NULL, paid smallint NOT NULL, source varchar(8) NOT NULL
);
ALTER TABLE orders REPLICA IDENTITY FULL;
"""
_MARIADB = """
CREATE TABLE orders (
    id bigint PRIMARY KEY, customer bigint NOT NULL, items int NOT NULL, state varchar(12) NOT NULL,
    comment varchar(80) NOT NULL, total decimal(12,2) NOT NULL, rebate double NOT NULL,
    created datetime(6) NOT NULL, paid smallint NOT NULL, source enum('web', 'shop', 'phone') NOT NULL
) ENGINE=InnoDB CHARSET=utf8mb4
"""
_FILL_POSTGRES = """
INSERT INTO orders SELECT n, mod(n, 5000), mod(n, 9), (ARRAY['NEW','PACKED','SENT','DONE'])[mod(n, 4) + 1],
    'comment no. ' || n || ' of this table', mod(n, 100000) / 7.0, n / 3.0,
    timestamp '2020-01-01' + n * interval '7 seconds', mod(n, 2), (ARRAY['web','shop','phone'])[mod(n, 3) + 1]
FROM generate_series(%s::bigint, %s::bigint) n
"""
_FILL_MARIADB = """
INSERT INTO orders SELECT seq, mod(seq, 5000), mod(seq, 9), ELT(mod(seq, 4) + 1, 'NEW','PACKED','SENT','DONE'),
    CONCAT('comment no. ', seq, ' of this table'), mod(seq, 100000) / 7.0, seq / 3e0,
    TIMESTAMP('2020-01-01') + INTERVAL seq * 7 SECOND, mod(seq, 2), ELT(mod(seq, 3) + 1, 'web','shop','phone')
FROM {numbers}
"""
_NUMBERS = {
    "mariadb": "seq_{first}_to_{last}",
    "mysql": "(WITH RECURSIVE made (seq) AS (SELECT {first} UNION ALL SELECT seq + 1 FROM made WHERE seq < {last})"
    " SELECT seq FROM made) numbers",
}
_INSERT_ROWS = 200_000


def create(database: Database, rows: int) -> None:
    """Makes the table and fills it with ids 1 to ``rows``."""
    connection: Any = database.connect(autocommit=True)
    cursor = connection.cursor()
    for statement in (_POSTGRES if database.kind == "postgresql" else _MARIADB).split(";"):
        if statement.strip():
            cursor.execute(statement)
    if database.kind == "mysql":
        cursor.execute(f"SET SESSION cte_max_recursion_depth = {_INSERT_ROWS}")
    for first in range(1, rows + 1, _INSERT_ROWS):
        last = min(rows, first + _INSERT_ROWS - 1)
        if database.kind == "postgresql":
            cursor.execute(_FILL_POSTGRES, (first, last))
        else:
            numbers = _NUMBERS[database.kind].format(first=first, last=last)
            cursor.execute(_FILL_MARIADB.format(numbers=numbers))
    if database.kind == "postgresql":
        cursor.execute("ANALYZE orders")
        cursor.execute("CHECKPOINT")
    else:
        cursor.execute("ANALYZE TABLE orders")
        cursor.fetchall()
    connection.close()


def touch(database: Database, first: int, last: int, rows_a_commit: int) -> None:
    """Updates the orders ``first`` to ``last``, in transactions of ``rows_a_commit`` rows: a backlog to stream."""
    connection: Any = database.connect(autocommit=True)
    cursor = connection.cursor()
    for start in range(first, last + 1, rows_a_commit):
        cursor.execute(
            "UPDATE orders SET items = items + 1 WHERE id BETWEEN %s AND %s",
            (start, min(last, start + rows_a_commit - 1)),
        )
    connection.close()


class OrderWriters(Workload):
    """Single-row updates spread over all orders, with some inserts and deletes.

    Args:
        database: filled by :func:`create`.
        rows: how many orders there are.
        rate_per_s: row changes per second; None for as fast as it goes.
    """

    def __init__(
        self, database: Database, rows: int, *, rate_per_s: float | None, threads: int = 2, seed: int = 1
    ):
        self._rows = rows
        actions = [
            Action("update", 8, self._update),
            Action("delete", 1, self._delete),
            Action("insert", 1, self._insert),
        ]
        super().__init__(
            database, actions, seed=seed, rate_per_s=rate_per_s, threads=threads, limit_row_changes=None
        )

    def _update(self, session: Session) -> None:
        session.change(
            "UPDATE orders SET items = items + 1, state = 'SENT' WHERE id = %s",
            session.rng.randint(1, self._rows),
        )

    def _delete(self, session: Session) -> None:
        session.change("DELETE FROM orders WHERE id = %s", session.rng.randint(1, self._rows))

    def _insert(self, session: Session) -> None:
        session.change(
            "INSERT INTO orders VALUES (%s, 1, 2, 'NEW', 'late', 12.34, 0.5, '2024-02-29 12:00:00', 0, 'web')",
            session.rng.randint(10**9, 10**12),
        )
