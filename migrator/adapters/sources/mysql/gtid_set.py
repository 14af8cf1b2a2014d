"""GTID sets of MySQL: which transactions of which server (and tag) are meant.

A GTID is ``uuid:number`` or, from 8.3 on, ``uuid:tag:number``; a set lists intervals of numbers. MySQL Reference
Manual, "GTID Format and Storage"; the binary form is that of ``Previous_gtids`` events and of COM_BINLOG_DUMP_GTID.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from migrator.errors import SourceError

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_TAG = re.compile(r"[a-z_][a-z0-9_]{0,31}")
_INTERVAL = re.compile(r"(\d+)(?:-(\d+))?")
_OWNED = re.compile(r"(\d+)#\d+")
_TAGGED = 1

Origin = tuple[int, str]
"""The server's UUID as a number, and the tag (empty without one)."""
Interval = tuple[int, int]
"""First and last number, both included."""


@dataclass(frozen=True, slots=True)
class GtidSet:
    """An immutable set. ``intervals`` are sorted and never touch each other."""

    intervals: Mapping[Origin, tuple[Interval, ...]]

    def __contains__(self, gtid: tuple[Origin, int]) -> bool:
        origin, number = gtid
        intervals = self.intervals.get(origin, ())
        place = bisect_right(intervals, (number, 1 << 64)) - 1
        return place >= 0 and number <= intervals[place][1]

    def count(self) -> int:
        """Counts the set's transactions."""
        return sum(last - first + 1 for found in self.intervals.values() for first, last in found)

    def union(self, other: GtidSet) -> GtidSet:
        """Returns the transactions that either set has."""
        origins = {*self.intervals, *other.intervals}
        return GtidSet(
            {
                origin: _joined([*self.intervals.get(origin, ()), *other.intervals.get(origin, ())])
                for origin in origins
            }
        )

    def without(self, other: GtidSet) -> GtidSet:
        """Returns this set's transactions that the other set hasn't."""
        found = {origin: list(intervals) for origin, intervals in self.intervals.items()}
        for origin, taken in other.intervals.items():
            for first, last in taken:
                found[origin] = [
                    part
                    for low, high in found.get(origin, [])
                    for part in ((low, min(high, first - 1)), (max(low, last + 1), high))
                    if part[0] <= part[1]
                ]
        return GtidSet({origin: tuple(left) for origin, left in found.items() if left})

    def within(self, other: GtidSet) -> bool:
        """Tells whether the other set has everything that this one has."""
        return self.union(other).count() == other.count()

    def __str__(self) -> str:
        return ",".join(origin_text(origin, self.intervals[origin]) for origin in sorted(self.intervals))

    def encoded(self) -> bytes:
        """The set as the server's dump command takes it: the plain form, unless there are tags."""
        tagged = any(tag for _, tag in self.intervals)
        count = len(self.intervals)
        head = struct.pack("<Q", count << 8 | _TAGGED | _TAGGED << 56) if tagged else struct.pack("<Q", count)
        return head + b"".join(self._encoded(origin, tagged) for origin in sorted(self.intervals))

    def _encoded(self, origin: Origin, tagged: bool) -> bytes:
        uuid, tag = origin
        intervals = self.intervals[origin]
        name = bytes([len(tag) << 1]) + tag.encode() if tagged else b""
        numbers = b"".join(struct.pack("<QQ", first, last + 1) for first, last in intervals)
        return uuid.to_bytes(16, "big") + name + struct.pack("<Q", len(intervals)) + numbers


def origin_text(origin: Origin, intervals: tuple[Interval, ...]) -> str:
    """One origin's intervals as the server writes them: ``uuid:tag:1-5:7``."""
    numbers = ":".join(str(first) if first == last else f"{first}-{last}" for first, last in intervals)
    return f"{origin_name(origin)}:{numbers}"


def origin_name(origin: Origin) -> str:
    """``uuid`` or ``uuid:tag``."""
    digits, tag = f"{origin[0]:032x}", origin[1]
    uuid = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return f"{uuid}:{tag}" if tag else uuid


def parse_set(text: str) -> GtidSet:
    """A set from the server's text. Raises ``SourceError`` for anything else."""
    found: dict[Origin, list[Interval]] = {}
    for piece in filter(None, (part.strip() for part in text.split(","))):
        uuid, *words = (word.strip() for word in piece.lower().split(":"))
        if not _UUID.fullmatch(uuid):
            raise _unreadable(text)
        origin: Origin = (int(uuid.replace("-", ""), 16), "")
        for word in words:
            numbers = _INTERVAL.fullmatch(word)
            if numbers is not None:
                found.setdefault(origin, []).append((int(numbers[1]), int(numbers[2] or numbers[1])))
            elif _TAG.fullmatch(word):
                origin = (origin[0], word)
            else:
                raise _unreadable(text)
    return GtidSet({origin: _joined(intervals) for origin, intervals in found.items()})


