"""The manifests of an event log one after the other: each checked, none skipped, the next one waited for."""

from __future__ import annotations

import os
import time

from migrator.adapters.event_log.files import durable
from migrator.adapters.event_log.files.fresh_segments import FreshSegments
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.manifest_file import START_OVER, read_manifest
from migrator.errors import DamageError, EventLogError
from migrator.model.segment import Manifest

_POLL_MIN_S, _POLL_MAX_S = 0.002, 0.02
_WAIT_SLICE_S = 0.25


class Sequence:
    """Looks at manifests by number for one reader, and remembers them.

    Args:
        layout: of the event log.
        fresh: shared with a writer in the same process; without it the directory is polled every 2 to 20 ms.
    """

    def __init__(self, layout: Layout, fresh: FreshSegments | None = None) -> None:
        self._layout = layout
        self._fresh = fresh
        self._known: dict[int, Manifest] = {}

    def manifest(self, number: int) -> Manifest | None:
        """The manifest of a number, checked; None when there is none. Raises ``EventLogError``."""
        manifest = self._known.get(number)
        if manifest is None:
            manifest = read_manifest(self._layout, number)
            if manifest is not None:
                self._known[number] = manifest
        return manifest

    def forget(self, up_to: int) -> None:
        """Manifests up to this number won't be asked for again."""
        self._known = {number: manifest for number, manifest in self._known.items() if number > up_to}

    def wait(self, number: int, deadline: float) -> bool:
        """Waits until the segment exists; False when it doesn't by ``deadline`` (``time.monotonic``)."""
        path = self._layout.manifest(number)
        pause_s = _POLL_MIN_S
        while not os.path.exists(path):
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            if self._fresh is not None:
                self._fresh.wait(number, min(left_s, _WAIT_SLICE_S))
            else:
                time.sleep(min(left_s, pause_s))
                pause_s = min(pause_s * 1.5, _POLL_MAX_S)
        return True

    def check_released(self, after: int, because: str, remedy: str) -> None:
        """Raises ``EventLogError`` when segments above ``after`` were given up; ``because`` says who needs them."""
        released = durable.read_number(self._layout.released)
        if after < released:
            raise EventLogError(
                f"segments {after + 1} to {released} are no longer in the event log",
                where=str(self._layout.directory),
                cause=f"they were released, but {because}",
                remedy=remedy,
            )

    def check_gap(self, number: int) -> None:
        """A missing number below an existing one: its manifest was lost. Raises ``DamageError``."""
        above = [other for other in self._layout.numbers() if other > number]
        if above and self.manifest(number) is None and durable.read_number(self._layout.released) < number:
            raise DamageError(
                f"the manifest of segment {number} is missing",
                where=str(self._layout.manifest(number)),
                cause=f"segment {above[0]} exists, so segment {number} was there once",
                remedy=START_OVER,
            )
