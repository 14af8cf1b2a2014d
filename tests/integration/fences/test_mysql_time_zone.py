"""Servers whose machine keeps another time than UTC: whoever began before the fence is seen there, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.embedded import process
from migrator.embedded.mariadb import EmbeddedMariaDB
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.process import scratch_directory
from migrator.model.cutover.fence import FenceKind
from tests.contract.fences.fence_under_test import LONG_S, down, plan_of, rows_of, run
from tests.integration.fences.mysql_place import MysqlPlace
from tests.integration.waiting import await_true
from tests.servers import (
    Database,
    MariaDBServer,
    embedded_mariadb,
    embedded_mysql,
    fresh_database,
    unpacked_mysql,
)

pytestmark = [pytest.mark.integration, pytest.mark.slow]
_KINDS = ("mysql", "mariadb")


def _server(kind: str, folder: Path) -> EmbeddedMariaDB | EmbeddedMySQL:
    return embedded_mysql(folder) if kind == "mysql" else embedded_mariadb(folder)


@pytest.fixture(params=[(kind, zone) for kind in _KINDS for zone in ("JST-9", "PST8")], ids="-".join)
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[MysqlPlace]:
    kind, zone = request.param
    if kind == "mysql":
        unpacked_mysql()
    plain = process.plain_environment()
    monkeypatch.setattr(process, "plain_environment", lambda: plain | {"TZ": zone})
    with scratch_directory("fence-") as folder, _server(kind, folder / "my") as server:
        admin = Database(server.host, server.port, "mysql", server.superuser, server.password, kind)
        with fresh_database(MariaDBServer(admin, server), "old") as database:
            (zoned,) = database.query("SELECT @@system_time_zone")
            assert zoned[0] in zone, "the server keeps another time"
            yield MysqlPlace(database)


def test_a_transaction_of_before_is_open_and_one_of_after_is_not(place: MysqlPlace) -> None:
    plan, fence = plan_of(place, FenceKind.ACCOUNT_LOCK), place.fence()
    before, after = place.connect(""), place.connect("")
    run(before, "BEGIN")
    run(before, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 1")
    fence.raise_fence(plan, LONG_S)
    place.database.query("SELECT SLEEP(1.1)")  # beginnings are kept in whole seconds
    run(after, "BEGIN")
    run(after, f"UPDATE {place.table(1)} SET amount = 9 WHERE id = 2")
    found = fence.open_transactions(plan)
    assert [one.id for one in found] == [str(before.thread_id())], "by the clock of the same server"
    fence.end(found)
    await_true(lambda: not fence.open_transactions(plan), "its end")
    run(after, "ROLLBACK")
    assert [row[2] for row in rows_of(place, 1)] == [5, 6]
    down(place, plan)
