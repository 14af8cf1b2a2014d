"""Settings of the Spark session that need no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.errors import ConfigError
from transforms.on_spark.session_settings import heap_bytes, session_settings


def settings(conf: dict[str, str], master: str = "local[2]") -> dict[str, str]:
    return dict(session_settings(master, conf, Path("/tmp/x/spark.log")).getAll())


def test_heap_is_a_quarter_of_the_machine_within_bounds() -> None:
    assert [heap_bytes(gib << 30) >> 20 for gib in (1, 4, 8, 64)] == [512, 1024, 2048, 3072]


def test_the_users_settings_win_and_master_is_ours() -> None:
    found = settings({"spark.driver.memory": "700m", "spark.master": "local[9]", "spark.mine": "1"})
    assert found["spark.driver.memory"] == "700m"
    assert found["spark.mine"] == "1"
    assert found["spark.master"] == "local[2]"
    assert found["spark.driver.bindAddress"] == "127.0.0.1"


def test_a_cluster_is_not_bound_to_the_loopback() -> None:
    assert "spark.driver.bindAddress" not in settings({}, "spark://host:7077")


@pytest.mark.parametrize(
    "conf",
    [
        {"driver.memory": "1g"},
        {"spark.sql.session.timeZone": "Europe/Berlin"},
        {"spark.sql.ansi.enabled": "false"},
        {"spark.sql.timestampType": "TIMESTAMP_NTZ"},  # else a mapping is blamed for the other type
    ],
)
def test_settings_that_would_change_rows_are_refused(conf: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as failure:
        settings(conf)
    assert next(iter(conf)) in failure.value.where
    assert failure.value.remedy
