"""A JVM leaves the archive of its classes when Spark is stopped; the next one maps them, unless they are damaged."""

from __future__ import annotations

import hashlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_USE = """
import sys
from pathlib import Path
from migrator.embedded.java import java_home
from transforms.on_spark.class_archive import class_archive
from transforms.on_spark.session import spark_session, stop_session, training
home, folder = java_home(), Path(sys.argv[1])
archive = class_archive(home, {})
trains = archive.training()
loads = f"-Xlog:class+load:file={folder}/loaded.txt"
session = spark_session(
    master="local[1]", conf={}, java_home=home, log_path=folder / "spark.log",
    java_options=f"{trains or archive.options()} {loads}", trained=archive if trains else None,
)
assert session.range(3).count() == 3
assert training() == bool(trains)
stop_session(300)
print(archive.path())
"""


def started(folder: Path, most_bytes: int = resource.RLIM_INFINITY) -> tuple[Path, int]:
    """Starts Spark, and stops it; the archive then, and the number of Spark's classes that came from one.

    ``most_bytes``: that a file may have, as if the disk were full then.
    """
    done = subprocess.run(
        [sys.executable, "-P", "-c", _USE, str(folder)],
        env={**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "SPARK_SUBMIT_OPTS": ""},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=folder,  # where a JVM that dies leaves its report
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
    )
    assert done.returncode == 0, done.stderr
    loaded = (folder / "loaded.txt").read_text().splitlines()
    mapped = sum("org.apache.spark" in one and "shared objects file (top)" in one for one in loaded)
    return Path(done.stdout.split()[-1]), mapped


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a first start leaves."""
    path, mapped = started(tmp_path_factory.mktemp("first"))
    assert mapped == 0
    assert path.is_file()
    return path


def placed(archive: Path, folder: Path, content: bytes, digest: str) -> Path:
    """A file in the place of the archive, with this digest in its name."""
    path = folder / "cache" / "migrator" / f"{archive.stem.rpartition('-')[0]}-{digest}.jsa"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    path.chmod(0o400)
    return path


def damaged(whole: bytes, damage: str) -> bytes:
    half = len(whole) // 2
    return whole[:half] if damage == "cut off" else whole[:half] + bytes(one ^ 90 for one in whole[half:])


def test_the_second_start_maps_what_the_first_one_left(archive: Path) -> None:
    path, mapped = started(archive.parents[2])
    assert path == archive
    assert mapped > 1000


def test_a_damaged_archive_is_left_alone_and_made_anew(archive: Path, tmp_path: Path) -> None:
    digest = archive.stem.rpartition("-")[2]
    path = placed(archive, tmp_path, damaged(archive.read_bytes(), "cut off"), digest)
    again, mapped = started(tmp_path)
    assert mapped == 0
    assert again.is_file()
    assert again != path
    assert not path.exists()


@pytest.mark.parametrize("damage", ["cut off", "changed"])
def test_a_jvm_dies_of_a_damaged_archive(archive: Path, tmp_path: Path, damage: str) -> None:
    """The control: with a name that agrees with the damage Java is given the file."""
    content = damaged(archive.read_bytes(), damage)
    placed(archive, tmp_path, content, hashlib.sha256(content).hexdigest()[:32])
    with pytest.raises(AssertionError, match="Spark can't be started"):
        started(tmp_path)


def test_a_disk_that_is_full_before_the_last_class_leaves_no_archive(tmp_path: Path) -> None:
    assert started(tmp_path, 16 << 20)[0] == Path("None")
    assert list((tmp_path / "cache" / "migrator").iterdir()) == []
