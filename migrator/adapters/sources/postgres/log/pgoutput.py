"""Parser of pgoutput's protocol versions 1 and 2: bytes of one message in, one immutable value out.

Source: PostgreSQL documentation, "Logical Replication Message Formats". Integers are big-endian, strings end with a
zero byte, column values are the text of the type's output function. Messages are named tuples (immutable like our
frozen dataclasses, but made at C speed: there is one per row change). Messages of a streamed transaction
carry an xid behind their first byte, which ``reassembly`` has taken out before they come here.

Anything that doesn't fit the format to the last byte raises SourceError, so a torn or flipped stream never
passes as data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from migrator.errors import SourceError

_U32 = struct.Struct("!I").unpack_from
_U16 = struct.Struct("!H").unpack_from
_BEGIN = struct.Struct("!QqI")
_COMMIT = struct.Struct("!BQQq")
_STREAM_START = struct.Struct("!IB")
_STREAM_COMMIT = struct.Struct("!IBQQq")
_STREAM_ABORT = struct.Struct("!II")
_COLUMN_TAIL = struct.Struct("!Ii").unpack_from
_MESSAGE = struct.Struct("!BQ").unpack_from

_TEXT, _NULL, _UNCHANGED = ord("t"), ord("n"), ord("u")
_NEW, _KEY, _OLD = ord("N"), ord("K"), ord("O")
POSTGRES_EPOCH_US: Final = 946_684_800_000_000
"""2000-01-01 as microseconds since 1970: PostgreSQL's clock starts there."""


class UnchangedToast:
    """The value of a large column that an UPDATE left alone: it is not in the message."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCHANGED"


UNCHANGED: Final = UnchangedToast()
RawValue = str | None | UnchangedToast
RawRow = tuple[RawValue, ...]


class Begin(NamedTuple):
    """Start of a committed transaction: start of its commit record, commit time (us since 1970), 32-bit
    xid.
    """

    final_lsn: int
    committed_at_us: int
    xid: int


class Commit(NamedTuple):
    """End of a transaction: start and end of its commit record, commit time (us since 1970)."""

    commit_lsn: int
    end_lsn: int
    committed_at_us: int


class Origin(NamedTuple):
    """The transaction was replicated from elsewhere: its LSN there and the origin's name."""

    commit_lsn: int
    name: str


class RelationColumn(NamedTuple):
    """A published column. ``in_identity`` says that it is part of the replica identity (all are, with
    FULL).
    """

    in_identity: bool
    name: str
    type_oid: int
    type_modifier: int


class Relation(NamedTuple):
    """A table as it is at this place in the log. ``replica_identity``: d(efault), n(othing), f(ull),
    i(ndex).
    """

    oid: int
    schema: str
    name: str
    replica_identity: str
    columns: tuple[RelationColumn, ...]


class Type(NamedTuple):
    """Name of a user-defined type."""

    oid: int
    schema: str
    name: str


class Insert(NamedTuple):
    """A new row."""

    relation_oid: int
    new: RawRow


class Update(NamedTuple):
    """A changed row. ``old`` is the full old row (replica identity FULL), or None; a key-only image counts as
    None.
    """

    relation_oid: int
    old: RawRow | None
    new: RawRow


class Delete(NamedTuple):
    """A deleted row. ``old`` is the full old row, or None when only the key was logged."""

    relation_oid: int
    old: RawRow | None


class Truncate(NamedTuple):
    """Tables emptied by one TRUNCATE; options: 1 CASCADE, 2 RESTART IDENTITY."""

    options: int
    relation_oids: tuple[int, ...]


class LogicalMessage(NamedTuple):
    """A message that ``pg_logical_emit_message`` wrote."""

    transactional: bool
    lsn: int
    prefix: str
    content: bytes


class StreamStart(NamedTuple):
    """A piece of an unfinished transaction begins; ``first`` for its first one."""

    xid: int
    first: bool


class StreamStop(NamedTuple):
    """The piece ends."""


class StreamCommit(NamedTuple):
    """A streamed transaction committed: start and end of its commit record, commit time (us since 1970)."""

    xid: int
    commit_lsn: int
    end_lsn: int
    committed_at_us: int


class StreamAbort(NamedTuple):
    """A streamed transaction, or with another xid one of its subtransactions, was rolled back."""

    xid: int
    subtransaction: int


RowMessage = Insert | Update | Delete
Message = (
    Begin
    | Commit
    | Origin
    | Relation
    | Type
    | RowMessage
    | Truncate
    | LogicalMessage
    | StreamStart
    | StreamStop
    | StreamCommit
    | StreamAbort
)


def parse(payload: bytes) -> Message:
    """One message. Raises SourceError when the bytes don't fit the format exactly."""
    try:
        message, end = _PARSERS[payload[0]](payload)
    except KeyError:
        raise _malformed(payload, f"unknown message type {payload[:1]!r}") from None
    except (
        struct.error,
        IndexError,
        ValueError,
    ) as error:  # ValueError: text that isn't UTF-8, no string end
        raise _malformed(payload, str(error)) from error
    if end != len(payload):
        raise _malformed(payload, f"{len(payload)} bytes, but its contents say {end}")
    return message


def begin_bytes(end: StreamCommit) -> bytes:
    """The Begin message that the transaction would have had unstreamed."""
    return b"B" + _BEGIN.pack(end.commit_lsn, end.committed_at_us - POSTGRES_EPOCH_US, end.xid)


def commit_bytes(end: StreamCommit) -> bytes:
    """The Commit message that the transaction would have had unstreamed."""
    return b"C" + _COMMIT.pack(0, end.commit_lsn, end.end_lsn, end.committed_at_us - POSTGRES_EPOCH_US)


