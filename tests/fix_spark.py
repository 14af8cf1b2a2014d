"""One Spark session for a whole test run: starting a JVM takes seconds. And its adaptive execution, see Makefile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Local Spark on two cores with our settings; its log is in the run's temporary folder."""
    # Imported only here, for PySpark takes a second that tests without Spark need not pay.
    from pyspark import SparkContext

    from migrator.embedded.java import java_home
    from transforms.on_spark.session import spark_session, stop_session

    log_path = tmp_path_factory.mktemp("spark") / "spark.log"
    yield spark_session(master="local[2]", conf={}, java_home=java_home(), log_path=log_path)
    assert SparkContext._gateway is not None
    process = SparkContext._gateway.proc
    stop_session()
    assert process.poll() is not None, "the JVM outlived stop_session()"


@pytest.fixture
def adaptive(spark: SparkSession) -> Iterator[None]:
    """Small queries are planned again stage by stage, as in users' runs: for tests of plans that are kept."""
    name = "spark.sql.adaptive.enabled"
    before = spark.conf.get(name, "true")
    spark.conf.set(name, "true")
    yield
    spark.conf.set(name, before or "true")


@pytest.fixture
def interpreted(spark: SparkSession) -> Iterator[None]:
    """Operators and expressions are interpreted, as they are for the few rows of a small joined batch."""
    from transforms.on_spark.few_rows.flat import INTERPRETED

    settings = {**INTERPRETED, "spark.sql.codegen.wholeStage": "false"}
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name, kept in before.items():
        if kept is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, kept)
