"""The probe of :mod:`transforms.on_spark.executors` that runs on an executor."""

from __future__ import annotations

import importlib
import os
import socket
from collections.abc import Sequence


def look(path: str, token: str, modules: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns this host's name, and what is wrong with modules and shared folder.

    Args:
        path: a file that the driver has written.
        token: its content. A file beside it is written as an answer.
        modules: to be imported.
    """
    problems = []
    for name in modules:
        try:
            importlib.import_module(name)
        except ImportError as error:
            problems.append(f"module {name} can't be imported: {error}")
    try:
        with open(path) as file:
            if file.read() != token:
                problems.append(f"{path} holds something else than the driver wrote")
        answer = os.open(f"{path}.{socket.gethostname()}-{os.getpid()}", os.O_WRONLY | os.O_CREAT, 0o600)
        os.close(answer)
    except OSError as error:
        problems.append(f"{error.filename or path}: {error.strerror or error}")
    return socket.gethostname(), tuple(problems)
