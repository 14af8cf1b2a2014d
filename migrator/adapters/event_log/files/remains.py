"""Remains of a migration in its state folder, and the note that a reset began there.

Reports of verification stay, as do files that nobody here knows: somebody may still want to read them.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.places import places
from migrator.adapters.event_log.files.read_results import FILE, LOCK
from migrator.errors import EventLogError
from migrator.ports.remains import Found, Kind, Left

_NOTE = "reset.json"
_FORMAT = 1
_EVENT_LOG = "eventlog"
_PARTS = {
    _EVENT_LOG: "event log",
    f"{_EVENT_LOG}.replaced": "event log that another machine overtook",
    f"{_EVENT_LOG}.damaged": "damaged event log",
    f"{_EVENT_LOG}.fresh": "event log that was never used",
    "changed-keys": "list of changed keys",
    FILE: "results of dual reads",
}
_REQUESTS = "requests.json"
_WORKING = frozenset(
    {
        "slots",
        "spill",
        "spark-code",
        "spark.log",
        "verify.log",
        "run.log",
        *(f"run.log.{number}" for number in range(1, 6)),
        "progress.json",
        "plans.json",
        "plans.new",
        "standbys",
        "requests.lock",
        LOCK,
    }
)
"""Files that processes need while they run, and may be there without any migration."""
_OF_THE_LEAD = ("epoch", "leader.lock")
"""Files that leadership lives in. The lock goes last: whoever makes a new one may lead, and finds nothing else."""
_TEMPORARY = (".progress-", ".epoch.tmp", ".requests", ".reset.json")


class StateRemains:
    """``ports.remains.NotedRemains``.

    Args:
        state: the state folder.
        reports: the folder with reports of verification.
        covered: file in it that says what the run's verifier has read: of a migration started anew that is nothing.
    """

    def __init__(self, state: str | os.PathLike[str], reports: str | os.PathLike[str], covered: str = ""):
        self._state = Path(os.path.abspath(state))
        self._note = self._state / _NOTE
        self._reports, self._covered = Path(os.path.abspath(reports)), covered

    def begun(self) -> str:
        """See the port. A note that can't be read is one all the same."""
        try:
            return str(json.loads(self._note.read_bytes())["reset"])
        except FileNotFoundError:
            return ""
        except (OSError, ValueError, TypeError, KeyError):
            return f"{self._note} says so, and can't be read"

    def found(self) -> Found:
        """See the port. Raises ``EventLogError`` while an output is written: it would go on with the next log."""
        left, kept = [], []
        _refuse_readers(Layout.of(self._state / _EVENT_LOG))
        for name in sorted(self._names()):
            path = self._state / name
            if name in _PARTS:
                unused = name == _EVENT_LOG and not Layout.of(path).epoch.exists()  # an output came first
                left.append(Left(Kind.STATE, name, f"{_PARTS[name]} ({_size(path):,} bytes)", trifle=unused))
                if name == _EVENT_LOG:
                    kept += [f"what `migrator events` wrote: {one}; begin it anew" for one in _outputs(path)]
            elif name == _REQUESTS:
                left.append(Left(Kind.ASKED, name, "dump requests"))
            elif path == self._reports:
                if self._covered and (path / self._covered).exists():
                    said = "what was verified beside the run"
                    left.append(Left(Kind.STATE, f"{name}/{self._covered}", said, trifle=True))
                kept.append(f"reports of verification ({name})")
            elif not self._ours(name):
                kept.append(f"{name}, which the tool didn't make")
        if self.begun():
            left.append(Left(Kind.NOTE, _NOTE, f"the note of a reset that isn't finished ({self.begun()})"))
        return Found(f"state folder {self._state}", tuple(left), tuple(kept))

    def note(self, said: str) -> None:
        """See the port. An earlier note stays: it says when the first part was removed."""
        if self.begun():
            return
        try:
            durable.make_directory(self._state)
            durable.replace_file(self._note, json.dumps({"format": _FORMAT, "reset": said}).encode() + b"\n")
        except OSError as error:
            raise durable.disk_refused("the reset can't be noted", self._note, error) from error

    def remove(self, lefts: Sequence[Left]) -> None:
        """See the port."""
        for left in lefts:
            self._remove(self._state / left.name)

    def finish(self) -> None:
        """See the port."""
        for name in self._names():
            if name in _WORKING or name.startswith(_TEMPORARY):
                self._remove(self._state / name)
        self._remove(self._note)
        for name in _OF_THE_LEAD:
            self._remove(self._state / name)
        if not self._names():
            try:
                self._state.rmdir()
            except OSError:  # a mount point, a folder of somebody else's, or a run that began just now
                return

    def _ours(self, name: str) -> bool:
        return name in {*_WORKING, *_OF_THE_LEAD, _NOTE} or name.startswith(_TEMPORARY)

    def _names(self) -> list[str]:
        try:
            return os.listdir(self._state)
        except FileNotFoundError:
            return []

    def _remove(self, path: Path) -> None:
        """Removes a file or folder, durably; what is gone already is no error."""
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            durable.sync_directory(self._state)
        except OSError as error:
            raise durable.disk_refused("the state folder can't be emptied", path, error) from error


def _refuse_readers(layout: Layout) -> None:
    for lock in sorted(layout.readers.glob("*.lock")) if layout.readers.is_dir() else ():
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EventLogError(
                "a process reads the event log that a reset removes",
                where=str(layout.directory),
                cause=f"`migrator events` holds the lock {lock}",
                remedy="stop that process, then repeat `migrator reset`; begin its output anew afterwards",
            ) from None
        finally:
            os.close(handle)


def _outputs(event_log: Path) -> list[str]:
    """Names the outputs that read an event log; none where a damaged file keeps them from being known."""
    try:
        return [stored.output for _, stored in places(Layout.of(event_log))]
    except EventLogError:
        return []


def _size(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())
