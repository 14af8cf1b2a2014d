"""A fence that is raised and opened stops nobody who reads the log of that side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.model.cutover.fence import Standing
from migrator.model.event import RowChange, TransactionPart
from tests.contract.fences.fence_under_test import LONG_S, FencePlace, down, plan_of, run
from tests.fix_postgres_source import log_reader, prepared
from tests.fix_postgres_source import read_to as read_postgres_to
from tests.fix_postgres_source import source_of as postgres_source
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.integration.fences.mysql_place import MysqlPlace
from tests.integration.fences.postgres_place import PostgresPlace
from tests.servers import Database, fresh_database

pytestmark = pytest.mark.integration
Read = Callable[[], list[RowChange]]


def written_around_fences(place: FencePlace, read: Read) -> list[int]:
    """Raises and opens each kind of fence, with writes before, behind and after it; the keys that were read."""
    keys: list[int] = []

    def write(login: str, key: int) -> None:
        connection = place.connect(login)
        try:
            run(connection, f"INSERT INTO {place.table(0)} VALUES ({key}, 'x')")
            run(connection, f"UPDATE {place.table(0)} SET name = 'y' WHERE id = {key}")
        finally:
            connection.close()

    for number, kind in enumerate(place.kinds):
        plan = plan_of(place, kind)
        write(place.app, 100 + 10 * number)
        assert place.fence().raise_fence(plan, LONG_S).standing is Standing.UP
        for _ in range(2):
            with pytest.raises(place.refused()):
                write(place.app, 101 + 10 * number)
        if plan.login:
            write(place.ours, 102 + 10 * number)
        keys += seen(read())
        down(place, plan)
        write(place.app, 103 + 10 * number)
        keys += seen(read())
    return keys


def seen(changes: list[RowChange]) -> list[int]:
    """Keys of the customers' rows, each once for an insert and once for an update."""
    return [int(str(change.after[0])) for change in changes if change.after is not None]


def changes_of(records: list[Any]) -> list[RowChange]:
    """The row changes among records."""
    return [change for one in records if isinstance(one, TransactionPart) for change in one.changes]


def expected(place: FencePlace) -> list[int]:
    """The keys as they were written."""
    keys = []
    for number, kind in enumerate(place.kinds):
        behind = [102] if plan_of(place, kind).login else []
        keys += [key + 10 * number for key in (100, *behind, 103) for _ in range(2)]
    return keys


def test_reading_postgresql_goes_on(old_pg: Database) -> None:
    place = PostgresPlace(old_pg)
    old_pg.execute("ALTER TABLE customer REPLICA IDENTITY FULL", "ALTER TABLE orders REPLICA IDENTITY FULL")
    source = postgres_source(old_pg)
    schemas = prepared(source, "customer", "orders")
    with log_reader(source, schemas) as reader:

        def read() -> list[RowChange]:
            return changes_of(read_postgres_to(reader, PostgresCatalog(source).position()))

        assert written_around_fences(place, read) == expected(place)
    place.drop()


@pytest.mark.parametrize("engine", [MYSQL, MARIADB], ids=lambda engine: engine.kind)
def test_reading_a_binary_log_goes_on(request: pytest.FixtureRequest, engine: BinlogEngine) -> None:
    with fresh_database(request.getfixturevalue(engine.kind), "old") as database:
        place, source = MysqlPlace(database), source_of(database)
        reader, _ = engine.started(source, "customer", "orders")

        def read() -> list[RowChange]:
            return read_to(reader, engine.end(source)).changes()

        try:
            assert written_around_fences(place, read) == expected(place)
        finally:
            reader.close()
            place.drop()
