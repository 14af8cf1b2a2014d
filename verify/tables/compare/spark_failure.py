"""Failures inside Spark become one named error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from migrator.errors import VerifyError
from transforms.on_spark.pipeline import spark_cause
from transforms.on_spark.session import named_jvm_end


def from_spark(error: BaseException) -> bool:
    """Returns whether PySpark, or the bridge to the JVM below it, raised the error: each raises some of them."""
    return type(error).__module__.split(".")[0] in ("pyspark", "py4j")


@contextmanager
def named_failure(what: str, where: str, remedy: str) -> Iterator[None]:
    """Turns a failure inside Spark into ``VerifyError`` with its innermost cause; others pass unchanged.

    If Spark's JVM has ended, the error is ``MigratorError``: no table is at fault.
    """
    try:
        with named_jvm_end():
            yield
    except Exception as error:
        if not from_spark(error):
            raise
        raise VerifyError(what, where=where, cause=spark_cause(error), remedy=remedy) from error
