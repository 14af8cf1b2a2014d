"""The heap of the JVM that Spark runs in, as the JVM tells it."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JError

from transforms.on_spark.session import running_session


def heap() -> tuple[tuple[str, int], ...]:
    """Bytes of the heap that are ``used``, ``committed``, and its ``limit``; none where no JVM runs or answers.

    ``used`` counts what nobody needs any more, too, until the next collection. A JVM that stands still answers when
    it goes on.
    """
    session = running_session()
    if session is None:
        return ()
    try:
        jvm: Any = session._jvm
        runtime = jvm.java.lang.Runtime.getRuntime()
        limit, committed, free = runtime.maxMemory(), runtime.totalMemory(), runtime.freeMemory()
    except (Py4JError, OSError, AttributeError):  # it ends, or has ended
        return ()
    return ("used", committed - free), ("committed", committed), ("limit", limit)
