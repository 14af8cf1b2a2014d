"""Preflight against a real server: every obstacle is found at once and named, and the least grants are enough."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.adapters.mariadb.catalog import MariaCatalog
from tests.integration.mariadb_reading import dump, read_to, source_of, started
from tests.servers import Database, DockerServers, EmbeddedServers, MariaDBServer, fresh_database

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def own_server(servers: EmbeddedServers | DockerServers) -> MariaDBServer:
    """These tests change global settings."""
    return servers.mariadb("mariadb_preflight")


@pytest.fixture
def database(own_server: MariaDBServer) -> Iterator[Database]:
    with fresh_database(own_server, "old") as fresh:
        yield fresh


def _found(database: Database, *tables: str, **settings: object) -> dict[str, str]:
    findings = MariaCatalog(source_of(database, **settings)).preflight(tables)
    assert all(finding.problem and finding.remedy for finding in findings)
    return {f"{finding.check}: {finding.subject}": finding.problem for finding in findings if finding.fatal}


def test_a_ready_source_has_no_findings(database: Database) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, s int AS (id) STORED)")
    assert MariaCatalog(source_of(database)).preflight(["t"]) == []


def test_all_obstacles_of_tables_are_found_at_once(database: Database) -> None:
    database.execute(
        "CREATE TABLE parent (id int PRIMARY KEY)",
        "CREATE TABLE child (id int PRIMARY KEY, p int, q int,"
        " CONSTRAINT gone FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE,"
        " CONSTRAINT lost FOREIGN KEY (q) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE)",
        "CREATE TABLE fine (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent (id))",
        "CREATE TABLE keyless (a int, b int, UNIQUE (a))",
        "CREATE TABLE old_engine (id int PRIMARY KEY) ENGINE = MyISAM",
        "CREATE VIEW seen AS SELECT * FROM fine",
        "CREATE TABLE history (id int PRIMARY KEY) WITH SYSTEM VERSIONING",
        "CREATE TABLE types (id int PRIMARY KEY, u uuid, i inet6, c varchar(900) COMPRESSED, b blob COMPRESSED,"
        " y year(2), g varchar(10) CHARACTER SET gbk, ok varchar(10) CHARACTER SET latin7)",
        "SET GLOBAL mysql56_temporal_format = OFF",
    )
    database.execute(
        "CREATE TABLE clock (id int PRIMARY KEY, d datetime(3))", "SET GLOBAL mysql56_temporal_format = ON"
    )
    name = database.database
    tables = ["child", "fine", "keyless", "old_engine", "seen", "history", "types", "clock", "absent"]
    found = _found(database, *tables)
    assert set(found) == {
        f"foreign key cascade: {name}.child constraint gone",
        f"foreign key cascade: {name}.child constraint lost",
        f"key: {name}.keyless",
        f"engine: {name}.old_engine",
        f"table: {name}.seen",
        f"table: {name}.history",
        *(f"column type: {name}.types.{column}" for column in "uicby"),
        f"character set: {name}.types.g",
        f"column type: {name}.clock.d",
        f"table: {name}.absent",
    }
    assert (
        "ON DELETE SET NULL ON UPDATE CASCADE from parent"
        in found[f"foreign key cascade: {name}.child constraint lost"]
    )


@pytest.mark.parametrize(
    ("setting", "wrong", "right"),
    [
        ("binlog_format", "'MIXED'", "'ROW'"),
        ("binlog_row_image", "'MINIMAL'", "'FULL'"),
        ("binlog_row_metadata", "'MINIMAL'", "'FULL'"),
        ("log_bin_compress", "1", "0"),
        ("binlog_expire_logs_seconds", "3600", "0"),
    ],
)
def test_settings_are_checked(database: Database, setting: str, wrong: str, right: str) -> None:
    database.execute(f"SET GLOBAL {setting} = {wrong}")
    try:
        findings = MariaCatalog(source_of(database)).preflight([])
    finally:
        database.execute(f"SET GLOBAL {setting} = {right}")
    (finding,) = findings
    assert finding.check in (setting, "expire_logs")
    assert finding.fatal is (finding.check != "expire_logs")
    assert f"SET GLOBAL {setting}" in finding.remedy


def test_the_servers_own_id_is_refused(database: Database) -> None:
    assert list(_found(database, server_id=10)) == [f"server_id: {database.host}:{database.port}"]


def test_a_missing_watermark_table_is_found(database: Database) -> None:
    assert list(_found(database, placement="watermark")) == ["watermark: migrator.watermark"]


def test_select_and_replication_slave_are_enough(database: Database) -> None:
    user = f"u{database.database[-8:]}"
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        f"CREATE USER '{user}'@'%' IDENTIFIED BY 'pw é'",
        f"GRANT SELECT ON `{database.database}`.* TO '{user}'@'%'",
    )
    login = {"user": user, "password": "pw é"}
    assert list(_found(database, "t", **login)) == [f"grants: {user}@%"]
    database.execute(f"GRANT REPLICATION SLAVE ON *.* TO '{user}'@'%'")
    assert _found(database, "t", **login) == {}
    source = source_of(database, **login)
    reader, (schema,) = started(source, "t")
    database.execute("INSERT INTO t VALUES (1)")
    assert len(read_to(reader, MariaCatalog(source).position()).changes()) == 1
    reader.close()
    (chunk,) = dump(source, schema, 10)
    assert chunk.row_count == 1
    assert chunk.witness is not None
    database.execute(f"DROP USER '{user}'@'%'")
