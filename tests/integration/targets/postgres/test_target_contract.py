"""The PostgreSQL target keeps the contract of targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from migrator.adapters.targets.postgres.settings import PostgresTarget
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.ports.target import Target
from tests.contract.targets.target_contract import TargetContract
from tests.contract.targets.target_under_test import TargetUnderTest
from tests.servers import Database

pytestmark = pytest.mark.integration


class PostgresPlace:
    def __init__(self, database: Database):
        self._database = database
        self._targets: list[PostgresTargetWriter] = []
        database.execute(
            "CREATE TABLE item (id bigint PRIMARY KEY, name text, quantity integer)",
            "CREATE TABLE person (id bigint PRIMARY KEY, email text UNIQUE)",
            "CREATE TABLE note (id bigint PRIMARY KEY, item_id bigint REFERENCES item)",
            "CREATE TABLE kept (id bigint PRIMARY KEY, name text, extra text DEFAULT 'kept')",
        )

    def target(self) -> Target:
        database = self._database
        target = PostgresTargetWriter(
            PostgresTarget(
                host=database.host,
                port=database.port,
                database=database.database,
                schema="public",
                user=database.user,
                password=database.password,
                migration="contract",
            )
        )
        self._targets.append(target)
        return target

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
