"""A PostgreSQL database on which fences are raised."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import psycopg

from migrator.adapters.fences.postgres.fence import PostgresFence
from migrator.adapters.fences.postgres.session import PostgresFenceSession, quoted, quoted_table
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.model.cutover.fence import FenceKind
from migrator.model.table import TableId
from tests.servers import Database, server_of

_GRANTS = """
SELECT format('%s %s %s %s %s by %s', n.nspname, c.relname, coalesce(l.part, ''), x.privilege_type,
  x.grantee::regrole::text || x.is_grantable, x.grantor::regrole)
FROM (SELECT oid, NULL::name AS part, coalesce(relacl, acldefault(CASE relkind WHEN 'S' THEN 's' ELSE 'r' END::"char",
  relowner)) AS acl FROM pg_class
  UNION ALL SELECT attrelid, attname, attacl FROM pg_attribute WHERE attacl IS NOT NULL) l
JOIN pg_class c ON c.oid = l.oid JOIN pg_namespace n ON n.oid = c.relnamespace, aclexplode(l.acl) x
WHERE n.nspname NOT LIKE 'pg\\_%' AND n.nspname NOT IN ('information_schema', 'migrator')
AND c.relkind IN ('r', 'p', 'v')
"""
_TRIGGERS = """
SELECT pg_get_triggerdef(oid) || ' ' || tgenabled::text FROM pg_trigger WHERE NOT tgisinternal
"""
_SETTINGS = """
SELECT format('%s %s', setrole, setconfig) FROM pg_db_role_setting
WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
_OURS = """
SELECT relname::text FROM pg_class WHERE relnamespace = to_regnamespace('migrator')
AND relname LIKE '%fence\\_%' AND relkind <> 'i'
UNION ALL SELECT proname::text FROM pg_proc WHERE pronamespace = to_regnamespace('migrator')
"""


class PostgresPlace:
    kinds = (FenceKind.TRIGGERS, FenceKind.REVOKE, FenceKind.READ_ONLY)
    says_where = frozenset({FenceKind.TRIGGERS})
    named_late = frozenset({FenceKind.TRIGGERS})

    harsh = (
        ("PREPARE again AS UPDATE orders SET amount = amount + 1", "EXECUTE again"),
        ("SET session_replication_role = replica", "UPDATE orders SET amount = amount + 1"),
        ("TRUNCATE orders",),
        ("SELECT as_owner()",),
        ("COPY orders FROM PROGRAM 'echo $$,1,1' (FORMAT csv)",),
    )

    def __init__(self, database: Database):
        self.database = database
        self.ours = f"Our \"login's {database.database}"
        self.app = self.role = f"app {database.database}"
        self.tables = (
            TableId("public", "customer"),
            TableId("public", "orders"),
            TableId("public", "Odd \"table's; --"),
        )
        database.execute(
            "CREATE TABLE customer (id bigint PRIMARY KEY, name text)",
            "CREATE TABLE orders (id bigint PRIMARY KEY,"
            " customer_id bigint REFERENCES customer ON DELETE CASCADE ON UPDATE CASCADE, amount int)",
            f"CREATE TABLE {self.table(2)} (id bigint PRIMARY KEY, name text)",
            "CREATE FUNCTION as_owner() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'DELETE FROM orders'",
            "INSERT INTO customer VALUES (1, 'a'), (2, 'b'), (3, 'c')",
            "INSERT INTO orders VALUES (1, 1, 5), (2, 2, 6)",
            *(f"CREATE ROLE {quoted(login)} LOGIN" for login in (self.ours, self.app)),
            *(
                f"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ALL TABLES IN SCHEMA public TO {quoted(login)}"
                for login in (self.ours, self.app)
            ),
        )

    def drop(self) -> None:
        """Drops what belongs to the whole server."""
        for login in (self.ours, self.app):
            self.database.execute(f"DROP OWNED BY {quoted(login)}", f"DROP ROLE {quoted(login)}")

    def fence(self, step: Callable[[str], None] = lambda name: None) -> PostgresFence:
        return PostgresFence(Side(server_of(self.database), "shop", "source"), step)

    def connect(self, login: str) -> Any:
        connection = replace(self.database, user=login or self.database.user).connect()
        if login == self.ours:  # as every session of the tool pins it
            connection.execute("SET default_transaction_read_only = off")
        return connection

    def listing(self) -> list[str]:
        found: list[str] = []
        for query in (_GRANTS, _TRIGGERS, _SETTINGS, _OURS):
            found += sorted(str(row[0]) for row in self.database.query(query))
        return found

    def noted(self) -> bool:
        if self.database.query("SELECT to_regclass('migrator.fence')") == [(None,)]:
            return False
        return bool(self.database.query("SELECT 1 FROM migrator.fence"))

    def by_hand(self, statements: Sequence[str]) -> None:
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    @contextmanager
    def statements(self, before: Callable[[], None], after: Callable[[], None]) -> Iterator[None]:
        change = PostgresFenceSession.change

        def changed(session: PostgresFenceSession, *statements: Any) -> None:
            before()
            change(session, *statements)
            after()

        with patch.object(PostgresFenceSession, "change", changed):
            yield

    def refused(self) -> tuple[type[Exception], ...]:
        return (psycopg.Error,)

    def table(self, number: int) -> str:
        return quoted_table(self.tables[number])
