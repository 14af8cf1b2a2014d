"""A manifest as a file: one line of JSON, one line with the SHA-256 of the first.

The second line makes a torn or edited manifest an error instead of a wrong state; it stays the last line in
every format.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from migrator.adapters.event_log.files.durable import disk_refused
from migrator.adapters.event_log.files.layout import Layout
from migrator.errors import DamageError, EventLogError
from migrator.model.codecs.codec import (
    NEWER,
    NewerFormatError,
    manifest_from_json,
    manifest_to_json,
)
from migrator.model.segment import Manifest, SegmentFile

START_OVER = (
    "restore the event log from a backup, or move its directory away and start again: "
    "capture then goes on from the target's ledger as long as the source still holds its log from there"
)
"""The remedy for a damaged event log."""


def encode_manifest(layout: Layout, manifest: Manifest) -> tuple[bytes, str]:
    """The file's content, and the manifest's ``id``: the checksum, so that whoever reads it finds the same."""
    document = manifest_to_json(_with_paths(manifest, layout.relative))
    line = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
    identity = hashlib.sha256(line).hexdigest()
    return line + b'\n{"sha256":"' + identity.encode() + b'"}\n', identity


def read_manifest(layout: Layout, number: int) -> Manifest | None:
    """The manifest of a number, checked; None when there is none.

    Raises ``DamageError``, and ``EventLogError`` for the format of a newer version.
    """
    path = layout.manifest(number)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise disk_refused(f"the manifest of segment {number} can't be read", path, error) from error
    line, _, rest = content.partition(b"\n")
    identity = hashlib.sha256(line).hexdigest()
    if rest != b'{"sha256":"' + identity.encode() + b'"}\n':
        raise _damaged(path, number, "its checksum line doesn't fit: the file is torn or was edited")
    try:
        document = json.loads(line)
        manifest = manifest_from_json(document)
    except NewerFormatError as error:
        raise _newer(path, number, str(error)) from error
    except (ValueError, TypeError) as error:  # FormatError is a ValueError
        raise _damaged(path, number, str(error)) from error
    if manifest.number != number:
        raise _damaged(path, number, f"it is the manifest of segment {manifest.number}")
    return dataclasses.replace(_with_paths(manifest, _absolute(layout, path, number)), id=identity)


def newest_manifest(layout: Layout) -> Manifest | None:
    """The manifest of the highest number, checked; None in an empty event log. Raises ``EventLogError``."""
    while numbers := layout.numbers():
        manifest = read_manifest(layout, numbers[-1])
        if manifest is not None:  # else it was released since, so there is a newer one
            return manifest
    return None


def _with_paths(manifest: Manifest, convert: Callable[[str], str]) -> Manifest:
    files: tuple[SegmentFile, ...] = tuple(
        dataclasses.replace(file, path=convert(file.path)) for file in manifest.files
    )
    return dataclasses.replace(manifest, files=files)


def _absolute(layout: Layout, path: Path, number: int) -> Callable[[str], str]:
    def convert(stored: str) -> str:
        found = layout.absolute(stored)
        if found is None:
            raise _damaged(path, number, f"{stored!r} is no data file of this event log")
        return found

    return convert


def _damaged(path: Path, number: int, cause: str) -> DamageError:
    return DamageError(
        f"the manifest of segment {number} can't be used", where=str(path), cause=cause, remedy=START_OVER
    )


def _newer(path: Path, number: int, cause: str) -> EventLogError:
    return EventLogError(
        f"segment {number} was written by a newer version of the migrator",
        where=str(path),
        cause=cause,
        remedy=NEWER,
    )
