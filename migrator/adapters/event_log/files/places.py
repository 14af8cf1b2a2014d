"""Places of the readers that aren't the target: one small file each, which also keeps segments from being released.

``<directory>/readers/<name>.json`` holds the place, ``<name>.lock`` is locked while the reader runs. A
passing reader (one that writes to a pipe) has nothing to come back to: its place counts only while its lock
is held, and whoever releases segments removes it afterwards. Any other place counts until it is forgotten on
purpose.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.layout import Layout
from migrator.errors import EventLogError
from migrator.model.codecs.codec import NEWER, NewerFormatError, check_number
from migrator.ports.eventlog import ReaderPlace

FORMAT = 2
"""Number of the present layout of a place. Format 1 had no ``id``."""


@dataclass(frozen=True, slots=True)
class StoredPlace:
    """A place as it rests. ``output`` is what the reader writes to, for people; ``passing``: see the module."""

    output: str
    passing: bool
    place: ReaderPlace


def read_place(path: Path) -> StoredPlace | None:
    """The place in a file; None when there is none. Raises ``EventLogError`` for a damaged one."""
    try:
        document = json.loads(path.read_bytes())
        check_number("place", document["format"], FORMAT)
        place = ReaderPlace(**{**document["place"], "tables": tuple(document["place"]["tables"])})
        return StoredPlace(document["output"], document["passing"], place)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise durable.disk_refused("the place of an output can't be read", path, error) from error
    except NewerFormatError as error:
        raise EventLogError(
            "the place of an output was written by a newer version of the migrator",
            where=str(path),
            cause=str(error),
            remedy=NEWER,
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EventLogError(
            "the place of an output can't be used",
            where=str(path),
            cause=f"{type(error).__name__}: {error}",
            remedy="somebody edited the file: restore it, or remove it and begin that output anew",
        ) from error


def write_place(path: Path, stored: StoredPlace) -> None:
    """Replaces the place, durably. Raises ``OSError``."""
    document = {
        "format": FORMAT,
        "output": stored.output,
        "passing": stored.passing,
        "place": dataclasses.asdict(stored.place),
    }
    durable.replace_file(path, json.dumps(document).encode() + b"\n")


def lock_path(path: Path) -> Path:
    """The lock file beside a place."""
    return path.with_suffix(".lock")


def places(layout: Layout) -> Iterator[tuple[Path, StoredPlace]]:
    """Every place of an event log."""
    if layout.readers.is_dir():
        for path in sorted(layout.readers.glob("*.json")):
            stored = read_place(path)
            if stored is not None:
                yield path, stored


def first_needed(layout: Layout) -> int | None:
    """The lowest segment that a reader needs, None when there is none.

    A reader's own segment is kept with those above it: when the reader comes back, that segment shows that this is
    still the event log it has read.
    """
    numbers = [
        stored.place.segment for path, stored in places(layout) if not stored.passing or not _abandoned(path)
    ]
    return min(numbers, default=None)


def _abandoned(path: Path) -> bool:
    """Tells whether a passing reader is gone; removes what it left."""
    try:
        handle = os.open(lock_path(path), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        path.unlink(missing_ok=True)
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
            lock_path(path).unlink()
        return True
    finally:
        os.close(handle)
