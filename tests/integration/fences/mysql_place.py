"""A MySQL or MariaDB database on which fences are raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pymysql

from migrator.adapters.fences.mariadb.fence import MariaFence
from migrator.adapters.fences.mysql.fence import MysqlFence
from migrator.adapters.fences.mysql.session import MysqlFenceSession
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.connections.mysql.sql import quote_table
from migrator.model.cutover.fence import FenceKind
from migrator.model.table import TableId
from tests.servers import Database, server_of

FENCES = {"mysql": MysqlFence, "mariadb": MariaFence}
_TRIGGERS = (
    "SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, EVENT_MANIPULATION, ACTION_TIMING, ACTION_ORDER, ACTION_STATEMENT"
    " FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE() ORDER BY 1"
)
_OURS = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME LIKE %s ORDER BY 1"
_VARIABLES = "SHOW GLOBAL VARIABLES LIKE '%read\\_only'"


class MysqlPlace:
    kinds = (FenceKind.TRIGGERS, FenceKind.ACCOUNT_LOCK, FenceKind.READ_ONLY)
    says_where = frozenset({FenceKind.TRIGGERS})

    harsh = (
        ("PREPARE again FROM 'UPDATE orders SET amount = amount + 1'", "EXECUTE again"),
        ("CALL as_definer()",),
        ("REPLACE INTO orders VALUES (1, 1, FLOOR(RAND() * 1000))",),
        (
            "UPDATE orders o JOIN customer c ON c.id = o.customer_id SET o.amount = o.amount + 1, c.name = UUID()",
        ),
        ("INSERT INTO orders VALUES (1, 1, 1) ON DUPLICATE KEY UPDATE amount = amount + 1",),
    )

    def __init__(self, database: Database):
        self.database = database
        # MySQL's servers of the tests don't watch themselves: see test_mysql_watched.
        counts = database.kind == "mariadb"
        self.named_late = frozenset({FenceKind.TRIGGERS}) if counts else frozenset[FenceKind]()
        tail = database.database[-10:]
        self.ours, self.app = f"Our \"login's {tail}", f"app@{tail}"
        self.role = f"{self.app}@%"
        self.tables = tuple(
            TableId(database.database, name) for name in ("customer", "orders", "Odd `table's; --")
        )
        customer, orders, odd = (quote_table(table) for table in self.tables)
        database.execute(
            f"CREATE TABLE {customer} (id bigint PRIMARY KEY, name varchar(40))",
            f"CREATE TABLE {orders} (id bigint PRIMARY KEY, customer_id bigint, amount int,"
            f" FOREIGN KEY (customer_id) REFERENCES {customer} (id) ON DELETE CASCADE ON UPDATE CASCADE)",
            f"CREATE TABLE {odd} (id bigint PRIMARY KEY, name varchar(40))",
            f"CREATE TRIGGER earlier BEFORE INSERT ON {odd} FOR EACH ROW SET NEW.name = UPPER(NEW.name)",
            f"CREATE PROCEDURE as_definer() SQL SECURITY DEFINER UPDATE {orders} SET amount = amount + 1",
            f"INSERT INTO {customer} VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            f"INSERT INTO {orders} VALUES (1, 1, 5), (2, 2, 6)",
            *(f"CREATE USER {self.account(login)}" for login in (self.ours, self.app)),
            *(
                f"GRANT SELECT, INSERT, UPDATE, DELETE, EXECUTE ON `{database.database}`.* TO {self.account(login)}"
                for login in (self.ours, self.app)
            ),
        )
        if database.kind == "mariadb":
            database.execute(f"GRANT READ_ONLY ADMIN ON *.* TO {self.account(self.ours)}")

    @staticmethod
    def account(login: str) -> str:
        return f"{pymysql.converters.escape_string(login).join(chr(39) * 2)}@'%'"

    def drop(self) -> None:
        """Drops what belongs to the whole server."""
        for login in (self.ours, self.app):
            self.database.execute(f"DROP USER {self.account(login)}")

    def fence(self, step: Callable[[str], None] = lambda name: None) -> MysqlFence:
        return FENCES[self.database.kind](Side(server_of(self.database), "shop", "source"), step)

    def connect(self, login: str) -> Any:
        return replace(self.database, user=login or self.database.user).connect()

    def listing(self) -> list[str]:
        found = [str(row) for row in self.database.query(_TRIGGERS)]
        found += [str(row) for row in self.database.query(_VARIABLES)]
        found += [str(row) for row in self.database.query(_OURS, (f"{self.fence()._side.name()}%",))]
        for login in (self.ours, self.app):
            for query in ("SHOW CREATE USER", "SHOW GRANTS FOR"):
                found += sorted(str(row) for row in self.database.query(f"{query} {self.account(login)}"))
        return found

    def noted(self) -> bool:
        there = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'migrator'"
        if self.database.query(f"{there} AND TABLE_NAME = 'fence'") == [(0,)]:
            return False
        name = self.fence()._side.name()
        return bool(self.database.query("SELECT 1 FROM migrator.fence WHERE name = %s", (name,)))

    def by_hand(self, statements: Sequence[str]) -> None:
        connection = self.database.connect()
        try:
            for statement in statements:
                with connection.cursor() as cursor:
                    cursor.execute(statement)
        finally:
            connection.close()

    @contextmanager
    def statements(self, before: Callable[[], None], after: Callable[[], None]) -> Iterator[None]:
        change = MysqlFenceSession.change

        def changed(session: MysqlFenceSession, *statements: Any) -> None:
            for statement in statements:
                before()
                change(session, statement)
                after()

        with patch.object(MysqlFenceSession, "change", changed):
            yield

    def refused(self) -> tuple[type[Exception], ...]:
        return (pymysql.err.MySQLError, OSError)

    def table(self, number: int) -> str:
        return quote_table(self.tables[number])
