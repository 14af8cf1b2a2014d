"""The throw-away MySQL: it keeps its data over a crash, ends with its owner, and says why it can't be had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.embedded import debian
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.mysql import DEBIAN_MYSQL, EmbeddedMySQL
from migrator.embedded.process import scratch_directory

pytestmark = pytest.mark.integration


@pytest.fixture
def scratch() -> Iterator[Path]:
    with scratch_directory("migrator-mysql-test-") as directory:
        yield directory


@pytest.fixture
def unpacked() -> None:
    try:
        DEBIAN_MYSQL.install()
    except PackagesUnavailable as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("unpacked")
def test_data_outlives_a_crash_and_the_server_does_not_outlive_its_owner(scratch: Path) -> None:
    with EmbeddedMySQL(scratch / "mysql", settings={"max-connections": "33"}) as server:
        port = server.port
        server.create_database("odd `name`")
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id int PRIMARY KEY)")
            cursor.execute("INSERT INTO t VALUES (7)")
            cursor.execute("SELECT @@max_connections, @@gtid_mode, @@binlog_row_metadata")
            assert cursor.fetchone() == (33, "ON", "FULL")
        server.kill()
        assert not server.running
        server.start()
        pid = server.pid
        assert server.port == port
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM t")
            assert cursor.fetchall() == ((7,),)
        server.drop_database("odd `name`")
    assert not Path(f"/proc/{pid}").exists()


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATOR_MYSQL", str(tmp_path / "cache"))
    monkeypatch.setattr(debian, "_KEYRING", tmp_path / "no keyring")
    with pytest.raises(PackagesUnavailable) as missing:
        DEBIAN_MYSQL.install()
    assert "no keyring" in missing.value.cause or "apt-get" in missing.value.cause
    assert missing.value.remedy
    assert os.listdir(tmp_path / "cache") == ["lock"]  # nothing half-done is left


@pytest.mark.usefixtures("unpacked")
def test_a_suite_without_the_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIGRATOR_MYSQL", str(tmp_path / "cache"))
    gone = replace(DEBIAN_MYSQL, package="mysql-server-that-left-sid")
    with pytest.raises(PackagesUnavailable, match="can't be had"):
        gone.install()
