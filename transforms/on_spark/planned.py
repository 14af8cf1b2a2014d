"""Settings of the session while something is planned."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

_planning = threading.Lock()
"""Settings belong to the session, and several threads plan with it."""


@contextmanager
def planned_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Plans made within see these settings, and only one thread at a time makes some."""
    with _planning:
        before = {name: spark.conf.get(name, None) for name in settings}
        try:
            for name, value in settings.items():
                spark.conf.set(name, value)
            yield
        finally:
            for name, kept in before.items():
                if kept is None:
                    spark.conf.unset(name)
                else:
                    spark.conf.set(name, kept)
