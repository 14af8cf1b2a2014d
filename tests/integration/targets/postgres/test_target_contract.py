"""The PostgreSQL target keeps the contract of targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from migrator.adapters.targets.postgres import remap
from migrator.adapters.targets.postgres.ledger import peek
from migrator.adapters.targets.postgres.mirror.tables import FILLED, SCHEMA
from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.model.ledger import Ledger
from migrator.ports.target import Target
from tests.contract.targets.target_contract import TargetContract
from tests.contract.targets.target_under_test import TargetUnderTest
from tests.integration.target_bench import settings_of
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = pytest.mark.integration


class PostgresPlace:
    ledger, mirror, history = "migrator.ledger", FILLED, "migrator.history"

    def __init__(self, database: Database):
        self._database = database
        self._targets: list[PostgresTargetWriter] = []
        database.execute(
            "CREATE TABLE item (id bigint PRIMARY KEY, name text, quantity integer)",
            "CREATE TABLE person (id bigint PRIMARY KEY, email text UNIQUE)",
            "CREATE TABLE note (id bigint PRIMARY KEY, item_id bigint REFERENCES item)",
            "CREATE TABLE kept (id bigint PRIMARY KEY, name text, extra text DEFAULT 'kept')",
        )

    def target(self, lock_wait_s: int = 30) -> Target:
        target = PostgresTargetWriter(self._settings(lock_wait_s))
        self._targets.append(target)
        return target

    def peek(self) -> Ledger | None:
        return peek(self._settings())

    def filled(self) -> list[tuple[str, int]]:
        return remap.filled(self._settings())

    def forget_filled(self, target: str, lock_wait_s: int = 30) -> bool:
        return remap.forget_filled(self._settings(lock_wait_s), target)

    def _settings(self, lock_wait_s: int = 30) -> PostgresTarget:
        return settings_of(self._database, migration="contract", lock_wait_s=lock_wait_s)

    def execute(self, *statements: str) -> None:
        self._database.execute(*statements)

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with self._database.connect(autocommit=False) as other:
            other.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            yield

    def drop_mirror(self) -> None:
        self._database.execute(f"DROP SCHEMA {SCHEMA} CASCADE")

    def mirror_shape(self) -> list[tuple[Any, ...]]:
        columns = (
            "SELECT table_name::text, column_name::text, data_type FROM information_schema.columns"
            " WHERE table_schema = %s ORDER BY 1, 2"
        )
        indexes = "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = %s ORDER BY 1, 2"
        return [*self._database.query(columns, [SCHEMA]), *self._database.query(indexes, [SCHEMA])]

    @contextmanager
    def rival(self) -> Iterator[Any]:
        with self._database.connect(autocommit=False) as session:
            session.execute("SET deadlock_timeout = '2min'")  # whoever looks first is ended
            yield session

    def await_waiting(self, session: Any) -> None:
        waits = f"SELECT 1 FROM pg_locks WHERE NOT granted AND pid = {session.info.backend_pid:d}"
        await_true(lambda: bool(self._database.query(waits)), "the session waits for a lock")

    def crossed_by_the_mirror(self) -> tuple[str, str, str]:
        self._database.execute(f"INSERT INTO {FILLED} VALUES ('contract', 'item', 'old', 0)")
        return ("FOR UPDATE", f"SELECT * FROM {FILLED} FOR UPDATE", f"SELECT * FROM {self.ledger} FOR UPDATE")

    def end_session(self, session: Any) -> None:
        assert self._database.query(f"SELECT pg_terminate_backend({session.pid:d}, 30000)") == [(True,)]

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return self._database.query(f'SELECT * FROM "{table}" ORDER BY id')

    def close(self) -> None:
        for target in self._targets:
            target.close()


class TestPostgresTarget(TargetContract):
    @pytest.fixture
    def place(self, new_pg: Database) -> Iterator[TargetUnderTest]:
        place = PostgresPlace(new_pg)
        yield place
        place.close()
