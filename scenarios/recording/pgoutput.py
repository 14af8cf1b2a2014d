"""A second reader of pgoutput's protocol version 1, as small as a recorder needs it.

Written apart from ``migrator.adapters.sources.postgres.log.pgoutput``: a recorder must not share the bug of
what it records.
Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from typing import NamedTuple

from migrator.errors import VerifyError

POSTGRES_EPOCH_US = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970: PostgreSQL counts from there."""


class Unchanged:
    """Stands for a large value that an UPDATE left alone: the log doesn't carry it."""


UNCHANGED = Unchanged()
Values = list[object]
"""One of ``bytes`` (the value's text), None (NULL) and ``UNCHANGED`` for each column."""


class Begin(NamedTuple):
    """A committed transaction begins: start of its commit record, and when (us since 1970)."""

    commit_lsn: int
    committed_at_us: int


class Commit(NamedTuple):
    """The end of a transaction: end of its commit record."""

    end_lsn: int


class Relation(NamedTuple):
    """A table and its columns from here on."""

    oid: int
    schema: str
    name: str
    columns: tuple[str, ...]


class Row(NamedTuple):
    """A row change; ``old`` is None for an insert and where the log holds no whole old row, ``new`` for a
    delete."""

    oid: int
    old: Values | None
    new: Values | None


class Truncate(NamedTuple):
    """Tables emptied at once."""

    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Row | Truncate


def decode(data: bytes) -> Message | None:
    """One message; None for the kinds a recorder has no use for. Raises ``VerifyError`` for unknown ones."""
    reading = _Reading(data)
    kind = reading.letter()
    if kind == "B":
        return Begin(reading.number(8), reading.number(8) + POSTGRES_EPOCH_US)
    if kind == "C":
        reading.number(1 + 8)  # flags and start of the commit record
        return Commit(reading.number(8))
    if kind == "R":
        return _relation(reading)
    if kind in "IUD":
        return _row(kind, reading)
    if kind == "T":
        count = reading.number(4)
        reading.number(1)  # CASCADE, RESTART IDENTITY
        return Truncate(tuple(reading.number(4) for _ in range(count)))
    if kind in "OYM":  # origin, type, logical message
        return None
    raise VerifyError(f"pgoutput sent a message of kind {kind!r}, which the recorder doesn't know")


def _relation(reading: _Reading) -> Relation:
    oid, schema, name = reading.number(4), reading.word(), reading.word()
    reading.letter()  # replica identity
    columns = []
    for _ in range(reading.number(2)):
        reading.number(1)  # part of the key
        columns.append(reading.word())
        reading.number(8)  # type and its modifier
    return Relation(oid, schema, name, tuple(columns))


def _row(kind: str, reading: _Reading) -> Row:
    oid = reading.number(4)
    part = reading.letter()
    old: Values | None = None
    if part in "OK":
        values = reading.values()
        old = values if part == "O" else None
        if kind == "D":
            if old is None:
                raise VerifyError(
                    "the log holds a delete without its whole old row",
                    remedy="the recorded table needs REPLICA IDENTITY FULL",
                )
            return Row(oid, old, None)
        reading.letter()  # N
    return Row(oid, old, reading.values())


class _Reading:
    def __init__(self, data: bytes):
        self._data = data
        self._at = 0

    def letter(self) -> str:
        self._at += 1
        return chr(self._data[self._at - 1])

    def number(self, size_bytes: int) -> int:
        start, self._at = self._at, self._at + size_bytes
        return int.from_bytes(self._data[start : self._at], "big")

    def word(self) -> str:
        end = self._data.index(0, self._at)
        start, self._at = self._at, end + 1
        return self._data[start:end].decode()

    def values(self) -> Values:
        found: Values = []
        for _ in range(self.number(2)):
            kind = self.letter()
            if kind == "n":
                found.append(None)
            elif kind == "u":
                found.append(UNCHANGED)
            else:
                size_bytes = self.number(4)
                found.append(self._data[self._at : self._at + size_bytes])
                self._at += size_bytes
        return found
