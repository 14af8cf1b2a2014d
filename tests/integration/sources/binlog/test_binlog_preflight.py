"""What preflight asks of both engines: settings, the reader's id, the watermark's table, and the least grants."""

from __future__ import annotations

import pytest

from migrator import schema as control
from migrator.adapters.sources.binlog.grants import source_grants
from migrator.adapters.sources.binlog.transactions.watermark import WatermarkRowWriter
from migrator.embedded.process import scratch_directory
from migrator.errors import SourceError
from migrator.model.event import MarkKind
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import read_to, source_of
from tests.integration.sources.binlog_preflight import (
    expect_setting_checked,
    found_besides_accounts,
    obstacles,
    without_watermark,
)
from tests.servers import Database, MariaDBServer

pytestmark = pytest.mark.integration


def test_a_ready_source_has_no_findings(engine: BinlogEngine, spare_database: Database) -> None:
    spare_database.execute("CREATE TABLE t (id int PRIMARY KEY, s int AS (id) STORED)")
    found = found_besides_accounts(engine, spare_database, "t")
    assert [
        one for one in found if one.check != "generated column"
    ] == []  # MariaDB 11 logs updates without it


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("binlog_format", "'MIXED'", "'ROW'"),
        ("binlog_row_image", "'MINIMAL'", "'FULL'"),
        ("binlog_row_metadata", "'MINIMAL'", "'FULL'"),
        ("binlog_expire_logs_seconds", "3600", "0"),
    ],
)
def test_settings_are_checked(
    engine: BinlogEngine, spare_database: Database, setting: str, wrong: str, right: str
) -> None:
    expect_setting_checked(engine, spare_database, setting, wrong, right)


def test_a_small_packet_is_told_with_the_columns_whose_values_may_not_fit(
    engine: BinlogEngine, spare_database: Database
) -> None:
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, short varchar(100), note longtext, pic mediumblob)"
    )
    ((before,),) = spare_database.query("SELECT @@GLOBAL.max_allowed_packet")
    assert found_besides_accounts(engine, spare_database, "t") == []
    spare_database.execute("SET GLOBAL max_allowed_packet = 1048576")
    try:
        (finding,) = found_besides_accounts(engine, spare_database, "t")
        spare_database.execute(finding.remedy)
        assert found_besides_accounts(engine, spare_database, "t") == []
    finally:
        spare_database.execute(f"SET GLOBAL max_allowed_packet = {before}")
    assert (finding.check, finding.fatal) == ("max_allowed_packet", False)
    assert "t.note, t.pic" in finding.problem


@pytest.mark.each_value
@pytest.mark.parametrize("setting", ["binlog-ignore-db", "binlog-do-db"])
def test_a_log_that_leaves_databases_out_is_refused(
    engine: BinlogEngine, spare_server: MariaDBServer, setting: str
) -> None:
    if spare_server.embedded is None:
        pytest.skip("the option is set when the server starts, and the container's is started already")
    with (
        scratch_directory() as folder,
        type(spare_server.embedded)(folder, settings={setting: "old"}) as server,
    ):
        for name, problem in (("old", "leaves out old"), ("other", "leaves out other")):
            server.create_database(name)
            database = Database(server.host, server.port, name, "root", "", engine.kind)
            (found,) = found_besides_accounts(engine, database)
            out = (name == "old") == (setting == "binlog-ignore-db")
            assert found.fatal is out
            assert (problem if out else "filtered by database") in found.problem


def test_the_servers_own_id_is_refused(engine: BinlogEngine, spare_database: Database) -> None:
    ((own,),) = spare_database.query("SELECT @@server_id")
    assert list(obstacles(engine, spare_database, server_id=own)) == [
        f"server_id: {spare_database.host}:{spare_database.port}"
    ]


def test_a_missing_watermark_table_is_found(engine: BinlogEngine, spare_database: Database) -> None:
    found = obstacles(engine, without_watermark(spare_database), placement="watermark")
    assert list(found) == ["watermark: migrator.watermark"]


