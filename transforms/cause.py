"""The short cause inside a Spark failure: one line, no stack."""

from __future__ import annotations

import re

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException, PythonException

_CONTEXT = re.compile(r"\n?== (?:SQL|DataFrame)|\s*SQLSTATE: \w+")
_ADVICE = re.compile(r"(?<=[.:]) [A-Z][^.]*?spark\.sql\.[a-zA-Z].*$", re.DOTALL)
"""Spark's advice to change a setting: those that decide about values are fixed, see
``transforms.on_spark.surroundings``."""
_PYTHON_START = "Error from python worker:"
_LENGTH_MAX = 500


def spark_cause(error: BaseException) -> str:
    """Names what went wrong in a Spark job: Spark's error class and message, or the last line of a Python
    traceback.

    Args:
        error: whatever PySpark or Py4J raised.

    Returns:
        one line of at most 500 characters.
    """
    if isinstance(error, PythonException):
        return _clip(_last_python_line(str(error)))
    if isinstance(error, Py4JJavaError):
        return _clip(_java_cause(error.java_exception))
    if isinstance(error, CapturedException) and error._origin is not None:
        return _clip(_java_cause(error._origin))
    if isinstance(error, PySparkException):
        return _clip(_without_context(str(error)))
    return _clip(f"{type(error).__name__}: {error}")


def _java_cause(exception: object) -> str:
    """Message of the innermost exception that has one: outer ones only say that a job or a task failed."""
    message = name = ""
    while exception is not None:
        name = _simple_name(exception)
        text = exception.getMessage()  # type: ignore[attr-defined]
        if text and _PYTHON_START in text:
            return _last_line_of_start(text)
        if text and "Traceback (most recent call last)" in text:
            return _last_python_line(text)
        if text:
            named = text.startswith("[")  # [ERROR_CLASS] says more than the Java class
            message = _without_context(text) if named else f"{name}: {_without_context(text)}"
        exception = exception.getCause()  # type: ignore[attr-defined]
    return message or name  # an overflown stack has no message


def _last_line_of_start(text: str) -> str:
    """Returns the last words of a Python worker that couldn't start."""
    said = text.split(_PYTHON_START, 1)[1].split("PYTHONPATH was:", 1)[0]
    return next((line.strip() for line in reversed(said.splitlines()) if line.strip()), "it said nothing")


def _simple_name(exception: object) -> str:
    return str(exception.getClass().getSimpleName())  # type: ignore[attr-defined]


def _without_context(text: str) -> str:
    return _ADVICE.sub("", _CONTEXT.split(text, maxsplit=1)[0]).strip()


def _last_python_line(text: str) -> str:
    """The line of a traceback that names the exception: the first one after the frames, indented."""
    body = text.rsplit("Traceback (most recent call last)", 1)[-1].splitlines()[1:]
    for line in body:
        if line.strip() and not line.startswith((" ", "\t")):
            return line.strip()
    return _without_context(text)


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LENGTH_MAX else line[: _LENGTH_MAX - 3] + "..."
