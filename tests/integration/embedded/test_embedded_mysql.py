"""The throw-away MySQL: it keeps its data over a crash, ends with its owner, and says why it can't be had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.embedded import debian
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.mysql import EmbeddedMySQL, mysql_packages
from migrator.embedded.process import scratch_directory
from migrator.errors import MigratorError

pytestmark = pytest.mark.integration


@pytest.fixture
def scratch() -> Iterator[Path]:
    with scratch_directory("migrator-mysql-test-") as directory:
        yield directory


@pytest.fixture(params=[None, pytest.param("8.0", marks=pytest.mark.slow)])
def version(request: pytest.FixtureRequest) -> str | None:
    chosen: str | None = request.param
    try:
        mysql_packages(chosen).install()
    except PackagesUnavailable as error:
        pytest.skip(str(error))
    return chosen


@pytest.mark.slow
def test_data_outlives_a_crash_and_the_server_does_not_outlive_its_owner(
    scratch: Path, version: str | None
) -> None:
    with EmbeddedMySQL(scratch / "mysql", settings={"max-connections": "33"}, version=version) as server:
        port = server.port
        server.create_database("odd `name`")
        with server.connect("odd `name`") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE t (id int PRIMARY KEY)")
            cursor.execute("INSERT INTO t VALUES (7)")
            cursor.execute("SELECT @@max_connections, @@gtid_mode, @@binlog_row_metadata, version()")
            found = cursor.fetchone()
            assert found is not None
            *settings, running = found
            assert settings == [33, "ON", "FULL"]
            assert running.startswith(f"{version or '9'}.")
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
        mysql_packages().install()
    assert "no keyring" in missing.value.cause or "apt-get" in missing.value.cause
    assert missing.value.remedy
    assert os.listdir(tmp_path / "cache") == ["lock"]  # nothing half-done is left


@pytest.mark.slow
def test_a_suite_without_the_package_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    packages = mysql_packages(version)
    monkeypatch.setenv(
        "MIGRATOR_" + packages.name.replace("-", "_").replace(".", "_").upper(), str(tmp_path / "cache")
    )
    gone = replace(packages, package="mysql-server-that-left-sid", former=None)
    with pytest.raises(PackagesUnavailable, match="can't be had"):
        gone.install()


def test_a_file_with_another_hash_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    packages = mysql_packages(version)
    if packages.former is None:
        pytest.skip("what a suite lists is signed")
    monkeypatch.setenv("MIGRATOR_MYSQL_8_0", str(tmp_path / "cache"))
    forged = replace(packages, former=replace(packages.former, sha256="0" * 64, sha1="0" * 40))
    with pytest.raises(PackagesUnavailable) as refused:
        forged.install()
    assert "Hash Sum mismatch" in refused.value.cause
    assert os.listdir(tmp_path / "cache") == ["lock"]


def test_a_version_that_nobody_has_is_an_error_that_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(MigratorError, match=r"no embedded MySQL 5\.7") as caught:
        EmbeddedMySQL(tmp_path / "mysql", version="5.7")
    assert caught.value.remedy == "choose one of 8.0"
