"""Plans that are made with settings of their own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession


@contextmanager
def planned_with(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[Any]:
    """A copy of the JVM's session that has these settings, and is this thread's active one within the block.

    Settings of the session itself are those of all threads. A job that another thread begins meanwhile would be
    planned by one value and run by another: Spark asks for some of them late (``key not found: scanTime``).
    """
    sessions: Any = spark._jvm.org.apache.spark.sql.classic.SparkSession  # type: ignore[union-attr]
    copy: Any = spark._jsparkSession.cloneSession()
    for name, value in settings.items():
        copy.conf().set(name, value)
    before = sessions.getActiveSession()
    sessions.setActiveSession(copy)
    try:
        yield copy
    finally:
        if before.isDefined():
            sessions.setActiveSession(before.get())
        else:
            sessions.clearActiveSession()


def execution_of(session: Any, frame: DataFrame) -> Any:
    """The ``QueryExecution`` of a frame in a session of the JVM, by whose settings it is planned."""
    execution = frame._jdf.queryExecution()
    return session.sessionState().executePlan(execution.analyzed(), execution.mode())
