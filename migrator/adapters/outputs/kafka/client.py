"""Kafka's client: the package, which few need, what it is told, and its errors with a way out."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from migrator.errors import OutputError

_GO_ON = "then start again: it goes on after the last committed transaction"
_FENCED = frozenset({"_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
_FULL = "_QUEUE_FULL"
_ABSENT = frozenset({_FULL, "_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_MSG_TIMED_OUT"})
_UNBELIEVED = frozenset({"_SSL", "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED"})


def package(name: str = "confluent_kafka") -> ModuleType:
    """The package confluent-kafka, or a module of it. Raises ``OutputError`` where it isn't installed."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise OutputError(
            "writing to Kafka needs the package confluent-kafka",
            where="--format kafka",
            cause=str(error),
            remedy="pip install 'dbmigrator[kafka]'",
        ) from error


def named(what: str, where: str, error: Any, heard: str = "") -> OutputError:
    """The named error for one of the client's.

    Args:
        what: couldn't be done.
        where: servers or topic.
        error: a ``KafkaError``, a ``KafkaException`` with one, or a ``BufferError``.
        heard: what the client said of its connections last, which is often the cause of a time that ran out.
    """
    found = error.args[0] if isinstance(error, Exception) and error.args else error
    code = found.name() if hasattr(found, "name") else type(found).__name__
    if isinstance(error, BufferError):  # which has no code
        code = _FULL
    said = found.str() if hasattr(found, "str") else str(found)
    cause = f"{said} ({code})" + (f"; {heard}" if heard else "")
    if code in _FENCED:
        return OutputError(
            "another process writes these topics now",
            where=where,
            cause=f"{cause}; or this process stood still, or Kafka was away, until its transaction ran out",
            remedy=f"stop one of them if there are two, {_GO_ON}",
        )
    return OutputError(what, where=where, cause=cause, remedy=_remedy(code, heard), retryable=code in _ABSENT)


def _remedy(code: str, heard: str) -> str:
    if "AUTHORIZATION" in code:
        return (
            "grant the login Write, Describe, Create and DescribeConfigs on the topics, Read on the one with the"
            f" place, and Write and Describe on the transactional id, {_GO_ON}"
        )
    if code in _UNBELIEVED or any(one in heard for one in _UNBELIEVED):
        return f"correct security.protocol, ssl.* and sasl.* in the file of --client, {_GO_ON}"
    if code == "MSG_SIZE_TOO_LARGE":
        return (
            "raise max.message.bytes of the topic, and message.max.bytes in the file of --client for messages beyond"
            f" a million bytes, {_GO_ON}"
        )
    if code == _FULL:
        return (
            "look whether brokers listen there and can be reached; queue.buffering.max.kbytes in the file of --client"
            f" must have room for the longest message, {_GO_ON}"
        )
    if code in _ABSENT:
        return f"look whether brokers listen there and can be reached; correct --output, {_GO_ON}"
    return f"look at what the brokers' logs say about it, {_GO_ON}"
