"""The archive of Spark's classes: used where it is this user's own, made where there is room, left to who decides."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from transforms.on_spark import class_archive as module
from transforms.on_spark.class_archive import ClassArchive, class_archive
from transforms.on_spark.session_settings import session_settings


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java's folder; the cache is below the test's own."""
    for name in module._ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "java").mkdir()
    (tmp_path / "java" / "release").write_text('JAVA_VERSION="17.0.15"')
    return tmp_path / "java"


def found(java: Path) -> ClassArchive:
    archive = class_archive(java, {})
    assert archive is not None
    return archive


def test_a_jvm_leaves_the_archive_once_and_others_map_it(java: Path) -> None:
    archive = found(java)
    assert archive.options() == ""
    assert archive.training().endswith(f"-XX:ArchiveClassesAtExit={archive.new}")
    archive.new.write_bytes(b"classes")
    assert archive.adopt(whole=True)
    assert archive.options().endswith(f"-XX:SharedArchiveFile={archive.path}")
    assert archive.training() == ""
    assert [path.name for path in archive.path.parent.iterdir()] == [archive.path.name]


def test_what_a_killed_jvm_left_is_removed(java: Path) -> None:
    archive = found(java)
    archive.training()
    archive.new.write_bytes(b"cla")
    assert not archive.adopt(whole=False)
    assert list(archive.path.parent.iterdir()) == []
    assert not archive.adopt(whole=True)


@pytest.mark.parametrize("mode", [0o420, 0o402], ids=["group", "others"])
def test_an_archive_that_others_can_write_is_not_run(java: Path, mode: int) -> None:
    archive = found(java)
    archive.training()
    archive.path.write_bytes(b"classes")
    archive.path.chmod(0o400)
    assert archive.options()
    archive.path.chmod(mode)
    assert archive.options() == ""


def test_an_archive_of_another_user_is_not_run(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = found(java)
    archive.training()
    archive.path.write_bytes(b"classes")
    archive.path.chmod(0o400)
    other = os.geteuid() + 1
    monkeypatch.setattr("os.geteuid", lambda: other)
    assert archive.options() == ""


def test_none_is_made_on_a_full_disk_or_where_nothing_can_be_written(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = found(java)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=module._ROOM_BYTES - 1))
    assert archive.training() == ""
    monkeypatch.undo()
    (java / "file").write_text("")
    assert ClassArchive(java / "file" / "below" / "a.jsa").training() == ""


def test_each_java_and_each_content_of_it_has_its_own(java: Path) -> None:
    first = found(java)
    (java / "release").write_text('JAVA_VERSION="17.0.16"')
    assert found(java) != first


def test_options_of_the_users_decide(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert class_archive(java, {"spark.driver.extraJavaOptions": "-Xss4m"}) is not None
    assert class_archive(java, {"spark.driver.extraJavaOptions": "-Xshare:off"}) is None
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-XX:SharedArchiveFile=/theirs.jsa")
    assert class_archive(java, {}) is None


def test_there_is_none_where_its_place_or_java_is_unknown(
    java: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/with a blank")
    assert class_archive(java, {}) is None
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert class_archive(java, {}) is not None
    assert class_archive(java / "none", {}) is None


def test_our_options_of_java_stand_before_the_users(tmp_path: Path) -> None:
    def said(options: str, **conf: str) -> str | None:
        named = {"spark.driver.extraJavaOptions": conf["theirs"]} if conf else {}
        settings = session_settings("local[1]", named, tmp_path / "log", options)
        return settings.get("spark.driver.extraJavaOptions")

    assert said("-XX:A=1") == "-XX:A=1"
    assert said("-XX:A=1", theirs="-Xss4m") == "-XX:A=1 -Xss4m"
    assert said("", theirs="-Xss4m") == "-Xss4m"
    assert said("") is None
