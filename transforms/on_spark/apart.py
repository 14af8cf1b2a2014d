"""Keeps signals away from Spark: Spark ends when we end it, and Spark doesn't replace our handlers."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import IO, Any

import pyspark.core.context
import pyspark.java_gateway


class Apart(dict[str, Any]):
    """Options of a process that no signal to our group, terminal or container reaches.

    It must not end before the work that we finish when we are told to stop. PySpark sets ``preexec_fn`` itself, and
    has SIGINT alone ignored; a JVM leaves a signal ignored that was so when it started.
    """

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, _deaf if name == "preexec_fn" else value)


def _deaf() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


@contextmanager
def started_apart(log: IO[bytes]) -> Iterator[Apart]:
    """Options for PySpark's start of its JVM. The JVM ends with us when the start is interrupted.

    PySpark removes the folder in which it waits for the JVM's address. A JVM that can't write there has no main
    thread left that would notice our end, and stays for ever.

    Args:
        log: gets what it prints.
    """
    module: Any = pyspark.java_gateway
    theirs, started = module.Popen, list[subprocess.Popen[bytes]]()

    def begun(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = theirs(*arguments, **options)
        started.append(process)
        return process

    module.Popen = begun
    try:
        yield Apart(stdout=log, stderr=log, start_new_session=True)
    except (KeyboardInterrupt, SystemExit):
        for process in started:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        raise
    finally:
        module.Popen = theirs


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Keeps our handler of SIGINT: PySpark's context sets one that raises wherever the main thread is."""
    module: Any = pyspark.core.context
    theirs, module.signal = module.signal, SimpleNamespace(SIGINT=signal.SIGINT, signal=lambda *_: None)
    try:
        yield
    finally:
        module.signal = theirs
