"""The heap of Spark's JVM, asked while it runs and after it has ended."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from transforms.on_spark import heap as told
from transforms.on_spark.heap import heap

pytestmark = [pytest.mark.integration, pytest.mark.spark]


def test_the_jvm_tells_its_heap(spark: SparkSession) -> None:
    found = dict(heap())
    assert list(found) == ["used", "committed", "limit"]
    assert 1 << 20 < found["used"] <= found["committed"] <= found["limit"]


def test_without_a_jvm_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ended:
        """A session whose JVM has gone."""

        @property
        def _jvm(self) -> object:
            raise ConnectionRefusedError

    monkeypatch.setattr(told, "running_session", lambda: None)
    assert heap() == ()
    monkeypatch.setattr(told, "running_session", Ended)
    assert heap() == ()
