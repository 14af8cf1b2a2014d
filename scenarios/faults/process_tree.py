"""The processes below a process, from /proc (proc(5))."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")
_THREADS = 20 - 3
"""The place of the number of threads among the fields from the third on."""


def descendants(pid: int) -> list[int]:
    """Children, their children and so on, parents first; those that end meanwhile may be missing."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            fields = _stat_fields(int(entry.name))
            if fields and fields[0] != "Z":
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(0), [])
        found += below
        waiting += below
    return found


def command_line(pid: int) -> list[str]:
    """The words a process was started with; empty if it is gone."""
    return _words(pid, "cmdline")


def environment(pid: int) -> dict[str, str]:
    """The variables a process was started with; empty if it is gone."""
    return {name: value for name, _, value in (word.partition("=") for word in _words(pid, "environ"))}


def _words(pid: int, file: str) -> list[str]:
    try:
        raw = (_PROC / str(pid) / file).read_bytes()
    except OSError:
        return []
    return [word.decode("utf-8", "surrogateescape") for word in raw.split(b"\0")[:-1]]


def oom_score(pid: int) -> int:
    """Returns how likely the kernel is to kill a process when memory runs out (proc(5)); -1 if the process is
    gone."""
    try:
        return int((_PROC / str(pid) / "oom_score").read_text())
    except OSError:
        return -1


def alive(pid: int) -> bool:
    """Returns whether the process exists and isn't a zombie.

    Its main thread may be one while others are still ending: until they have, its parent can't wait for it.
    """
    fields = _stat_fields(pid)
    return bool(fields) and (fields[0] != "Z" or int(fields[_THREADS]) > 1)


def send(pids: Iterable[int], number: signal.Signals) -> int:
    """Sends a signal to each process that still exists; returns how many got it."""
    reached = 0
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue
        reached += 1
    return reached


def _stat_fields(pid: int) -> list[str]:
    """Fields 3 and up of /proc/PID/stat (state, parent, ...); empty if the process is gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
