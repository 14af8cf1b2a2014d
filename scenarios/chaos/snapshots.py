"""Snapshots of the new tables, each with the ledger of the same view: after batches, and in between."""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from verify.readers.engines import target_reader
from verify.readers.snapshot import LedgerState, TargetSnapshot
from verify.settings import ServerSettings

_PAUSE_S = (0.05, 0.6)
_LONG_S = 0.25
"""Longer snapshots are taken for a tenth of the time."""
_SHARE = 10


@dataclass(frozen=True, slots=True)
class Seen:
    """One snapshot; ``number`` rises in the order in which they were taken."""

    number: int
    ledger: LedgerState
    snapshot: TargetSnapshot
    folder: Path

    def dumped(self) -> bool:
        """Tells whether the ledger says that every table is dumped."""
        return self.ledger.checkpoint is not None and self.ledger.checkpoint.dump_complete()


class Snapshots:
    """Takes snapshots: whenever ``take`` is called, and in a thread of its own.

    Args:
        target: the new side, reached directly.
        migration: whose ledger.
        tables: the names of the new tables.
        folder: gets their rows.
        seed: of the moments at which the thread looks.
        most: how many are kept; where there are more, every second of them is dropped again.
    """

    def __init__(
        self,
        target: ServerSettings,
        migration: str,
        tables: Sequence[str],
        folder: Path,
        seed: int,
        most: int = 400,
    ):
        self._reader = target_reader(target, migration)
        self._tables, self._folder, self._most = tables, folder, most
        self._dice = random.Random(f"{seed}/snapshots")
        self._lock = threading.Lock()
        self._stopping = Stopping()
        self._thread: threading.Thread | None = None
        self._number, self._not_before_s = 0, 0.0
        self.seen: list[Seen] = []

    def start(self) -> None:
        """Starts the thread."""
        self._thread = self._stopping.thread("snapshots", self._run)

    def stop(self) -> None:
        """Ends the thread, and takes the last snapshot. May be called again."""
        if self._thread is None:
            return
        self._stopping.request()
        self._thread.join()
        self._thread = None
        self._stopping.raise_failure()
        self.take()

    def take(self) -> None:
        """Takes a snapshot; a target that can't be read now, under a fault, or has no ledger yet, leaves none."""
        with self._lock:
            began = time.monotonic()
            if began < self._not_before_s and not self._stopping.requested():
                return
            self._take()
            took_s = time.monotonic() - began
            # Large tables are looked at less often: the pipeline is held meanwhile.
            self._not_before_s = began + took_s * (_SHARE if took_s > _LONG_S else 1)

    def _take(self) -> None:
        self._number += 1
        folder = self._folder / str(self._number)
        folder.mkdir(parents=True)
        try:
            found = self._reader.snapshot(self._tables, folder)
        except MigratorError:
            shutil.rmtree(folder)
            return
        if found.ledger is None or found.ledger.checkpoint is None:
            shutil.rmtree(folder)
            return
        self.seen.append(Seen(self._number, found.ledger, found, folder))
        if len(self.seen) > self._most:
            for dropped in self.seen[1:-1:2]:
                shutil.rmtree(dropped.folder)
            self.seen = [self.seen[0], *self.seen[2:-1:2], self.seen[-1]]

    def _run(self) -> None:
        while not self._stopping.wait(self._dice.uniform(*_PAUSE_S)):
            self.take()