def _malformed(payload: bytes, cause: str) -> SourceError:
    return SourceError(
        "a message of the source log is malformed",
        where=f"pgoutput message starting {payload[:12].hex()}",
        cause=cause,
        remedy="reading resumes from the last stored position; report this if it repeats at the same place",
        retryable=True,
    )


def _string(payload: bytes, offset: int) -> tuple[str, int]:
    end = payload.index(0, offset)
    return payload[offset:end].decode(), end + 1


def _row(payload: bytes, offset: int) -> tuple[RawRow, int]:
    (count,) = _U16(payload, offset)
    offset += 2
    values: list[RawValue] = []
    add = values.append
    u32 = _U32
    # Most values are ASCII: slices of one Latin-1 string are made twice as fast as one decode per value.
    latin = payload.decode("latin-1")
    for _ in range(count):
        kind = payload[offset]
        if kind == _TEXT:
            start = offset + 5
            offset = start + u32(payload, offset + 1)[0]
            text = latin[start:offset]
            add(text if text.isascii() else payload[start:offset].decode())
        elif kind == _NULL:
            add(None)
            offset += 1
        elif kind == _UNCHANGED:
            add(UNCHANGED)
            offset += 1
        else:
            raise ValueError(f"unknown column kind {kind}")
    return tuple(values), offset


def _begin(payload: bytes) -> tuple[Message, int]:
    final_lsn, time_us, xid = _BEGIN.unpack_from(payload, 1)
    return Begin(final_lsn, time_us + POSTGRES_EPOCH_US, xid), 1 + _BEGIN.size


def _commit(payload: bytes) -> tuple[Message, int]:
    _, commit_lsn, end_lsn, time_us = _COMMIT.unpack_from(payload, 1)
    return Commit(commit_lsn, end_lsn, time_us + POSTGRES_EPOCH_US), 1 + _COMMIT.size


def _origin(payload: bytes) -> tuple[Message, int]:
    (lsn,) = struct.unpack_from("!Q", payload, 1)
    name, end = _string(payload, 9)
    return Origin(lsn, name), end


def _relation(payload: bytes) -> tuple[Message, int]:
    (oid,) = _U32(payload, 1)
    schema, offset = _string(payload, 5)
    name, offset = _string(payload, offset)
    identity = chr(payload[offset])
    (count,) = _U16(payload, offset + 1)
    offset += 3
    columns = []
    for _ in range(count):
        flags = payload[offset]
        column, offset = _string(payload, offset + 1)
        type_oid, modifier = _COLUMN_TAIL(payload, offset)
        offset += 8
        columns.append(RelationColumn(bool(flags & 1), column, type_oid, modifier))
    return Relation(oid, schema, name, identity, tuple(columns)), offset


def _type(payload: bytes) -> tuple[Message, int]:
    (oid,) = _U32(payload, 1)
    schema, offset = _string(payload, 5)
    name, offset = _string(payload, offset)
    return Type(oid, schema, name), offset


def _insert(payload: bytes) -> tuple[Message, int]:
    if payload[5] != _NEW:
        raise ValueError(f"insert with a tuple of kind {payload[5]}")
    new, end = _row(payload, 6)
    return Insert(_U32(payload, 1)[0], new), end


def _update(payload: bytes) -> tuple[Message, int]:
    old, offset = None, 5
    kind = payload[offset]
    if kind in (_OLD, _KEY):
        image, offset = _row(payload, 6)
        old = image if kind == _OLD else None
    if payload[offset] != _NEW:
        raise ValueError(f"update with a tuple of kind {payload[offset]}")
    new, end = _row(payload, offset + 1)
    return Update(_U32(payload, 1)[0], old, new), end


def _delete(payload: bytes) -> tuple[Message, int]:
    kind = payload[5]
    if kind not in (_OLD, _KEY):
        raise ValueError(f"delete with a tuple of kind {kind}")
    image, end = _row(payload, 6)
    return Delete(_U32(payload, 1)[0], image if kind == _OLD else None), end


def _truncate(payload: bytes) -> tuple[Message, int]:
    count, options = struct.unpack_from("!IB", payload, 1)
    oids = struct.unpack_from(f"!{count}I", payload, 6)
    return Truncate(options, oids), 6 + 4 * count


def _logical_message(payload: bytes) -> tuple[Message, int]:
    flags, lsn = _MESSAGE(payload, 1)
    prefix, offset = _string(payload, 10)
    (length,) = _U32(payload, offset)
    start = offset + 4
    return LogicalMessage(bool(flags & 1), lsn, prefix, payload[start : start + length]), start + length


def _stream_start(payload: bytes) -> tuple[Message, int]:
    xid, first = _STREAM_START.unpack_from(payload, 1)
    return StreamStart(xid, bool(first)), 1 + _STREAM_START.size


def _stream_stop(payload: bytes) -> tuple[Message, int]:
    return StreamStop(), 1


def _stream_commit(payload: bytes) -> tuple[Message, int]:
    xid, _, commit_lsn, end_lsn, time_us = _STREAM_COMMIT.unpack_from(payload, 1)
    return StreamCommit(xid, commit_lsn, end_lsn, time_us + POSTGRES_EPOCH_US), 1 + _STREAM_COMMIT.size


def _stream_abort(payload: bytes) -> tuple[Message, int]:
    return StreamAbort(*_STREAM_ABORT.unpack_from(payload, 1)), 1 + _STREAM_ABORT.size


_PARSERS: dict[int, Callable[[bytes], tuple[Message, int]]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("O"): _origin,
    ord("R"): _relation,
    ord("Y"): _type,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
    ord("M"): _logical_message,
    ord("S"): _stream_start,
    ord("E"): _stream_stop,
    ord("c"): _stream_commit,
    ord("A"): _stream_abort,
}
