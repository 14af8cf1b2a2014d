"""The file of an incident: a zip with a manifest and parts, as docs/reference/incident-files.md has it."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from migrator.errors import ConfigError
from migrator.model.codecs.codec import NEWER, NewerFormatError, check_number
from scenarios.chaos.incident import failure, history, structure
from scenarios.chaos.incident.failure import Failure
from scenarios.chaos.incident.history import History
from scenarios.chaos.incident.structure import Structure

FORMAT = 1
MANIFEST = "manifest.json"
STRUCTURE, START, TRANSACTIONS = "structure/old.json", "history/start.jsonl", "history/transactions.jsonl"
FAILURE = "verify/failure.json"
PROJECT = "project/"
_TIME = (1980, 1, 1, 0, 0, 0)
MOST_BYTES = 1 << 28
"""Characters that the parts have at most together; four times as many bytes are unpacked at most."""
_DAMAGED = (
    OSError, EOFError, zipfile.BadZipFile, zlib.error, RuntimeError,  # RuntimeError: a way to pack that isn't known
    KeyError, TypeError, ValueError, AttributeError,
)  # fmt: skip
_PACKAGES = ("dbmigrator", "pyspark", "pyarrow", "psycopg", "pymysql", "mysql-replication")
PARTS: Mapping[str, str] = {
    STRUCTURE: "tables of the old side: columns with types, keys, foreign keys",
    "structure/old.sql": "the same as the statements by which a replay makes them",
    "structure/new.json": "tables of the new side, as the target showed them",
    START: "rows of the old side at the start, a line of JSON each",
    TRANSACTIONS: "the transactions after it, a line of JSON each, in commit order",
    "log/segments.json": "the segments of the event log: number, epoch, place, tables and rows",
    "log/checkpoint.json": "the checkpoint of the last segment",
    "log/ledger.json": "the target's ledger",
    FAILURE: "the failure: rows that differ, or the error of a run",
    "verify/verify.json": "the last verification's report",
    "settings.toml": "the project's settings without secrets",
    "project/migration.toml": "settings for a replay on throw-away servers",
}
"""The parts with names of their own; further ones below ``project/`` are the project's code."""


@dataclass(frozen=True)
class Incident:
    """An incident.

    Attributes:
        structure: of the old side.
        history: of its rows.
        failure: that was seen.
        project: the project's files by name: settings for a replay, mapping, revisions.
        parts: further parts by name, for people.
        facts: the manifest's fields beside the format and the list of parts.
    """

    structure: Structure
    history: History
    failure: Failure
    project: Mapping[str, str]
    parts: Mapping[str, str] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)

    def content(self) -> dict[str, str]:
        """All parts by name."""
        return {
            STRUCTURE: _json(structure.to_json(self.structure)),
            "structure/old.sql": ";\n\n".join([*structure.statements(self.structure), ""]),
            START: "".join(f"{line}\n" for line in history.start_lines(self.history)),
            TRANSACTIONS: "".join(f"{line}\n" for line in history.transaction_lines(self.history)),
            FAILURE: _json(failure.to_json(self.failure)),
            **{f"{PROJECT}{name}": text for name, text in self.project.items()},
            **self.parts,
        }


def packed(incident: Incident) -> bytes:
    """The bytes of the file; the same for the same incident."""
    sink, content = io.BytesIO(), {name: text.encode() for name, text in incident.content().items()}
    listed = [
        {
            "name": name,
            "what": PARTS.get(name, "code of the project"),
            "bytes": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        }
        for name, data in content.items()
    ]
    counts = {
        "start_rows": sum(map(len, incident.history.start.values())),
        "transactions": len(incident.history.transactions),
        "row_changes": len(incident.history.changes()),
    }
    manifest = _json({"format": FORMAT, **incident.facts, "counts": counts, "parts": listed})
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in {MANIFEST: manifest.encode(), **content}.items():
            file.writestr(zipfile.ZipInfo(name, _TIME), data, zipfile.ZIP_DEFLATED)
    return sink.getvalue()


def unpacked(file: Path) -> Incident:
    """The incident in a file. Raises ``ConfigError`` for one that is none, is damaged, or is of a newer version."""
    try:
        content = _content(file)
        manifest = json.loads(content.pop(MANIFEST))
        check_number("incident", manifest["format"], FORMAT)
        _check(manifest, content)
        found = structure.from_json(json.loads(content[STRUCTURE]))
        return Incident(
            found,
            history.parsed(found, content[START].decode(), content[TRANSACTIONS].decode()),
            failure.from_json(json.loads(content[FAILURE])),
            {
                name.removeprefix(PROJECT): data.decode()
                for name, data in content.items()
                if name.startswith(PROJECT)
            },
            {
                name: data.decode()
                for name, data in content.items()
                if not name.startswith((PROJECT, "history/", "structure/old")) and name != FAILURE
            },
            {name: value for name, value in manifest.items() if name not in ("format", "parts", "counts")},
        )
    except NewerFormatError as error:
        raise ConfigError(
            "this incident is of a newer version", where=str(file), cause=str(error), remedy=NEWER
        ) from error
    except _DAMAGED as error:
        raise ConfigError(
            "this is no incident that can be read",
            where=str(file),
            cause=f"{type(error).__name__}: {error}",
            remedy="name a file that `migrator incident collect` or `shrink` wrote; collect or copy it again",
        ) from error


def versions() -> dict[str, str]:
    """Versions of Python, the tool and its libraries; empty for one that isn't installed as a package."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return found


def _content(file: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(file) as found:
        members = found.infolist()
        if sum(one.file_size for one in members) > 4 * MOST_BYTES:
            raise ValueError(f"it unpacks to more than {4 * MOST_BYTES:,} bytes")
        unsafe = [
            one.filename
            for one in members
            if not {"", ".", ".."}.isdisjoint(one.filename.split("/")) or "\\" in one.filename
        ]
        if unsafe:
            raise ValueError(f"a part has a name that leads out of a folder: {unsafe[0]}")
        return {one.filename: found.read(one) for one in members}


def _check(manifest: Mapping[str, Any], content: Mapping[str, bytes]) -> None:
    sums = {one["name"]: one["sha256"] for one in manifest["parts"]}
    if sums.keys() != content.keys():
        raise ValueError(f"its parts aren't those of its manifest: {sorted(sums.keys() ^ content.keys())[0]}")
    for name, data in content.items():
        if hashlib.sha256(data).hexdigest() != sums[name]:
            raise ValueError(f"{name} was changed: its SHA-256 isn't the manifest's")


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
