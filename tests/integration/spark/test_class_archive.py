"""A JVM leaves the archive of its classes when Spark is stopped; the next one maps them."""

from __future__ import annotations

import os
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
print(archive.path.exists())
"""


def test_the_second_start_maps_what_the_first_one_left(tmp_path: Path) -> None:
    mapped = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-P", "-c", _USE, str(tmp_path)],
            env={**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "SPARK_SUBMIT_OPTS": ""},
            capture_output=True,
            text=True,
            timeout=600,
            check=True,
        )
        assert done.stdout.split()[-1] == "True"
        loaded = (tmp_path / "loaded.txt").read_text().splitlines()
        mapped.append(sum("org.apache.spark" in one and "shared objects file (top)" in one for one in loaded))
    assert mapped[0] == 0
    assert mapped[1] > 1000
