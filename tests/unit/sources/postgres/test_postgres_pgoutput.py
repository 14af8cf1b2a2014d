"""The pgoutput parser: every message from constructed bytes, torn and flipped messages, and a round trip."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.log.pgoutput import (
    POSTGRES_EPOCH_US,
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    RawRow,
    Relation,
    RelationColumn,
    StreamAbort,
    StreamCommit,
    StreamStart,
    StreamStop,
    Truncate,
    Type,
    Update,
    begin_bytes,
    commit_bytes,
    parse,
)
from migrator.errors import SourceError


def cstring(text: str) -> bytes:
    return text.encode() + b"\0"


def row_bytes(row: RawRow) -> bytes:
    parts = [struct.pack("!H", len(row))]
    for value in row:
        if value is None:
            parts.append(b"n")
        elif isinstance(value, str):
            data = value.encode()
            parts.append(b"t" + struct.pack("!I", len(data)) + data)
        else:
            parts.append(b"u")
    return b"".join(parts)


def encode(message: Message) -> bytes:
    """The bytes of a message, written from the protocol's documentation and independent of the parser."""
    match message:
        case Begin(final_lsn, at_us, xid):
            return b"B" + struct.pack("!QqI", final_lsn, at_us - POSTGRES_EPOCH_US, xid)
        case Commit(commit_lsn, end_lsn, at_us):
            return b"C" + struct.pack("!BQQq", 0, commit_lsn, end_lsn, at_us - POSTGRES_EPOCH_US)
        case Origin(lsn, name):
            return b"O" + struct.pack("!Q", lsn) + cstring(name)
        case Relation(oid, schema, name, identity, columns):
            head = b"R" + struct.pack("!I", oid) + cstring(schema) + cstring(name) + identity.encode()
            tail = b"".join(
                bytes([column.in_identity])
                + cstring(column.name)
                + struct.pack("!Ii", column.type_oid, column.type_modifier)
                for column in columns
            )
            return head + struct.pack("!H", len(columns)) + tail
        case Type(oid, schema, name):
            return b"Y" + struct.pack("!I", oid) + cstring(schema) + cstring(name)
        case Insert(oid, new):
            return b"I" + struct.pack("!I", oid) + b"N" + row_bytes(new)
        case Update(oid, old, new):
            image = b"" if old is None else b"O" + row_bytes(old)
            return b"U" + struct.pack("!I", oid) + image + b"N" + row_bytes(new)
        case Delete(oid, old):
            return b"D" + struct.pack("!I", oid) + b"O" + row_bytes(old or ())
        case Truncate(options, oids):
            return b"T" + struct.pack("!IB", len(oids), options) + struct.pack(f"!{len(oids)}I", *oids)
        case LogicalMessage(transactional, lsn, prefix, content):
            head = b"M" + struct.pack("!BQ", transactional, lsn) + cstring(prefix)
            return head + struct.pack("!I", len(content)) + content
        case StreamStart(xid, first):
            return b"S" + struct.pack("!IB", xid, first)
        case StreamStop():
            return b"E"
        case StreamCommit(xid, commit_lsn, end_lsn, at_us):
            return b"c" + struct.pack("!IBQQq", xid, 0, commit_lsn, end_lsn, at_us - POSTGRES_EPOCH_US)
        case StreamAbort(xid, subtransaction):
            return b"A" + struct.pack("!II", xid, subtransaction)
    raise AssertionError(message)


u32 = st.integers(0, 2**32 - 1)
u64 = st.integers(0, 2**64 - 1)
time_us = st.integers(-(2**62), 2**62)
name = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
value = st.one_of(
    st.none(), st.just(UNCHANGED), st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
)
row = st.lists(value, max_size=8).map(tuple)
column = st.builds(RelationColumn, st.booleans(), name, u32, st.integers(-(2**31), 2**31 - 1))
messages = st.one_of(
    st.builds(Begin, u64, time_us, u32),
    st.builds(Commit, u64, u64, time_us),
    st.builds(Origin, u64, name),
    st.builds(Relation, u32, name, name, st.sampled_from("dnfi"), st.lists(column, max_size=5).map(tuple)),
    st.builds(Type, u32, name, name),
    st.builds(Insert, u32, row),
    st.builds(Update, u32, st.one_of(st.none(), row), row),
    st.builds(Delete, u32, row),
    st.builds(Truncate, st.integers(0, 3), st.lists(u32, max_size=5).map(tuple)),
    st.builds(LogicalMessage, st.booleans(), u64, name, st.binary(max_size=50)),
    st.builds(StreamStart, u32, st.booleans()),
    st.just(StreamStop()),
    st.builds(StreamCommit, u32, u64, u64, time_us),
    st.builds(StreamAbort, u32, u32),
)


@given(messages)
def test_every_message_survives_the_round_trip(message: Message) -> None:
    assert parse(encode(message)) == message


@given(messages, st.data())
def test_a_torn_message_is_a_named_error(message: Message, data: st.DataObject) -> None:
    whole = encode(message)
    torn = whole[: data.draw(st.integers(0, len(whole) - 1))]
    with pytest.raises(SourceError, match="malformed"):
        parse(torn)


@given(messages, st.binary(min_size=1, max_size=5))
def test_bytes_too_many_are_a_named_error(message: Message, extra: bytes) -> None:
    with pytest.raises(SourceError, match="malformed"):
        parse(encode(message) + extra)


def test_a_streamed_commit_becomes_the_begin_and_commit_it_would_have_had() -> None:
    end = StreamCommit(7, 100, 108, 1_700_000_000_000_000)
    assert parse(begin_bytes(end)) == Begin(100, end.committed_at_us, 7)
    assert parse(commit_bytes(end)) == Commit(100, 108, end.committed_at_us)


def test_a_begin_as_the_server_sends_it() -> None:
    payload = bytes.fromhex("42" + "00000000016f8a10" + "0002a5b3c4d5e6f7" + "000002f3")
    assert parse(payload) == Begin(0x016F8A10, 0x0002A5B3C4D5E6F7 + POSTGRES_EPOCH_US, 0x2F3)


def test_a_key_only_old_image_counts_as_none() -> None:
    update = b"U" + struct.pack("!I", 7) + b"K" + row_bytes(("1", None)) + b"N" + row_bytes(("2", "x"))
    delete = b"D" + struct.pack("!I", 7) + b"K" + row_bytes(("1", None))
    assert parse(update) == Update(7, None, ("2", "x"))
    assert parse(delete) == Delete(7, None)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"Z1234", id="unknown message"),
        pytest.param(b"I" + struct.pack("!I", 7) + b"X" + row_bytes(("1",)), id="insert of an unknown tuple"),
        pytest.param(b"D" + struct.pack("!I", 7) + b"N" + row_bytes(("1",)), id="delete with a new row"),
        pytest.param(b"I\0\0\0\7N\0\1b\0\0\0\1x", id="binary value, never asked for"),
        pytest.param(b"I\0\0\0\7N\0\1t\0\0\0\2\xc3\x28", id="text that isn't UTF-8"),
        pytest.param(b"Y\0\0\0\7no string end", id="string without an end"),
    ],
)
def test_malformed_messages_are_named(payload: bytes) -> None:
    with pytest.raises(SourceError, match="malformed") as caught:
        parse(payload)
    assert caught.value.retryable
    assert caught.value.cause