def parse_owned(text: str) -> GtidSet:
    """The GTIDs of transactions that are being committed, from ``@@gtid_owned`` (``uuid:tag:number#thread...``).

    Nothing stands between the last thread of one UUID and the next UUID.
    """
    found: dict[Origin, list[Interval]] = {}
    _, *pieces = re.split(f"({_UUID.pattern})", text, flags=re.IGNORECASE)
    for uuid, words in zip(pieces[::2], pieces[1::2], strict=True):
        origin: Origin = (int(uuid.replace("-", ""), 16), "")
        for word in words.strip(":,\n ").split(":"):
            number = _OWNED.match(word.strip())
            if number is not None:
                found.setdefault(origin, []).append((int(number[1]), int(number[1])))
            else:
                origin = (origin[0], word.strip().lower())
    return GtidSet({origin: _joined(intervals) for origin, intervals in found.items()})


def _joined(intervals: list[Interval]) -> tuple[Interval, ...]:
    return tuple(_merge(sorted(intervals)))


def _merge(intervals: list[Interval]) -> Iterator[Interval]:
    if not intervals:
        return
    first, last = intervals[0]
    for next_first, next_last in intervals[1:]:
        if next_first > last + 1:
            yield first, last
            first = next_first
        last = max(last, next_last)
    yield first, last


def _unreadable(text: str) -> SourceError:
    return SourceError(
        "a GTID set can't be read",
        where=text[:200],
        remedy="use another `state` directory: this one is of another source",
    )


def newest(gtids: GtidSet) -> tuple[str, ...]:
    """The GTID with the highest number of each origin: a replica's log has none of its own."""
    return tuple(
        f"{origin_name(origin)}:{intervals[-1][1]}"
        for origin, intervals in gtids.intervals.items()
        if intervals
    )


def own_last(gtids: GtidSet, server_uuid: str) -> str:
    """The last transaction that a server has committed first, as far as the set goes; empty if there is none."""
    origin: Origin = (int(server_uuid.replace("-", ""), 16), "")
    intervals = gtids.intervals.get(origin)
    return f"{origin_name(origin)}:{intervals[-1][1]}" if intervals else ""


class GrowingSet:
    """A set to which one transaction after the other is added, and whose text is always at hand.

    Nearly every transaction has the number after the last one of its origin. Of the text only that number changes
    then: ``_around`` is what stands before and behind it, None when that isn't known.
    """

    def __init__(self, start: GtidSet):
        self._intervals = {origin: list(found) for origin, found in start.intervals.items()}
        self._texts = {origin: origin_text(origin, found) for origin, found in start.intervals.items()}
        self._last: tuple[Origin, int] | None = None
        self._around: tuple[str, str] | None = None
        self.count = start.count()

    def __contains__(self, gtid: tuple[Origin, int]) -> bool:
        origin, number = gtid
        return any(first <= number <= last for first, last in reversed(self._intervals.get(origin, [])))

    def is_next(self, origin: Origin, number: int) -> bool:
        """Tells whether a transaction is the one after the last one that was added; then the set doesn't have it."""
        return self._last == (origin, number - 1)

    def add(self, origin: Origin, number: int) -> None:
        """Adds a transaction that isn't in it."""
        same = self._last == (origin, number - 1)
        if same and self._around is not None:
            intervals = self._intervals[origin]
            intervals[-1] = (intervals[-1][0], number)
            self._last = origin, number
            self.count += 1
            return
        if not same and self._last is not None:  # its text was not kept up while only its number changed
            self._texts[self._last[0]] = origin_text(self._last[0], tuple(self._intervals[self._last[0]]))
        intervals = self._intervals.setdefault(origin, [])
        if intervals and intervals[-1][1] == number - 1:
            intervals[-1] = (intervals[-1][0], number)
        else:
            intervals[:] = _joined([*intervals, (number, number)])
            same = False
        self._last = (origin, number) if intervals[-1][1] == number else None
        self.count += 1
        if not same:
            self._around = None
        if self._around is None:
            self._texts[origin] = origin_text(origin, tuple(intervals))
            self._around = self._surroundings()

    def _surroundings(self) -> tuple[str, str] | None:
        if self._last is None:
            return None
        origin, number = self._last
        own, end = self._texts[origin], f"-{number}"
        if not own.endswith(end):
            return None
        before = [self._texts[other] for other in sorted(self._texts) if other < origin]
        behind = [self._texts[other] for other in sorted(self._texts) if other > origin]
        return ",".join([*before, own.removesuffix(str(number))]), "".join(f",{text}" for text in behind)

    def __str__(self) -> str:
        if self._around is not None and self._last is not None:
            before, behind = self._around
            return f"{before}{self._last[1]}{behind}"
        return ",".join(self._texts[origin] for origin in sorted(self._texts))
