"""Preflight against a real server: every obstacle is found at once and named, and the least grants are enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.adapters.mysql.catalog import MysqlCatalog
from migrator.embedded.mysql import EmbeddedMySQL
from migrator.embedded.process import scratch_directory
from migrator.errors import SchemaError
from tests.integration.mariadb_reading import read_to, read_until, source_of
from tests.integration.mysql_reading import dump, started
from tests.servers import (
    Database,
    DockerServers,
    EmbeddedServers,
    MariaDBServer,
    fresh_database,
    mysql_server,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own_server(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """These tests change global settings."""
    return mysql_server(servers, "mysql_preflight")


@pytest.fixture
def database(own_server: MariaDBServer) -> Iterator[Database]:
    with fresh_database(own_server, "old") as fresh:
        yield fresh


def _found(database: Database, *tables: str, **settings: object) -> dict[str, str]:
    findings = MysqlCatalog(source_of(database, **settings)).preflight(tables)
    assert all(finding.problem and finding.remedy for finding in findings)
    return {f"{finding.check}: {finding.subject}": finding.problem for finding in findings if finding.fatal}


def test_a_ready_source_has_no_findings(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, s int AS (id) STORED)")
    assert MysqlCatalog(source_of(database)).preflight(["t"]) == []


def test_all_obstacles_of_tables_are_found_at_once(database: Database) -> None:
    database.execute(
        "CREATE TABLE fine (id int PRIMARY KEY, i int INVISIBLE, j json, v vector(2))",
        "CREATE TABLE keyless (a int, b int, UNIQUE (a))",
        "CREATE TABLE old_engine (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT * FROM fine",
        "CREATE TABLE types (id int PRIMARY KEY, g varchar(10) CHARACTER SET gbk,"
        " ok varchar(10) CHARACTER SET latin7)",
    )
    name = database.database
    tables = ["fine", "keyless", "old_engine", "seen", "types", "absent"]
    assert set(_found(database, *tables)) == {
        f"key: {name}.keyless",
        f"engine: {name}.old_engine",
        f"table: {name}.seen",
        f"character set: {name}.types.g",
        f"table: {name}.absent",
    }


def test_cascades_inside_innodb_are_refused_because_the_log_lacks_their_rows(
    servers: EmbeddedServers | DockerServers, own_server: MariaDBServer
) -> None:
    if own_server.embedded is None:
        pytest.skip("the option is set when the server starts, and the container's is started already")
    with scratch_directory() as folder:
        server = EmbeddedMySQL(folder / "native", settings={"innodb-native-foreign-keys": "ON"})
        with server:
            server.create_database("old")
            database = Database(server.host, server.port, "old", "root", "", "mysql")
            database.execute(
                "CREATE TABLE parent (id int PRIMARY KEY)",
                "CREATE TABLE child (id int PRIMARY KEY, p int, CONSTRAINT gone FOREIGN KEY (p)"
                " REFERENCES parent (id) ON DELETE CASCADE)",
                "INSERT INTO parent VALUES (1)",
                "INSERT INTO child VALUES (10, 1)",
            )
            assert list(_found(database, "child")) == ["foreign key cascade: old.child constraint gone"]
            log, _ = started(source_of(database), "child")
            database.execute("DELETE FROM parent")
            assert read_to(log, MysqlCatalog(source_of(database)).position()).changes() == []
            assert database.query("SELECT * FROM child") == []  # it changed, and the log never said so
            database.execute(
                "ALTER TABLE child DROP FOREIGN KEY gone",
                "ALTER TABLE child ADD FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL",
            )
            with pytest.raises(SchemaError, match="doesn't log the rows"):
                read_until(log, lambda _: False)
            log.close()


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("binlog_format", "'MIXED'", "'ROW'"),
        ("binlog_row_image", "'MINIMAL'", "'FULL'"),
        ("binlog_row_metadata", "'MINIMAL'", "'FULL'"),
        ("binlog_row_value_options", "'PARTIAL_JSON'", "''"),
        ("binlog_expire_logs_seconds", "3600", "0"),
    ],
)
def test_settings_are_checked(database: Database, setting: str, wrong: str, right: str) -> None:
    database.execute(f"SET GLOBAL {setting} = {wrong}")
    try:
        findings = MysqlCatalog(source_of(database)).preflight([])
    finally:
        database.execute(f"SET GLOBAL {setting} = {right}")
    (finding,) = findings
    assert finding.check in (setting, "expire_logs")
    assert finding.fatal is (finding.check != "expire_logs")
    assert f"SET GLOBAL {setting}" in finding.remedy


def test_the_servers_own_id_is_refused(database: Database) -> None:
    assert list(_found(database, server_id=97)) == [f"server_id: {database.host}:{database.port}"]


def test_a_watermark_needs_commits_in_order_and_a_witness_does_not(database: Database) -> None:
    database.execute("SET GLOBAL binlog_order_commits = OFF")
    try:
        assert _found(database) == {}
        where = f"{database.host}:{database.port}"
        assert set(_found(database, placement="watermark")) == {
            f"binlog_order_commits: {where}",
            "watermark: migrator.watermark",
        }
    finally:
        database.execute("SET GLOBAL binlog_order_commits = ON")


def test_gtids_are_demanded(database: Database) -> None:
    database.execute("SET GLOBAL gtid_mode = ON_PERMISSIVE")
    try:
        assert list(_found(database)) == [f"gtid_mode: {database.host}:{database.port}"]
    finally:
        database.execute("SET GLOBAL gtid_mode = ON")


def test_a_missing_watermark_table_is_found(database: Database) -> None:
    assert list(_found(database, placement="watermark")) == ["watermark: migrator.watermark"]


def test_select_and_replication_slave_are_enough(database: Database) -> None:
    user = f"u{database.database[-8:]}"
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'pw é'",
        f"GRANT SELECT ON `{database.database}`.* TO '{user}'@'%'",
    )
    login = {"user": user, "password": "pw é", "tls": "prefer"}
    assert list(_found(database, "t", **login)) == [f"grants: {user}@%"]
    database.execute(f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'")
    assert _found(database, "t", **login) == {}
    source = source_of(database, **login)
    reader, (schema,) = started(source, "t")
    database.execute("INSERT INTO t VALUES (1)")
    assert len(read_to(reader, MysqlCatalog(source).position()).changes()) == 1
    reader.close()
    (chunk,) = dump(source, schema, 10)
    assert chunk.row_count == 1
    assert chunk.witness is not None
    database.execute(f"DROP USER '{user}'@'%'")
