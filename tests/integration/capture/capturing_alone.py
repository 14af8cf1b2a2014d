"""The capture half of ``migrator run`` as a process of its own, whose memory is then its own: no Spark, no target.

``python -m tests.integration.capture.capturing_alone SERVER TABLE FOLDER LIMITS`` (SERVER and LIMITS as JSON,
SERVER as the fields of ``tests.servers.Database``): captures into an event log below FOLDER until it is told to stop
on standard input, by a line with the number of row changes to wait for. Says ``ready``, and at the end its resident
memory in bytes: when it was ready, and at its peak since.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.room import FileRoom
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.connections.mysql.settings import BinlogSource
from migrator.model.limits import CaptureLimits
from migrator.model.server import Server
from migrator.model.table import TableSchema
from migrator.run.capture import fair_inputs
from migrator.run.capture import steps as capture_steps
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.loop import CaptureLoop, SourcePorts
from migrator.run.failure import Stopping
from migrator.run.progress import Progress
from tests.integration.binlog_engine import MARIADB, MYSQL

SERVER_ID = 700_001


def main(server: str, table: str, folder: str, limits: str) -> None:
    """Captures one table."""
    options = json.loads(limits)
    fair_inputs.MOST_BYTES = options.get("held_bytes", fair_inputs.MOST_BYTES)
    capture_steps.SEGMENT_BYTES = options.get("held_bytes", capture_steps.SEGMENT_BYTES)
    ports, schemas = _source(json.loads(server), table, Path(folder), options)
    directory = Path(folder) / "eventlog"
    writer = FileSegmentWriter(directory, 1)
    progress, stopping = Progress(), Stopping()
    loop = CaptureLoop(
        ports,
        Attempt(
            {schema.id: schema for schema in schemas},
            None,
            CaptureLimits(**options.get("capture", {})),
            "1-alone",
        ),
        writer,
        MemoryRequests(),
        FileRoom(directory, writer, FileBatchReader(directory)),
        progress,
    )
    thread = stopping.thread("capture", lambda: loop.run(stopping))
    _await(stopping, lambda: progress.snapshot().captured is not None and not progress.snapshot().dumping())
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here (proc(5))
    before = _status("VmRSS")
    print("ready", flush=True)
    wanted = int(sys.stdin.readline())
    _await(stopping, lambda: progress.snapshot().captured_changes >= wanted)
    print(json.dumps({"before": before, "peak": _status("VmHWM")}), flush=True)
    stopping.request()
    thread.join(30)


def _source(
    server: Mapping[str, Any], table: str, folder: Path, options: Mapping[str, Any]
) -> tuple[SourcePorts, list[TableSchema]]:
    where = {name: server[name] for name in ("kind", "host", "port", "database", "user")}
    place = Server(**where, password=server["password"] or None, schema="public")
    migration = server["database"][:31]
    if server["kind"] == "postgresql":
        pg = PostgresSource(place, migration, spill_folder=folder / "spill", **options.get("source", {}))
        catalog = PostgresCatalog(pg)
        schemas = catalog.tables([table])
        catalog.prepare(schemas)
        return SourcePorts(
            lambda: PostgresLogReader(pg, schemas), lambda: PostgresChunkReader(pg), None
        ), schemas
    binlog = BinlogSource(place, migration, SERVER_ID)
    engine = {MYSQL.kind: MYSQL, MARIADB.kind: MARIADB}[server["kind"]]
    tables = engine.catalog(binlog).tables([table])
    return SourcePorts(
        lambda: engine.log_reader(binlog, tables), lambda: engine.chunk_reader(binlog), None
    ), tables


def _await(stopping: Stopping, holds) -> None:  # type: ignore[no-untyped-def]
    while not holds():
        stopping.raise_failure()
        threading.Event().wait(0.02)


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(f"{name}:"))


if __name__ == "__main__":
    main(*sys.argv[1:])
