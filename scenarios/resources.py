"""Memory used by a process and everything below it, sampled from /proc."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self


def tree_bytes(root: int, of: Callable[[int], bool] = lambda _: True) -> int:
    """Proportional set size of a process and its descendants, in bytes (shared pages are counted once).

    ``of``: which processes count, by their id.
    """
    return sum(process_bytes(process) for process in tree(root) if of(process))


def tree_processor_s(root: int) -> float:
    """Processor time that a process, its descendants and those they have waited for have used, in seconds."""
    ticks = sum(sum(map(int, fields[11:15])) for fields in tree(root).values())
    return ticks / os.sysconf("SC_CLK_TCK")


def tree(root: int) -> dict[int, list[str]]:
    """A process and its descendants, each with its fields of ``/proc/<pid>/stat`` from the state on."""
    children: dict[int, list[int]] = {}
    known: dict[int, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # ended meanwhile
            known[int(entry.name)] = fields
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, pending = {}, [root]
    while pending:
        process = pending.pop()
        pending += children.get(process, [])
        found[process] = known.get(process, ["0"] * 15)
    return found


def process_bytes(process: int) -> int:
    """Proportional set size of one process, in bytes; 0 once it has ended."""
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0  # ended meanwhile
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def machine() -> str:
    """Cores, memory and processor model, for the head of a report."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown processor",
    )
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} cores ({model}), {memory_gib:.0f} GiB"


class PeakMemory:
    """Samples a process tree in the background; ``peak_bytes`` afterwards. ``of``: as :func:`tree_bytes` has it."""

    def __init__(self, root: int, every_s: float = 0.25, of: Callable[[int], bool] = lambda _: True):
        self.peak_bytes = 0
        self._root = root
        self._every_s = every_s
        self._of = of
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._end.wait(self._every_s):
            self.peak_bytes = max(self.peak_bytes, tree_bytes(self._root, self._of))
