"""AUTO_INCREMENT counters and MariaDB's sequences of a target."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest

from migrator.adapters.targets.mysql.checks.grants import target_grants
from migrator.adapters.targets.mysql.sequences import MysqlNumbers
from migrator.errors import TargetError
from migrator.model.sequence import Advance, advance
from tests.integration.target_bench_mysql import bench, ints, settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(params=["new_maria", "new_mysql"])
def target(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


def due(database: Database, tables: list[str], margin: int = 0) -> dict[str, Advance]:
    found = [advance(one, (), margin) for one in MysqlNumbers(settings_of(database)).find(tables)]
    return {each.sequence.columns[0][0]: each for each in found}


def test_counters_are_set_beyond_what_is_in_use(target: Database) -> None:
    target.execute(
        "CREATE TABLE `ta``b` (`i d` int unsigned AUTO_INCREMENT PRIMARY KEY, v int)",
        "CREATE TABLE tiny (id tinyint AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE none (id int AUTO_INCREMENT PRIMARY KEY)",
        "CREATE TABLE plain (id int PRIMARY KEY)",
        "INSERT INTO `ta``b` VALUES (40, 1)",
        "INSERT INTO tiny VALUES (127)",
    )
    tables = ["ta`b", "tiny", "none", "plain"]
    found = due(target, tables)
    assert set(found) == {"ta`b", "tiny", "none"}
    assert not found["ta`b"].moves(), "InnoDB counts given values by itself"
    assert not found["none"].moves()
    assert "no value is left" in found["tiny"].problem
    more = due(target, tables, margin=1000)["ta`b"]
    assert more.following == 1041
    numbers = MysqlNumbers(settings_of(target))
    numbers.move([more])
    assert not due(target, tables, margin=1000)["ta`b"].moves()
    target.execute("INSERT INTO `ta``b` (v) VALUES (2)")
    assert target.query("SELECT max(`i d`) FROM `ta``b`") == [(1041,)]


def test_the_missing_right_is_named_and_is_enough(target: Database) -> None:
    target.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY)", "INSERT INTO t VALUES (7)")
    poor = settings_of(target, user=f"poor_{target.database[-8:]}", password="poor")
    script = target_grants(poor, ["t"], joined=False)
    target.execute(
        script.make.rstrip(";").replace("'...'", "'poor'"),
        *(one for one in script.needed if "migrator_" not in one and "alembic" not in one),
    )
    try:
        numbers = MysqlNumbers(poor)
        [behind] = [advance(one, (), 10) for one in numbers.find(["t"])]
        with pytest.raises(TargetError, match="can't be set") as refused:
            numbers.move([behind])
        assert "GRANT ALTER, CREATE" in refused.value.remedy
        target.execute(*(statement for statement, why in script.perhaps if "sequences" in why))
        numbers.move([behind])
        assert due(target, ["t"])["t"].sequence.following == 18
    finally:
        target.execute(f"DROP USER {script.account}")


def test_sequences_in_defaults(new_maria: Database) -> None:
    new_maria.execute(
        "CREATE SEQUENCE `s``q` INCREMENT 5",
        "CREATE SEQUENCE back START -1 INCREMENT -1 MINVALUE -500 MAXVALUE -1",
        "CREATE TABLE one (id int PRIMARY KEY DEFAULT nextval(`s``q`))",
        "CREATE TABLE two (id bigint PRIMARY KEY DEFAULT nextval(`s``q`))",
        "CREATE TABLE three (id int PRIMARY KEY DEFAULT nextval(back))",
        "CREATE TABLE odd (id int PRIMARY KEY DEFAULT (nextval(back) * 2))",
        "INSERT INTO one VALUES (3)",
        "INSERT INTO two VALUES (72)",
        "INSERT INTO three VALUES (-9)",
    )
    found = due(new_maria, ["one"])
    assert [(each.sequence.name.partition(".")[2], each.following) for each in found.values()] == [
        ("`s``q`", 81)
    ]
    MysqlNumbers(settings_of(new_maria)).move(list(found.values()))
    assert new_maria.query("SELECT nextval(`s``q`)") == [(81,)]
    assert "computes with its value" in due(new_maria, ["three"])["odd"].problem
    new_maria.execute("DROP TABLE odd")
    down = due(new_maria, ["three"])["three"]
    assert down.following <= -10
    MysqlNumbers(settings_of(new_maria)).move([down])
    assert new_maria.query("SELECT nextval(back)")[0][0] <= -10


def test_it_may_be_run_while_rows_come(target: Database) -> None:
    """Setting a counter changes the table's definition; transactions under way must not suffer by it."""
    with bench(target, "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int)") as made:
        stop, failures, moved = threading.Event(), [], [0]
        numbers = MysqlNumbers(made.settings)

        def again() -> None:
            try:
                while not stop.is_set():
                    moved[0] += 1
                    numbers.move(
                        [e for one in numbers.find(["t"]) if (e := advance(one, (), moved[0] * 10)).moves()]
                    )
            except Exception as error:  # noqa: BLE001 - shown by the test
                failures.append(error)

        thread = threading.Thread(target=again)
        thread.start()
        number = 0
        while number < 30 or (moved[0] < 10 and not failures and number < 2000):
            number += 1
            made.apply(made.part("t", after=pa.table(ints("id", number) | ints("v", number))))
        stop.set()
        thread.join()
    assert failures == []
    assert moved[0] >= 10
    assert target.query("SELECT count(*), max(id) FROM t") == [(number, number)]
