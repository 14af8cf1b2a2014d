"""``python -m tests.spark_classes``: prints JVM options with which the many Spark drivers of tests start sooner.

A driver that runs for some seconds spends most of them loading classes and compiling code that is soon thrown away.
So a first driver leaves an archive of its classes beside the installed packages (about half a minute, once), the
others map it, and none uses the slow, thorough compiler. Makefile hands the options over as ``SPARK_SUBMIT_OPTS``,
which Spark gives to drivers alone. A JVM that can't use the archive goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyspark

from migrator.embedded.java import java_home, java_version
from transforms.on_spark.session import spark_session, stop_session

_QUIET = "-Xlog:cds=off -Xlog:class+path=off"
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""With one compiler Java keeps 48 MiB of code, else 240. A worker's driver lives as long as its tests: when these
were full, Java could link no more method handles, the thread that serves a result died of it, and its reader
waited for ever."""
_TRAINING_S = 300


def main() -> None:
    """Prints the options; makes the archive if there is none yet for this Java and this Spark."""
    archive = _archive()
    if not archive.exists():
        _make(archive)
    print(" ".join([_QUICK, _QUIET, *([f"-XX:SharedArchiveFile={archive}"] if archive.exists() else [])]))


def _archive() -> Path:
    home = java_home()
    known = f"{home} {java_version(home)} {pyspark.__file__} {pyspark.__version__}"
    return Path(sys.prefix) / f"spark-classes-{hashlib.sha256(known.encode()).hexdigest()[:12]}.jsa"


def _make(archive: Path) -> None:
    with tempfile.TemporaryDirectory(dir=archive.parent) as folder:
        made = Path(folder) / "made.jsa"
        options = f"{_QUICK} {_QUIET} -XX:ArchiveClassesAtExit={made}"
        done = subprocess.run(
            [sys.executable, "-c", f"from tests.spark_classes import train; train({folder!r})"],
            env={**os.environ, "SPARK_SUBMIT_OPTS": options},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=_TRAINING_S,
            check=False,
        )
        if made.exists():
            os.replace(made, archive)  # atomic: another run may be making the same
        else:
            print(f"no archive of Spark's classes was made: {done.stderr.strip()}", file=sys.stderr)


def train(folder: str) -> None:
    """Uses what the pipeline uses of Spark, so that the archive has its classes."""
    home = Path(folder)
    spark = spark_session(master="local[2]", conf={}, java_home=java_home(), log_path=home / "spark.log")
    spark.createDataFrame([(1, "a"), (2, None)], "id int, word string").write.parquet(str(home / "rows"))
    rows = spark.read.parquet(str(home / "rows"))
    sums = rows.groupBy("id").count()
    rows.join(sums, "id").unionByName(rows.join(sums, "id")).dropDuplicates().toArrow()
    rows.mapInArrow(_same, rows.schema).toArrow()
    spark.sql(
        "SELECT cast('2020-01-01' AS date), try_cast('x' AS int), cast('1.50' AS decimal(5, 2))"
    ).toArrow()
    stop_session(exit_s=_TRAINING_S)  # the archive is written on exit: on a busy machine that takes a minute


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


if __name__ == "__main__":
    main()
