"""Samples of what a migration holds now: read from the kernel, the file system and both servers, not from the
migration itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.faults.session import query
from scenarios.resources import process_bytes, tree

_SESSIONS = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE backend_type IN ('client backend', 'walsender')",
    "other": "SELECT count(*) FROM information_schema.processlist",
}
_KEPT = (
    "SELECT coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0) FROM pg_replication_slots"
)


def processes(root: int) -> Mapping[str, float]:
    """Memory of the process, of Java and of all others below it (Spark's workers), threads and descriptors of all.

    Empty when the process has ended.
    """
    if not Path(f"/proc/{root}").exists():
        return {}
    found = {"python_bytes": 0.0, "jvm_bytes": 0.0, "workers_bytes": 0.0, "threads": 0.0, "descriptors": 0.0}
    for process in tree(root):
        folder = Path(f"/proc/{process}")
        try:
            name = (folder / "comm").read_text().strip()
            threads = len(list((folder / "task").iterdir()))
            descriptors = len(list((folder / "fd").iterdir()))
        except OSError:
            continue  # ended meanwhile
        kind = "python_bytes" if process == root else "jvm_bytes" if name == "java" else "workers_bytes"
        found[kind] += process_bytes(process)
        found["threads"] += threads
        found["descriptors"] += descriptors
    return found


def folder_bytes(folder: Path) -> float:
    """Returns the disk space that the files below a folder take, in bytes."""
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.lstat().st_blocks * 512
        except OSError:
            continue  # released meanwhile
    return float(total)


def servers(source: Database, target: Database) -> Mapping[str, float]:
    """Sessions on both, those of clients among them, and (PostgreSQL) the log that the source keeps for us.

    What can't be asked now is left out.
    """
    found: dict[str, float] = {}
    for name, database in (("source_connections", source), ("target_connections", target)):
        kind = database.kind if database.kind in _SESSIONS else "other"
        _asked(found, name, database, _SESSIONS[kind])
    if source.kind == "postgresql":
        _asked(found, "source_log_bytes", source, _KEPT)
    return found


def _asked(found: dict[str, float], name: str, database: Database, question: str) -> None:
    try:
        ((value,),) = query(database, question)
    except MigratorError:
        return
    found[name] = float(value)
