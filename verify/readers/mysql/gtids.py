"""MySQL's GTID sets as the judge reads them: which transactions, of which server, under which tag."""

from __future__ import annotations

import json
import re

Gtids = dict[str, list[tuple[int, int]]]
"""Intervals (first and last number, sorted and apart) by ``uuid`` or ``uuid:tag``."""

_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def gtid_intervals(text: str) -> Gtids | None:
    """A position token or the server's own words (``uuid:1-5:7:tag:1``); None if they can't be read."""
    if text.lstrip().startswith("{"):
        text = str(json.loads(text).get("gtid", ""))
    found: list[tuple[str, int, int]] = []
    for part in filter(None, re.split(r"[,\s]+", text.lower())):
        uuid, *words = part.split(":")
        if not re.fullmatch(_UUID, uuid):
            return None
        name = uuid
        for word in words:
            numbers = re.fullmatch(r"(\d+)(?:-(\d+))?", word)
            if numbers:
                found.append((name, int(numbers[1]), int(numbers[2] or numbers[1])))
            else:
                name = f"{uuid}:{word}"
    return _sets(found)


def owned_gtids(text: str) -> Gtids:
    """The GTIDs in ``@@gtid_owned``: ``uuid:tag:number#thread``, the next UUID right after the last thread."""
    found = []
    pieces = re.split(f"({_UUID})", text.lower())
    for uuid, words in zip(pieces[1::2], pieces[2::2], strict=True):
        name = uuid
        for word in filter(None, (part.strip() for part in words.split(":"))):
            number = re.match(r"(\d+)#", word)
            if number:
                found.append((name, int(number[1]), int(number[1])))
            else:
                name = f"{uuid}:{word}"
    return _sets(found)


def both(one: Gtids, other: Gtids) -> Gtids:
    """Returns the union of two GTID sets."""
    return _sets(
        [
            (name, *interval)
            for gtids in (one, other)
            for name, intervals in gtids.items()
            for interval in intervals
        ]
    )


def count(gtids: Gtids) -> int:
    """Counts the transactions of a GTID set."""
    return sum(last - first + 1 for intervals in gtids.values() for first, last in intervals)


def text_of(gtids: Gtids) -> str:
    """The set in the server's words."""
    return ",".join(
        f"{name}:" + ":".join(f"{first}-{last}" for first, last in gtids[name]) for name in sorted(gtids)
    )


def _sets(found: list[tuple[str, int, int]]) -> Gtids:
    sets: Gtids = {}
    for name, first, last in sorted(found):
        intervals = sets.setdefault(name, [])
        if intervals and first <= intervals[-1][1] + 1:
            intervals[-1] = (intervals[-1][0], max(last, intervals[-1][1]))
        else:
            intervals.append((first, last))
    return sets
