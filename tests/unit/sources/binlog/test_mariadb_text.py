"""What only MariaDB logs, without a server: addresses, compressed values, times in the old format."""

from __future__ import annotations

import ipaddress
import uuid
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows import mariadb_text
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.multibyte import decoder
from migrator.adapters.sources.binlog.rows.row_decoder import build_decoder
from migrator.adapters.sources.mariadb.log_reader import MARIADB
from migrator.errors import SourceError

CHARSETS = Charsets({63: "binary", 8: "latin1"}, {"latin1": "".join(map(chr, range(256)))})


@given(st.uuids(), st.integers(0, 16))
def test_a_uuid_is_printed_as_it_stands(value: uuid.UUID, zeros: int) -> None:
    stored = value.bytes[: 16 - zeros].rstrip(b"\0")
    assert mariadb_text.uuid_text(stored) == str(uuid.UUID(bytes=stored.ljust(16, b"\0")))


@given(st.lists(st.sampled_from([0, 0, 1, 0xFFFF, 0x12AB]), min_size=8, max_size=8))
def test_an_inet6_reads_back_the_same(words: list[int]) -> None:
    stored = b"".join(word.to_bytes(2, "big") for word in words)
    assert ipaddress.IPv6Address(mariadb_text.inet6_text(stored.rstrip(b"\0"))).packed == stored


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("0:0:0:0:0:0:0:0", "::"),
        ("1:0:0:2:0:0:3:4", "1::2:0:0:3:4"),
        ("1:2:3:0:5:6:7:8", "1:2:3::5:6:7:8"),
        ("1:0:0:0:0:0:0:0", "1::"),
        ("0:0:0:0:0:0:1:2", "::0.1.0.2"),
        ("0:0:0:0:0:ffff:102:304", "::ffff:1.2.3.4"),
        ("0:0:0:0:0:0:0:5", "::5"),
        ("0:0:0:0:ffff:0:102:304", "::ffff:0:102:304"),
    ],
)
def test_an_inet6_is_printed_as_the_server_does(words: str, text: str) -> None:
    stored = b"".join(int(word, 16).to_bytes(2, "big") for word in words.split(":"))
    assert mariadb_text.inet6_text(stored) == text


def packed(value: bytes, *, wrap: bool) -> bytes:
    """As the server stores it, written from its description."""
    stream = zlib.compressobj(wbits=15 if wrap else -15)
    width = (len(value).bit_length() + 7) // 8
    head = bytes([0x80 | width | (0 if wrap else 8)]) + len(value).to_bytes(width, "big")
    return head + stream.compress(value) + stream.flush()


@given(st.binary(min_size=1, max_size=70_000), st.booleans())
def test_compressed_values_come_out_whole(value: bytes, wrap: bool) -> None:
    assert mariadb_text.uncompressed(packed(value, wrap=wrap)) == value
    assert mariadb_text.uncompressed(b"\0" + value) == value
    assert mariadb_text.uncompressed(b"") == b""


def test_damaged_compressed_values_are_refused() -> None:
    good = packed(b"some text" * 99, wrap=False)
    for damaged in (good[:-3], good[:1] + b"\0\1" + good[3:], b"\x90" + good[1:], good[:5] + b"\xff" * 9):
        with pytest.raises(ValueError, match="compress"):
            mariadb_text.uncompressed(damaged)


def decode(kind: int, declared: str, raw: bytes, meta: int = 0) -> object:
    column = LoggedColumn("c", kind, meta, 0, False, 63, ())
    ((value,),) = build_decoder([column], [declared], CHARSETS, MARIADB)(b"\xfe" + raw, 0, 1 + len(raw))
    return value


@pytest.mark.parametrize(
    ("kind", "declared", "raw", "text"),
    [
        (types.TIME, "time", "25d8ff", "-01:02:03"),
        (types.TIME, "time(3)", "00b3ced494", "-01:02:03.500"),
        (types.DATETIME, "datetime", "1b0ba98b68120000", "2024-02-29 01:02:03"),
        (types.DATETIME, "datetime", "0000000000000000", "0000-00-00 00:00:00"),
        (types.DATETIME, "datetime(3)", "00422bb3243cc0", "2024-02-29 01:02:03.456"),
        (types.DATETIME, "datetime(6)", "01027ab3c58d5115", "2024-02-29 01:02:03.456789"),
        (types.TIMESTAMP, "timestamp", "8bd7df65", "2024-02-29 01:02:03"),
        (types.TIMESTAMP, "timestamp(2)", "65dfd78b2d", "2024-02-29 01:02:03.45"),
        (types.TIMESTAMP, "timestamp(2)", "0000000000", "0000-00-00 00:00:00.00"),
        (types.TIMESTAMP, "timestamp(2)", "0000000001", "1970-01-01 00:00:00.01"),
    ],
)
def test_times_in_the_old_format(kind: int, declared: str, raw: str, text: str) -> None:
    assert decode(kind, f"{declared} /* mariadb-5.3 */", bytes.fromhex(raw)) == text


def test_what_the_catalog_does_not_explain_is_refused_by_name() -> None:
    with pytest.raises(SourceError, match=r"column c .* can't be read.*DATETIME in the old format"):
        decode(types.DATETIME, "datetime(3)", bytes(8))
    with pytest.raises(SourceError, match="isn't logged as the uuid"):
        decode(types.VARCHAR, "uuid", b"\x01a", 36)
    with pytest.raises(SourceError, match="isn't logged as the inet4"):
        decode(types.STRING, "inet4", b"\x01a", 16)


def test_multi_byte_text_is_cut_where_the_server_cuts_it() -> None:
    plain = {bytes([byte]): chr(byte) for byte in range(128)}
    text = decoder(plain | {b"\xb1\x41": "中", b"\xb1\x42": "?", b"\x8f\xa1\xa1": "三"})
    assert text(b"a\xb1\x41A\xb1\x42\x8f\xa1\xa1") == "a中A?三"
    assert text(b"plain") == "plain"
    for broken in (b"\xb1", b"a\xb1\x43", b"\xff"):
        with pytest.raises(ValueError, match="begins no character"):
            text(broken)


def test_the_four_bytes_of_gb18030_beyond_its_tables() -> None:
    text = decoder({b"\x81\x30\x81\x30": "\x80"}, linear=True)
    assert text(bytes.fromhex("90308130 81308130 e3329a35")) == "\U00010000\x80\U0010ffff"
    assert text(bytes.fromhex("fe39fe39 8f308130")) == "??"
    for broken in ("90308140", "9030ff30", "843181", "84308130"):
        with pytest.raises(ValueError, match="begins no character"):
            text(bytes.fromhex(broken))
