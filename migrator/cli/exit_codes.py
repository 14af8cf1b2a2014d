"""Meanings of the commands' exit codes, shown below their help and in the documents."""

from __future__ import annotations

from collections.abc import Mapping

_DONE: Mapping[int, str] = {0: "done", 2: "error"}
_VERDICT: Mapping[int, str] = {0: "equal", 1: "different", 2: "error", 3: "unknown"}
_HOLDS: Mapping[int, str] = {0: "holds", 1: "violated", 2: "error", 3: "unknown: too little was checked"}
EXIT_CODES: Mapping[str, Mapping[int, str]] = {
    "check": {
        0: "nothing refuses",
        1: "with --reverse: something comes back otherwise, and isn't accepted",
        2: "something refuses, or error",
        3: "with --reverse: of some table no row was tried",
    },
    "cutover": {
        0: "done",
        1: "refused, or undone: the side that was open is open",
        2: "error",
        3: "still under way",
    },
    "demo": _VERDICT,
    "dual-read": _VERDICT,
    "explain": {0: "done", 2: "a mapping has gaps or can't be used, or error"},
    "rehearse": {
        0: "everything held",
        1: "something didn't hold",
        2: "error: it couldn't go on",
        3: "unknown: too little was tried",
    },
    "incident": {
        0: "done; replay: reproduced",
        1: "replay: not reproduced",
        2: "error",
        3: "unknown: it couldn't be played to its end, or shrink has nothing to hold on to",
    },
    "repair": {
        0: "nothing is to be repaired, or nothing is left",
        1: "something is to be repaired, or still differs",
        2: "error",
        3: "unknown",
    },
    "reset": {0: "done, or nothing to remove", 1: "the answer was no: nothing was removed", 2: "error"},
    "rows": {0: "done", 1: "retry: some are still set aside", 2: "error"},
    "run": {0: "stopped cleanly, or caught up", 2: "error", 130: "a second Ctrl-C ended it at once"},
    "scenario": _HOLDS,
    "sequences": {
        0: "all are far enough, or were set",
        1: "some are behind",
        2: "error, or some can't be set",
    },
    "status": {
        0: "caught up",
        1: "different: the last verification of a table found rows that differ",
        2: "error",
        3: "unknown: the source can't be asked",
        4: "behind: by more than --max-lag, or not everything is dumped",
        5: "stopped: nobody leads, whatever is behind",
    },
    "story": _VERDICT,
    "try": {0: "all rows can be mapped", 1: "some can't", 2: "error"},
    "verify": _VERDICT,
}
"""The meanings by command, or group of commands; every other one has ``_DONE``."""


def exit_codes(command: str) -> str:
    """Returns one line for the end of a command's help."""
    codes = EXIT_CODES.get(command, _DONE)
    return "Exit codes: " + ", ".join(f"{code} {meaning}" for code, meaning in codes.items()) + "."
