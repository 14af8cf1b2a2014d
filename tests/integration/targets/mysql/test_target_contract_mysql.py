"""The MySQL and MariaDB targets keep the contract of targets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from migrator.adapters.targets.mysql import remap
from migrator.adapters.targets.mysql.ledger import peek
from migrator.adapters.targets.mysql.mirror.names import control_table, mirror_database
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.model.ledger import Ledger
from migrator.ports.target import Target
from migrator.schema import MYSQL_LEDGER
from migrator.schema.dialects import MYSQL_HISTORY
from tests.contract.targets.target_contract import TargetContract
from tests.contract.targets.target_under_test import TargetUnderTest
from tests.integration.target_bench_mysql import settings_of
from tests.integration.waiting import await_true
from tests.servers import Database, MariaDBServer, fresh_database

pytestmark = pytest.mark.integration


TABLES = ("note", "item", "person", "kept")


def make_tables(database: Database) -> None:
    database.execute(
        "CREATE TABLE item (id bigint PRIMARY KEY, name text, quantity integer)",
        "CREATE TABLE person (id bigint PRIMARY KEY, email varchar(100) UNIQUE)",
        "CREATE TABLE note (id bigint PRIMARY KEY, item_id bigint, FOREIGN KEY (item_id) REFERENCES item (id))",
        "CREATE TABLE kept (id bigint PRIMARY KEY, name text, extra varchar(20) DEFAULT 'kept')",
    )


class MysqlPlace:
    """One database for all tests, emptied by each: making one takes longer than a test."""

    def __init__(self, database: Database):
        self._database = database
        self.ledger, self.history = MYSQL_LEDGER, MYSQL_HISTORY
        self.mirror = control_table(database.database, "filled")
        self._targets: list[MysqlTargetWriter] = []
        ledger = database.query("SHOW TABLES LIKE %s", [MYSQL_LEDGER])
        database.execute(*(f"DELETE FROM {name}" for name in [*TABLES, *(row[0] for row in ledger)]))

    def target(self, lock_wait_s: int = 30) -> Target:
        target = MysqlTargetWriter(self._settings(lock_wait_s))
        self._targets.append(target)
        return target

    def peek(self) -> Ledger | None:
        return peek(self._settings())

    def filled(self) -> list[tuple[str, int]]:
        return remap.filled(self._settings())

    def forget_filled(self, target: str, lock_wait_s: int = 30) -> bool:
        return remap.forget_filled(self._settings(lock_wait_s), target)

    def _settings(self, lock_wait_s: int = 30) -> MysqlTarget:
        return settings_of(self._database, migration="contract", lock_wait_s=lock_wait_s)

    def execute(self, *statements: str) -> None:
        self._database.execute(*statements)

    @contextmanager
    def locked(self, table: str) -> Iterator[None]:
        with closing(self._database.connect()) as other, other.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {table} WRITE")
            yield

    def drop_mirror(self) -> None:
        self._database.execute(f"DROP DATABASE {mirror_database(self._database.database)}")

    def mirror_shape(self) -> list[tuple[Any, ...]]:
        mirror = mirror_database(self._database.database)
        columns = (
            "SELECT table_name, column_name, column_type FROM information_schema.columns"
            " WHERE table_schema = %s ORDER BY 1, 2"
        )
        indexes = (
            "SELECT table_name, index_name, column_name FROM information_schema.statistics"
            " WHERE table_schema = %s ORDER BY 1, 2, 3"
        )
        return [*self._database.query(columns, [mirror]), *self._database.query(indexes, [mirror])]

    @contextmanager
    def rival(self) -> Iterator[Any]:
        """The server ends the transaction that has changed less."""
        with closing(self._database.connect(autocommit=False)) as session, session.cursor() as cursor:
            cursor.execute(
                "INSERT INTO kept (id, name) WITH RECURSIVE n AS"
                " (SELECT 1 AS id UNION ALL SELECT id + 1 FROM n WHERE id < 500) SELECT id, 'heavy' FROM n"
            )
            yield session

    def await_waiting(self, session: Any) -> None:
        waits = (
            "SELECT 1 FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
            f" AND trx_mysql_thread_id = {session.thread_id():d}"
        )
        # InnoDB shows a view of before for as long as somebody looks again within a tenth of a second.
        await_true(lambda: bool(self._database.query(waits)), "the session waits for a lock", every_s=0.2)

    def crossed_by_the_mirror(self) -> tuple[str, str, str]:
        moved = control_table(self._database.database, "moved")
        self._database.execute(f"INSERT INTO {self.mirror} VALUES ('contract', 'item', 'old', 0)")
        return (
            f"DELETE FROM {self.mirror}",
            f"SELECT * FROM {moved} FOR UPDATE",
            f"SELECT * FROM {self.mirror} FOR UPDATE",
        )

    def end_session(self, session: Any) -> None:
        self._database.execute(f"KILL CONNECTION {session.id:d}")
        there = f"SELECT 1 FROM information_schema.processlist WHERE id = {session.id:d}"
        await_true(lambda: not self._database.query(there), "the session is gone")

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return self._database.query(f"SELECT * FROM `{table}` ORDER BY id")

    def close(self) -> None:
        for target in self._targets:
            target.close()


@pytest.fixture(scope="module")
def maria_tables(mariadb: MariaDBServer) -> Iterator[Database]:
    with fresh_database(mariadb, "new") as database:
        make_tables(database)
        yield database


@pytest.fixture(scope="module")
def mysql_tables(mysql: MariaDBServer) -> Iterator[Database]:
    with fresh_database(mysql, "new") as database:
        make_tables(database)
        yield database


class TestMariaDBTarget(TargetContract):
    @pytest.fixture
    def place(self, maria_tables: Database) -> Iterator[TargetUnderTest]:
        place = MysqlPlace(maria_tables)
        yield place
        place.close()


class TestMySQLTarget(TargetContract):
    @pytest.fixture
    def place(self, mysql_tables: Database) -> Iterator[TargetUnderTest]:
        place = MysqlPlace(mysql_tables)
        yield place
        place.close()
