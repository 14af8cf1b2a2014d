"""Locale, zone, encoding and threads of our environment, and Java's own options, change no value that Spark makes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from migrator.embedded.java import java_home
from migrator.errors import ClusterError
from transforms.on_spark import executors, surroundings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[3]
VALUES = """
import datetime, json, sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pyspark.sql import functions as F
from migrator.errors import MigratorError
from transforms.on_spark import surroundings, session, session_settings
if sys.argv[3] == "unpinned":
    session.pin_process = lambda: None
    session.pin_jvm = lambda jvm: None
    fixed = session_settings._FIXED
    session_settings._FIXED = {k: v for k, v in fixed.items() if "executorEnv" not in k}
try:
    spark = session.spark_session(
        master="local[1]", conf={}, java_home=Path(sys.argv[2]), log_path=Path(sys.argv[1]) / "spark.log")
except MigratorError as error:
    print(json.dumps([str(error), error.remedy]))
    sys.exit()
noon = datetime.datetime(2021, 3, 1, 12)
folder = Path(sys.argv[1]) / "pr\\u00fcf"
said = F.udf(lambda at: at.isoformat(), "string")
made = F.udf(lambda _: noon, "timestamp")
rows = spark.sql("SELECT 'TITLE I É' AS t, TIMESTAMP'2021-03-01 12:00:00' AS at").select(
    F.lower("t"), F.upper(F.lit("title i é")), said("at"), made("t").cast("string"), F.lit(noon).cast("string"),
    F.col("at"))
found = [str(value) for value in rows.collect()[0]]
try:
    spark.range(3).write.parquet(str(folder))
    found += [spark.read.parquet(str(folder)).count()]
except Exception as error:
    found += [type(error).__name__]
found += [sorted(p.name for p in Path(sys.argv[1]).iterdir() if p.is_dir() and p.name.startswith("pr")),
          surroundings.wrong_in_executors(spark, 2)[0]]
def held():
    spark.sparkContext.setLocalProperty("of.this.thread", "1")
    return spark.range(1).count() and spark.sparkContext.getLocalProperty("of.this.thread")
with ThreadPoolExecutor(4) as pool:
    alone = pool.submit(held).result()
found += [alone, spark.sparkContext.getLocalProperty("of.this.thread")]
print(json.dumps(found))
session.stop_session()
"""
RIGHT = [
    "title i é",
    "TITLE I É",
    "2021-03-01T12:00:00",
    "2021-03-01 12:00:00",
    "2021-03-01 12:00:00",
    "2021-03-01 12:00:00",
    3,
    ["prüf"],
    [],
    "1",
    None,
]
TURKEY = {
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYSPARK_PIN_THREAD": "false",
    "JAVA_TOOL_OPTIONS": "-Duser.language=tr -Duser.country=TR -Duser.timezone=Asia/Kathmandu",
}


def _made(folder: Path, more: dict[str, str], how: str = "pinned") -> list[object]:
    done = subprocess.run(
        [sys.executable, "-c", VALUES, str(folder), str(java_home()), how],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **more},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: list[object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.slow
def test_a_foreign_locale_zone_and_encoding_change_no_value(tmp_path: Path) -> None:
    assert _made(tmp_path, TURKEY) == RIGHT


@pytest.mark.slow
def test_without_the_pins_each_of_them_does(tmp_path: Path) -> None:
    """The negative control."""
    found = _made(tmp_path, TURKEY, "unpinned")
    assert [one == right for one, right in zip(found, RIGHT, strict=True)] == [False] * 9 + [True, False]
    assert {str(one).partition("=")[0] for one in found[8]} == {  # type: ignore[attr-defined]
        "user.language",
        "user.timezone",
        "file.encoding",
    }


def test_an_encoding_that_an_option_sets_is_refused_by_name(tmp_path: Path) -> None:
    what, remedy = _made(tmp_path, {"JAVA_TOOL_OPTIONS": "-Dfile.encoding=ISO-8859-1"})
    assert "file.encoding=ISO-8859-1" in str(what)
    assert "JAVA_TOOL_OPTIONS" in str(remedy)


@pytest.mark.spark
def test_executors_with_zone_data_of_another_year_are_refused(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control is that those with ours are taken."""
    ours = surroundings.zone_data(spark._jvm)
    assert re.fullmatch("20[0-9]{2}[a-z]", ours)
    executors._refuse_surroundings(spark, 2)
    for module in (executors, surroundings):
        monkeypatch.setattr(module, "zone_data", lambda _: "1999a")
    with pytest.raises(ClusterError, match="zone data of another year") as caught:
        executors._refuse_surroundings(spark, 2)
    assert caught.value.where == f"{ours}; the driver has 1999a"
