"""An event log that a contract is run against, and how one is made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pytest

from migrator.model.segment import Manifest
from migrator.ports.eventlog import BatchReader, SegmentWriter

Step = Callable[[str], None]


class Crashed(Exception):
    """Raised by a step hook in place of a SIGKILL."""


def crash_at(name: str) -> Step:
    def step(reached: str) -> None:
        if reached == name:
            raise Crashed(name)

    return step


class EventLogUnderTest(Protocol):
    """One event log and the ways to open it."""

    def writer(self, epoch: int, after: int = 0, step: Step | None = None) -> SegmentWriter: ...

    def reader(self) -> BatchReader: ...

    def chunk(self, path: str) -> pa.Table: ...

    def lose_manifest(self, number: int) -> None: ...

    def lose_data(self, manifest: Manifest) -> None: ...


class EventLogMaker:
    """``make`` opens an event log of its own in an empty directory (or ignores the directory)."""

    def make(self, directory: Path) -> EventLogUnderTest:
        raise AssertionError("a subclass says how to make its event log")

    @pytest.fixture
    def log(self, tmp_path: Path) -> EventLogUnderTest:
        return self.make(tmp_path)
