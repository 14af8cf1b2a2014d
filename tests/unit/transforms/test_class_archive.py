"""The archive of Spark's classes: used where it is this user's own, made where there is room, left to who decides."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from transforms.on_spark import class_archive as module
from transforms.on_spark.class_archive import ClassArchive, class_archive


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


def left(archive: ClassArchive, content: bytes = b"classes") -> Path:
    """The archive after a JVM has left this."""
    assert archive.training().endswith(f"-XX:ArchiveClassesAtExit={archive.new}")
    archive.new.write_bytes(content)
    assert archive.adopt(whole=True)
    path = archive.path()
    assert path is not None
    return path


def test_a_jvm_leaves_the_archive_once_and_others_map_it(java: Path) -> None:
    archive = found(java)
    assert archive.options() == ""
    path = left(archive)
    assert archive.options().endswith(f"-XX:SharedArchiveFile={path}")
    assert archive.training() == ""
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o400


def test_what_a_killed_jvm_left_is_removed(java: Path) -> None:
    archive = found(java)
    archive.training()
    archive.new.write_bytes(b"cla")
    assert not archive.adopt(whole=False)
    assert list(archive.stem.parent.iterdir()) == []
    assert not archive.adopt(whole=True)


@pytest.mark.parametrize("content", [b"", b"class", b"klasses", b"classes\0"])
def test_a_damaged_archive_is_not_run_and_the_next_one_takes_its_place(java: Path, content: bytes) -> None:
    archive = found(java)
    path = left(archive)
    path.chmod(0o600)
    path.write_bytes(content)
    path.chmod(0o400)
    assert archive.options() == ""
    again = left(archive, b"other classes")
    assert list(path.parent.iterdir()) == [again]


def test_of_two_that_leave_one_at_once_each_is_whole(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = found(java)
    archive.training()
    for number in (1, 2):
        monkeypatch.setattr("os.getpid", lambda number=number: number)
        archive.new.write_bytes(b"classes %d" % number)
    assert archive.adopt(whole=True)
    first = archive.path()
    monkeypatch.setattr("os.getpid", lambda: 1)
    assert archive.adopt(whole=True)
    assert first is not None
    assert first.read_bytes() == b"classes 2"
    assert archive.options()


@pytest.mark.parametrize("mode", [0o420, 0o402], ids=["group", "others"])
def test_an_archive_that_others_can_write_is_not_run(java: Path, mode: int) -> None:
    archive = found(java)
    path = left(archive)
    assert archive.options()
    path.chmod(mode)
    assert archive.options() == ""


def test_an_archive_of_another_user_is_not_run(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = found(java)
    left(archive)
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
    assert ClassArchive(java / "file" / "below" / "a").training() == ""


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
    for place in ("/with a blank", "/o'neil/cache", '/"x', "/back\\slash", "/a:b", "/{{HOME}}", "/a\n"):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert class_archive(java, {}) is None, place
    for place in ("/cache", "/home/zoë.m-1_2/~x,y@z+q=1", "/家/.cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", place)
        assert class_archive(java, {}) is not None, place
    assert class_archive(java / "none", {}) is None


def test_a_relative_place_is_no_place(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM would look for it below a folder of its own."""
    monkeypatch.setenv("HOME", "/home/x")
    for said in ("cache", ""):
        monkeypatch.setenv("XDG_CACHE_HOME", said)
        assert found(java).stem.is_relative_to("/home/x/.cache")
