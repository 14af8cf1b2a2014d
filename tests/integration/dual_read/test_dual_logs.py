"""Query logs that servers wrote themselves: parameters of a dual read come from what was really asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from migrator.embedded.process import scratch_directory
from tests.integration.dual_read.dual_stream import MIGRATION, SELECT_OLD, Stream
from tests.integration.dual_read.test_dual_read import pair
from tests.integration.judged import settings_of
from tests.integration.waiting import await_true
from tests.servers import Database, PostgresServer, embedded_postgres, fresh_database
from verify.dual_read.log_files import read_log
from verify.dual_read.query_log import match_log
from verify.dual_read.result import DualReadResult
from verify.dual_read.runner import CapturedLog, Plan, run

pytestmark = pytest.mark.integration

BY_NAME_OLD = "SELECT id, price FROM person WHERE name = :name"
BY_NAME_NEW = "SELECT id, price FROM client WHERE full_name = :name"
PAIRS = [
    pair(log=SELECT_OLD),
    pair(new=BY_NAME_NEW, old=BY_NAME_OLD, log=BY_NAME_OLD, name="by name", parameters={"name": ["name 1"]}),
]
ODD = "O'Neil\n\\ \t;--ü"
"""What a log has to quote."""


def found_in(file: Path, form: str) -> dict[str, list[dict[str, object]]]:
    return match_log(read_log(file, form), PAIRS, form, 100).parameters


def asked(stream: Stream, file: Path, form: str) -> DualReadResult:
    both = settings_of(stream.old), settings_of(stream.new)
    return run(*both, MIGRATION, PAIRS, Plan(settle_s=10), CapturedLog(file, form))


@pytest.fixture(scope="module")
def logging_postgres() -> Iterator[PostgresServer]:
    settings = {"logging_collector": "on", "log_destination": "csvlog"}
    with (
        scratch_directory("migrator-csvlog-") as folder,
        embedded_postgres(folder / "pg", settings=settings) as server,
    ):
        yield PostgresServer(
            Database(server.host, server.port, "postgres", server.superuser, "", "postgresql"), server
        )


def test_csvlog_of_postgresql(logging_postgres: PostgresServer, new_mysql: Database) -> None:
    with fresh_database(logging_postgres, "old") as old:
        stream = Stream(old, new_mysql)
        with old.connect() as application:
            application.execute("SET log_statement = 'all'")
            ask(application, 3)
            application.execute("SET log_statement = 'none'")
            application.execute("SET log_min_duration_statement = 0")
            ask(application, 11)
            application.execute("SELECT 'ended'")
            (file,) = application.execute(
                "SELECT current_setting('data_directory') || '/' || pg_current_logfile('csvlog')"
            ).fetchone()
        await_true(lambda: "SELECT 'ended'" in Path(file).read_text(), "the log is written")
        result = asked(stream, Path(file), "postgresql")
        stream.close()
    by_id, by_name = result.pairs
    assert (by_id.match, by_name.match, by_id.compared, by_name.compared) == (6, 4, 6, 4), result.notes
    assert {"name": f"{ODD}3"} in found_in(Path(file), "postgresql")["by name"]


def ask(application: psycopg.Connection[tuple[object, ...]], first: int) -> None:
    """What an application asks, in each way that psycopg has; rows ``first`` to ``first`` + 2, and two by name."""
    by_id, by_name = SELECT_OLD.replace(":id", "%s"), BY_NAME_OLD.replace(":name", "%s")
    application.execute(f"SELECT id, name, visits, price, active\n FROM person /* app */ where ID = {first};")
    application.execute(by_id, (first + 1,))
    application.execute(by_id, (first + 2,), prepare=True)
    application.execute(by_name, (f"{ODD}{first}",))
    psycopg.ClientCursor(application).execute(by_name, (f"name {first}",))
    application.execute("SELECT id FROM person WHERE id = 6")
    application.execute("UPDATE person SET visits = visits WHERE id = 0")


@pytest.mark.parametrize("engine", ["mysql", "mariadb"])
def test_the_general_log(engine: str, request: pytest.FixtureRequest, new_pg: Database) -> None:
    old: Database = request.getfixturevalue({"mysql": "old_mysql", "mariadb": "old_maria"}[engine])
    stream = Stream(old, new_pg)
    (was, output, name), *_ = old.query("SELECT @@general_log, @@log_output, @@general_log_file")
    file = Path(old.query("SELECT @@datadir")[0][0]) / name
    own = file.with_name(f"{old.database}.log")
    try:
        old.execute(
            f"SET GLOBAL log_output = 'FILE', GLOBAL general_log_file = '{own}', GLOBAL general_log = 1"
        )
        connection = old.connect()
        with connection.cursor() as cursor:
            cursor.execute("SELECT id, name, visits, price, active\n FROM person /* app */ where ID = 3")
            cursor.execute(SELECT_OLD.replace(":id", "%s"), (5,))
            cursor.execute(BY_NAME_OLD.replace(":name", "%s"), (ODD,))
            cursor.execute(f"PREPARE asked FROM '{BY_NAME_OLD.replace(':name', '?')}'")
            cursor.execute("SET @name = 'name 7'")
            cursor.execute("EXECUTE asked USING @name")
            cursor.execute("SELECT id FROM person WHERE id = 6")
        connection.close()
    finally:
        old.execute(
            f"SET GLOBAL general_log = {was}, GLOBAL log_output = '{output}', GLOBAL general_log_file = '{name}'"
        )
    if not own.exists():
        pytest.skip("the server writes its log elsewhere than this machine")
    result = asked(stream, own, "mysql")
    stream.close()
    by_id, by_name = result.pairs
    assert (by_id.match, by_name.match, by_id.compared, by_name.compared) == (2, 2, 2, 2), result.notes
    assert result.notes[0].startswith(f"{own.name}: 4 of ")
    assert {"name": ODD} in found_in(own, "mysql")["by name"]
