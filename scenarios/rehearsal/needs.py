"""The needs of the real run, as a rehearsal found it out: rights, settings of servers, disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrator.config.project import Settings
from scenarios.database import Database
from scenarios.faults.session import query
from scenarios.rehearsal.account import Account

_SETTINGS = {
    "postgresql": (
        "wal_level",
        "max_replication_slots",
        "max_wal_senders",
    ),
    "mariadb": ("log_bin", "binlog_format", "binlog_row_image", "log_bin_trust_function_creators"),
    "mysql": ("log_bin", "binlog_format", "binlog_row_image", "log_bin_trust_function_creators"),
}


def rights(account: Account, scripts: Mapping[str, list[str]], settings: Settings) -> None:
    """The grants that were given, as printed."""
    for side, server in (("old", settings.source), ("new", settings.target)):
        account.needs[f"rights on the {side} side ({server.user})"] = [
            line for script in scripts[side] for line in script.splitlines()
        ]


def fences(account: Account, extra: Mapping[str, list[str]]) -> None:
    """The rights that those who raise the fences got beside that."""
    for side, statements in extra.items():
        if statements:
            account.needs[f"to raise the fence of the {side} side, beside the printed grants"] = statements


def images(account: Account, statements: list[str]) -> None:
    """Tables whose log didn't hold whole rows."""
    if statements:
        account.needs["whole rows in the log, which the schema doesn't ask for"] = statements


def settings_of_servers(account: Account, ends: Mapping[str, Database]) -> None:
    """Settings that both throw-away servers had."""
    lines = account.needs.setdefault("settings that both servers had here", [])
    for side, database in ends.items():
        names = _SETTINGS[database.kind]
        if database.kind == "postgresql":
            found = [(name, query(database, f"SHOW {name}")[0][0]) for name in names]
        else:
            found = [(name, query(database, f"SELECT @@{name}")[0][0]) for name in names]
        lines.append(f"{side} side: " + ", ".join(f"{name} = {value}" for name, value in found))


def disk(account: Account, settings: Settings, what: str, rows: int = 0) -> None:
    """The size of the event log as it is now, in bytes; ``rows``: changed rows since the dump's end."""
    size = sum(file.stat().st_size for file in _files(settings.event_log()))
    per = f", {rows} changed rows" if rows else ""
    account.needs.setdefault("disk", []).append(f"event log after the {what}: {size:,} bytes{per}")


def _files(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*") if file.is_file()] if folder.exists() else []
