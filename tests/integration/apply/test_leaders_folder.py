"""A leader that was replaced and wakes up puts no rows where its successor reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MigratorError
from migrator.run.apply.leaders_folder import leaders_folder
from tests.integration.spark.test_standing import COLUMNS, SCHEMA, mapping, rows
from transforms.analysis.plan import analyse
from transforms.on_spark.standing import Slots, StandingMapping

pytestmark = pytest.mark.spark
NAME = SCHEMA.id.name


def keys(spark: SparkSession, sleeper: Path, leader: Path) -> tuple[list[int], bool]:
    """Keys that the leader's plan gives where the sleeper wakes up in between, and whether that met an error.

    The leader puts its batch in place (rows 5), the sleeper its own of long ago (row 1), the leader's job begins.
    """
    plan = analyse(spark, mapping["copy"], {NAME: SCHEMA}, COLUMNS)
    asleep, awake = Slots(sleeper, {NAME: SCHEMA}), Slots(leader, {NAME: SCHEMA})
    standing = StandingMapping(spark, plan, awake)
    if leader != sleeper:
        leaders_folder(leader.parent, int(leader.name))  # as it took over
    awake.fill({"before": {}, "after": {NAME: rows(5)}})
    try:
        asleep.fill({"before": {}, "after": {NAME: rows(1)}})
    except MigratorError:
        return standing.run()["k"].to_pylist(), True
    return standing.run()["k"].to_pylist(), False


@pytest.mark.slow
def test_rows_of_a_replaced_leader_are_not_taken_for_ours(spark: SparkSession, tmp_path: Path) -> None:
    found = keys(spark, leaders_folder(tmp_path, 6), leaders_folder(tmp_path, 7))
    assert found == ([5, -5], True)


def test_in_one_folder_they_are(spark: SparkSession, tmp_path: Path) -> None:
    """The negative control."""
    assert keys(spark, tmp_path / "1", tmp_path / "1") == ([1, -1], False)