def test_select_and_replication_slave_are_enough(engine: BinlogEngine, spare_database: Database) -> None:
    user = f"u{spare_database.database[-8:]}"
    spare_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'pw é'",
        f"GRANT SELECT ON `{spare_database.database}`.* TO '{user}'@'%'",
    )
    login = {"user": user, "password": "pw é", "tls": engine.password_tls}
    assert list(obstacles(engine, spare_database, "t", **login)) == [f"grants: {user}@%"]
    spare_database.execute(f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'")
    assert obstacles(engine, spare_database, "t", **login) == {}
    hints = found_besides_accounts(engine, spare_database, "t", **login)
    assert [hint.check for hint in hints] == [*(["xa"] if engine.kind == "mysql" else []), "log filters"]
    source = source_of(spare_database, **login)
    reader, (schema,) = engine.started(source, "t")
    spare_database.execute("INSERT INTO t VALUES (1)")
    assert len(read_to(reader, engine.end(source)).changes()) == 1
    reader.close()
    (chunk,) = engine.dump(source, schema, 10)
    assert chunk.row_count == 1
    assert chunk.witness is not None
    spare_database.execute(f"DROP USER '{user}'@'%'")


def test_who_may_write_past_the_log_is_named(engine: BinlogEngine, spare_database: Database) -> None:
    """Those with the right, also by a role, and nobody else; a login that sees no accounts says so."""
    ending = spare_database.database[-8:]
    names = [f"{kind}_{ending}" for kind in ("may", "role", "looks", "poor")]
    may, role, looks, poor = names
    right = "BINLOG ADMIN" if engine.kind == "mariadb" else "SYSTEM_VARIABLES_ADMIN"
    spare_database.execute(
        *(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'p'" for name in (may, looks, poor)),
        f"CREATE ROLE {role}",
        f"GRANT {right} ON *.* TO '{may}'@'%'",
        f"GRANT {right} ON *.* TO {role}",
        *(f"GRANT SELECT ON `{spare_database.database}`.* TO '{name}'@'%'" for name in (looks, poor)),
        f"GRANT SELECT ON mysql.* TO '{looks}'@'%'",
    )
    try:
        said = {user: told_of_accounts(engine, spare_database, user) for user in (looks, poor)}
    finally:
        spare_database.execute(f"DROP ROLE {role}", *(f"DROP USER '{n}'@'%'" for n in (may, looks, poor)))
    assert [name in said[looks] for name in names] == [True, True, False, False]
    assert "'root'@'localhost'" in said[looks]
    assert "mysql.session" not in said[looks]
    assert "may not see which accounts" in said[poor]
    assert may not in said[poor]


def told_of_accounts(engine: BinlogEngine, database: Database, user: str) -> str:
    login = {"user": user, "password": "p", "tls": engine.password_tls}
    findings = engine.catalog(source_of(database, **login)).preflight([])
    (finding,) = [each for each in findings if each.check == "sql_log_bin"]
    assert not finding.fatal
    assert "migrator verify" in finding.remedy
    return finding.problem


def test_each_right_on_the_watermark_is_asked_for(engine: BinlogEngine, spare_database: Database) -> None:
    """With exactly the printed ones it is written; on MariaDB that takes one more than on MySQL."""
    admin = without_watermark(spare_database)
    control.upgrade_source(f"mysql+pymysql://{admin.user}@{admin.host}:{admin.port}/{admin.database}")
    poor = source_of(admin, placement="watermark", user="marker", password="marker", tls="prefer")
    admin.execute(
        "CREATE TABLE t (id int PRIMARY KEY)"
    )  # to a database without a right nobody may even connect
    script = source_grants(poor, engine.kind, ["t"])
    admin.execute(script.make.rstrip(";").replace("'...'", "'marker'"), *script.needed)
    try:
        writer = WatermarkRowWriter(poor)
        for token in ("one", "two"):
            writer.write(token, MarkKind.LOW)
        writer.close()

        def asked() -> list[str]:
            return [each.remedy for each in engine.catalog(poor).preflight([]) if each.check == "watermark"]

        assert asked() == []
        rights = ["INSERT", "UPDATE", *(["SELECT"] if engine.kind == "mariadb" else [])]
        for right in rights:
            admin.execute(f"REVOKE {right} ON `migrator`.`watermark` FROM {script.account}")
            (remedy,) = asked()
            with pytest.raises(SourceError):
                WatermarkRowWriter(poor).write(right, MarkKind.LOW)
            admin.execute(remedy)
            assert asked() == []
    finally:
        admin.execute(f"DROP USER {script.account}")
        without_watermark(admin)
