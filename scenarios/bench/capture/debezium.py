"""Debezium's embedded engine, its records counted and dropped: in a process with a JVM of its own.

Settings are Debezium's defaults but for: offsets and schema history in files (so that it goes on where it stopped),
decimals as text. What is timed is from the first batch of records that it hands out to the last one: neither its
start nor its JVM's count.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.torture.debezium import missing_extra, reason, started_engine

_DEADLINE_S = 900.0
_POSTGRES = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "plugin.name": "pgoutput",
    "slot.name": "debezium_bench",
    "publication.name": "debezium_bench",
    "publication.autocreate.mode": "filtered",
}
_MYSQL = {
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "database.server.id": "5400",
    "driver.allowPublicKeyRetrieval": "true",
    "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
}


@dataclass
class CountedDebezium:
    """One connector on one table, started and stopped, its offsets kept between.

    Attributes:
        old: the source; PostgreSQL or MySQL (the package has no connector for MariaDB).
        table: its one table.
        folder: for offsets, history, counts and the engine's log.
    """

    old: Database
    table: str
    folder: Path
    _runs: int = field(default=0)

    def snapshot(self, rows: int) -> float:
        """Records a second of the initial snapshot."""
        return self._timed(rows, "initial")

    def stream(self, changes: int) -> float:
        """Records a second of a backlog that was written since the last call."""
        return self._timed(changes, "initial")  # done already: it goes on in the log

    def _timed(self, records: int, snapshot_mode: str) -> float:
        self._runs += 1
        counts = self.folder / f"counts-{self._runs}"
        process = started_engine(self._properties(snapshot_mode), counts, self.folder, count=True)
        try:
            first, last = self._counted(process, counts, records)
        finally:
            self._end(process)
        (before, began), (total, ended) = first, last
        return (total - before) / max(ended - began, 1e-9)

    def _counted(
        self, process: subprocess.Popen[str], counts: Path, records: int
    ) -> tuple[tuple[int, float], tuple[int, float]]:
        """The first batch and the one that made it complete: records so far, when."""
        deadline = time.monotonic() + _DEADLINE_S
        while time.monotonic() < deadline:
            lines = counts.read_text().splitlines(keepends=True) if counts.exists() else []
            found = [(int(a), float(b)) for a, b in (line.split() for line in lines if line.endswith("\n"))]
            complete = next((batch for batch in found if batch[0] >= records), None)
            if complete is not None:
                return found[0], complete
            if process.poll() is not None:
                log = self.folder / "debezium.log"
                raise MigratorError("Debezium ended by itself", where=str(log), cause=reason(log))
            time.sleep(0.05)
        raise MigratorError("Debezium brought too few records", where=str(self.folder), cause=f"of {records}")

    def _end(self, process: subprocess.Popen[str]) -> None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(30)  # it writes its offsets now
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _properties(self, snapshot_mode: str) -> Mapping[str, str]:
        schema = self.old.schema if self.old.kind == "postgresql" else self.old.database
        common = {
            "name": "bench",
            "topic.prefix": "bench",
            "database.hostname": self.old.host,
            "database.port": str(self.old.port),
            "database.user": self.old.user,
            "database.password": self.old.password,
            "table.include.list": f"{schema}.{self.table}",
            "snapshot.mode": snapshot_mode,
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "1000",
            "converter.schemas.enable": "false",
            "decimal.handling.mode": "string",
        }
        if self.old.kind == "postgresql":
            return {**common, **_POSTGRES, "database.dbname": self.old.database}
        history = str(self.folder / "history")
        return {
            **common,
            **_MYSQL,
            "database.include.list": self.old.database,
            "schema.history.internal.file.filename": history,
        }


__all__ = ["CountedDebezium", "missing_extra"]
