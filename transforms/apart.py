"""Keeps Spark and signals apart: Spark ends when we let it, and our handlers stay ours."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pyspark.core.context


class Apart(dict[str, Any]):
    """Options of a process that no signal to our group, terminal or container reaches: Spark ends when we let it.

    It must not end before the work that we finish when we are told to stop. PySpark sets ``preexec_fn`` itself, and
    has SIGINT alone ignored; a JVM leaves a signal ignored that was so when it started.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _deaf if name == "preexec_fn" else value)


def _deaf() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def handlers_kept() -> Iterator[None]:
    """PySpark's context replaces the handler of SIGINT by one that raises wherever the main thread is."""
    module: Any = pyspark.core.context
    theirs, module.signal = module.signal, SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    try:
        yield
    finally:
        module.signal = theirs
