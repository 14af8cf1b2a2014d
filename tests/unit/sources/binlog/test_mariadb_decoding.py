"""Decoding of the binary log without a server: values, rows with NULLs, events, statements, result sets."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.events.events import FORMAT_DESCRIPTION, XID, EventParser
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.charsets import Charsets
from migrator.adapters.sources.binlog.rows.row_decoder import build_decoder
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.sql_words import Lexer, words
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind, judge
from migrator.adapters.sources.mariadb.log_reader import MARIADB
from migrator.connections.mysql import result_set
from migrator.connections.mysql.packet_buffer import PacketBuffer
from migrator.errors import SourceError
from migrator.model.table import TableId

LATIN = "".join(map(chr, range(256)))
CHARSETS = Charsets({45: "utf8mb4", 8: "latin1", 63: "binary", 28: "gbk"}, {"latin1": LATIN})


def logged(
    kind: int, meta: int = 0, *, unsigned: bool = False, collation: int = 45, labels: tuple[bytes, ...] = ()
) -> LoggedColumn:
    return LoggedColumn("c", kind, meta, 0, unsigned, collation, labels)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (0.1, "0.1"),
        (0.30000000000000004, "0.30000000000000004"),
        (1e14, "100000000000000"),
        (1e15, "1e15"),
        (-7484839041502034.0, "-7.484839041502034e15"),
        (1234567890123456.8, "1234567890123456.8"),
        (1.2345678901234568e17, "1.2345678901234568e17"),
        (1e-15, "0.000000000000001"),
        (1.5e-5, "0.000015"),
        (5e-324, "5e-324"),
        (-1.7976931348623157e308, "-1.7976931348623157e308"),
    ],
)
def test_doubles_are_printed_as_the_server_does(value: float, text: str) -> None:
    assert value_text.double_text(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back_the_same(value: float) -> None:
    assert float(value_text.double_text(value)) == value


def stored_decimal(text: str, precision: int, scale: int) -> bytes:
    """The server's format, written from its description: groups of nine digits, complement for negatives."""
    whole, _, part = text.lstrip("-").partition(".")
    whole, part = whole.rjust(precision - scale, "0") if precision > scale else "", part.ljust(scale, "0")
    first = len(whole) % 9
    groups = ([whole[:first]] if first else []) + [whole[i : i + 9] for i in range(first, len(whole), 9)]
    groups += [part[i : i + 9] for i in range(0, len(part), 9)]
    width = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
    raw = b"".join(int(group).to_bytes(width[len(group)], "big") for group in groups)
    raw = bytes([raw[0] ^ 0x80]) + raw[1:]
    return bytes(byte ^ 0xFF for byte in raw) if text.startswith("-") else raw


@st.composite
def decimals(draw: st.DrawFn) -> tuple[str, int, int]:
    scale = draw(st.integers(0, 38))
    precision = draw(st.integers(max(1, scale), 65))
    number = draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    digits = str(abs(number)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return ("-" if number < 0 else "") + text, precision, scale


@given(decimals())
def test_decimals_of_any_size(case: tuple[str, int, int]) -> None:
    text, precision, scale = case
    raw = stored_decimal(text, precision, scale)
    assert len(raw) == value_text.decimal_bytes(precision, scale)
    assert value_text.decimal_text(precision, scale)(raw) == text


@pytest.mark.parametrize(
    ("decode", "raw", "text"),
    [
        (value_text.time_text(0), (0x800000).to_bytes(3, "big"), "00:00:00"),
        (value_text.time_text(0), (0x800000 - (838 << 12 | 59 << 6 | 59)).to_bytes(3, "big"), "-838:59:59"),
        (value_text.time_text(2), ((0x800000 << 8) - (1 << 8 | 50)).to_bytes(4, "big"), "-00:00:01.50"),
        (value_text.date_text, bytes(3), "0000-00-00"),
        (value_text.date_text, (2024 << 9 | 2 << 5 | 31).to_bytes(3, "little"), "2024-02-31"),
        (value_text.datetime_text, (1 << 39).to_bytes(5, "big"), "0000-00-00 00:00:00"),
        (value_text.timestamp_fraction_text(3), bytes(6), "0000-00-00 00:00:00.000"),
        (value_text.timestamp_fraction_text(1), (1).to_bytes(4, "big") + b"\x5a", "1970-01-01 00:00:01.9"),
    ],
)
def test_times(decode: Callable[[bytes], str], raw: bytes, text: str) -> None:
    assert decode(raw) == text


def test_rows_with_and_without_nulls() -> None:
    columns = [
        logged(types.LONG, unsigned=True),
        logged(types.VARCHAR, 20),
        logged(types.LONGLONG),
        logged(types.VARCHAR, 300, collation=8),
        logged(types.STRING, 4, collation=63),
        logged(types.BLOB, 2, collation=63),
        logged(types.ENUM, 1, labels=(b"a", "é".encode())),
        logged(types.SET, 1, labels=(b"x", b"y")),
        logged(types.TINY),
    ]
    decode = build_decoder(columns, [""] * 8 + [None], CHARSETS, MARIADB)
    full = struct.pack("<I", 2**32 - 1) + b"\x02\xc3\xa9" + struct.pack("<q", -(2**63)) + b"\x01\x00\xe9"
    full += b"\x01a" + b"\x00\x00" + b"\x02" + b"\x03" + b"\x7f"
    data = b"\x00\xfe" + full + b"\xff\xff" + b"\xfd\xff\x00"  # the unused bits of the bitmap are set
    data += b"\x00\xfe" + full
    whole = ("4294967295", "é", "-9223372036854775808", "é", b"a\0\0\0", b"", "é", "x,y")
    only_text = (None, "", None, None, None, None, None, None)
    assert decode(b"head" + data, 4, 4 + len(data)) == [whole, (None,) * 8, only_text, whole]


def test_rows_that_end_elsewhere_than_their_event_are_damaged() -> None:
    decode = build_decoder([logged(types.LONG)], [""], CHARSETS, MARIADB)
    with pytest.raises(struct.error):
        decode(b"\xfe\x01\x00\x00\x00\xfe\x01\x00", 0, 7)
    decode = build_decoder([logged(types.VARCHAR, 20)], [""], CHARSETS, MARIADB)
    with pytest.raises(ValueError, match="the rows end at byte 7, the event at byte 4"):
        decode(b"\xfe\x05ab", 0, 4)


def test_character_sets_without_an_exact_way_are_refused_by_name() -> None:
    with pytest.raises(SourceError, match="gbk"):
        build_decoder([logged(types.VARCHAR, 20, collation=28)], [""], CHARSETS, MARIADB)


def event(kind: int, body: bytes, *, checksum: bool = True) -> bytes:
    raw = struct.pack("<IBIIIH", 1, kind, 1, 19 + len(body) + 4 * checksum, 100, 0) + body
    return raw + zlib.crc32(raw).to_bytes(4, "little") if checksum else raw


def test_a_flipped_byte_is_found_by_the_checksum() -> None:
    parser = EventParser()
    parser.parse(event(FORMAT_DESCRIPTION, b"\x04\x00whatever\x01"))
    good = event(XID, bytes(8))
    assert parser.parse(good).body == bytes(8)
    for place in range(len(good)):
        bad = bytearray(good)
        bad[place] ^= 0x10
        with pytest.raises(SourceError, match="damaged"):
            parser.parse(bytes(bad))


def test_a_file_without_checksums_is_read_to_the_last_byte() -> None:
    parser = EventParser()
    parser.parse(event(FORMAT_DESCRIPTION, b"\x04\x00whatever\x00"))
    assert parser.parse(event(XID, b"12345678", checksum=False)).body == b"12345678"


def judged(text: str, database: str = "old") -> Statement:
    ours = {TableId("old", "account"), TableId("old", "a b")}
    return judge(
        QueryText(database, text),
        "old",
        lambda table: table if table in ours or table == TableId("old", "") else None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "TRUNCATE account",
        "truncate table `old`.`account`",
        "DROP TABLE IF EXISTS other, `a b` /* generated by server */",
        "DROP DATABASE old",
        "DROP DATABASE `old`",
        "RENAME TABLE x TO y, account TO z",
        "RENAME TABLE fresh TO account",
        "CREATE OR REPLACE TABLE account (id int)",
        "CREATE TABLE account (id int)",
        "CREATE TABLE `old`.account LIKE other",
        "ALTER TABLE other RENAME account",
        "ALTER TABLE elsewhere.other ADD a int, ENGINE = InnoDB RENAME AS old.account",
        "ALTER TABLE account COMMENT 'RENAME', RENAME = other",
        "ALTER TABLE account DROP COLUMN x",
        "ALTER IGNORE TABLE account ADD UNIQUE (a)",
        "ALTER ONLINE IGNORE TABLE account ADD CHECK (a > 5)",
        "ALTER TABLE account ADD a int, CHANGE b c int",
        "ALTER TABLE account CONVERT TO CHARACTER SET utf8mb4",
        "ALTER TABLE account DROP PARTITION p",
        "ALTER TABLE account TRUNCATE PARTITION p",
        "ALTER TABLE account CONVERT TABLE other TO PARTITION p VALUES LESS THAN (9)",
        "ALTER TABLE account CONVERT PARTITION p TO TABLE other",
        "ALTER TABLE account ADD COLUMN c int, IMPORT PARTITION p TABLESPACE",
        "ALTER TABLE account ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES b (c) ON UPDATE CASCADE",
        "ALTER TABLE account ADD SYSTEM VERSIONING",
        "ALTER TABLE account ENGINE = MyISAM",
        "ALTER TABLE account COMMENT 'x' ENGINE=MyISAM",
        "DROP TABLES other, account",
        "RENAME TABLE `old`.`account` TO `old`.`_account_del`, `old`.`_account_gho` TO `old`.`account`",
        "/*!50003 TRUNCATE */ /*!50003 account */",
        "ALTER TABLE account RENAME COLUMN a TO b",
        "ALTER TABLE other EXCHANGE PARTITION p WITH TABLE account",
        "ALTER /* why */ ONLINE TABLE account /*!50000 DROP COLUMN x */",
        "DROP INDEX `PRIMARY` ON account",
        "INSERT INTO account VALUES (1)",
        "SET STATEMENT max_statement_time=1 FOR DELETE FROM account",
        "ANALYZE UPDATE account SET a = 1",
        "WITH x AS (SELECT 1) DELETE FROM anything",
        "CREATE TABLE x AS SELECT f()",
        "CREATE OR REPLACE SEQUENCE account START 5",
        "CREATE OR REPLACE TEMPORARY TABLE x TABLE y",
        "CREATE TABLE IF NOT EXISTS x (a int) AS VALUES (f())",
        "CALL anything()",
        "-- a comment\n LOAD DATA INFILE 'x' INTO TABLE account",
    ],
)
def test_statements_that_hide_row_changes_are_refused(text: str) -> None:
    assert judged(text).refused


@pytest.mark.parametrize(
    "clause",
    [
        "DROP PARTITION p",
        "TRUNCATE PARTITION p",
        "ADD COLUMN c int, EXCHANGE PARTITION p WITH TABLE other",
        "CONVERT TABLE other TO PARTITION p VALUES LESS THAN (9)",
        "CONVERT PARTITION p TO TABLE other",
        "IMPORT PARTITION p TABLESPACE",
    ],
)
def test_rows_that_come_or_go_with_a_partition_are_as_those_of_another_table(clause: str) -> None:
    statement = judged(f"ALTER TABLE account {clause}")
    assert statement.kind is StatementKind.EMPTIED
    assert [table.name for table in statement.tables] == ["account"]
    assert "PARTITION" in statement.refused


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE account ADD COLUMN a int DEFAULT 5 AFTER b, ADD INDEX (a), COMMENT 'DROP COLUMN x, y'",
        "ALTER TABLE account ADD `drop` varchar(10) COMMENT 'a, b), c'",
        "ALTER TABLE account ADD CONSTRAINT `f g` FOREIGN KEY (a) REFERENCES b (c) ON DELETE RESTRICT",
        "ALTER TABLE account COMMENT 'ENGINE = MyISAM' ROW_FORMAT=DYNAMIC",
        "ALTER TABLE account ALTER COLUMN a SET DEFAULT 1, ENGINE=InnoDB, ALGORITHM=INPLACE",
        "ALTER TABLE other DROP COLUMN x",
        "ALTER TABLE other COMMENT 'RENAME TO account', RENAME COLUMN account TO b, RENAME another",
        "CREATE TABLE IF NOT EXISTS account (id int)",
        "CREATE TEMPORARY TABLE account (id int)",
        "DROP TEMPORARY TABLE IF EXISTS `old`.`account`",
        "DROP /*!40005 TEMPORARY */ TABLE IF EXISTS account",
        "CREATE INDEX i ON account (a)",
        "DROP INDEX i ON account",
        "TRUNCATE other",
        "ANALYZE TABLE account",
        "OPTIMIZE TABLE account",
        "CREATE TABLE x LIKE account",
        "CREATE OR REPLACE SEQUENCE x START 5",
        "CREATE TABLE x (`select` int COMMENT 'SELECT') PARTITION BY LIST (a) (PARTITION p VALUES IN (1))",
        "CREATE OR REPLACE VIEW x AS SELECT f()",
        "GRANT SELECT ON account TO u",
    ],
)
def test_harmless_statements_go_on(text: str) -> None:
    assert judged(text).refused == ""


def test_statements_of_other_databases_concern_us_only_if_they_name_ours() -> None:
    assert judged("REPLACE INTO heartbeat VALUES ('old account')", "percona").refused == ""
    assert judged("UPDATE `old`.`anything` SET a = 1", "percona").refused
    assert judged("TRUNCATE account", "percona").refused == ""


def test_transaction_control_is_recognised() -> None:
    assert judged("SAVEPOINT `s 1`") == Statement(StatementKind.SAVEPOINT, "s 1")
    assert judged("ROLLBACK TO `s 1`") == Statement(StatementKind.ROLLBACK_TO, "s 1")
    assert judged("ROLLBACK").kind is StatementKind.ROLLBACK
    assert judged("COMMIT").kind is StatementKind.COMMIT


class Pieces:
    """A socket that hands out bytes in pieces of given sizes, one after the other and again from the first."""

    def __init__(self, data: bytes, sizes: Sequence[int]):
        self._data = data
        self._sizes = cycle(sizes)
        self.asked = 0

    def recv_into(self, view: memoryview) -> int:
        self.asked += 1
        size = min(len(view), next(self._sizes))
        piece, self._data = self._data[:size], self._data[size:]
        view[: len(piece)] = piece
        return len(piece)


class TlsPieces(Pieces):
    """One over TLS, which gives no more than a record at a time."""

    def pending(self) -> int:
        return 0


def packet(payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "little") + b"\0" + payload


@given(
    st.lists(st.binary(max_size=300)),
    st.sampled_from([b"", b"\xff\xd4\x04#HY000gone", b"\xfe\0\0\2\0"]),
    st.lists(st.integers(1, 400), min_size=1),
    st.sampled_from([Pieces, TlsPieces]),
)
def test_events_survive_any_slicing(
    events: list[bytes], ending: bytes, sizes: list[int], kind: type[Pieces]
) -> None:
    data = b"".join(packet(b"\0" + event) for event in events)
    data += packet(ending) + packet(b"\0behind") if ending else b""
    buffer = PacketBuffer(kind(data, sizes))
    found, end = buffer.events()
    while end is None:
        try:
            buffer.receive_now()
        except EOFError:
            break
        more, end = buffer.events()
        found += more
    assert found == events
    assert end == (ending or None)


def test_a_plain_socket_is_not_asked_again_after_less_than_there_was_room_for() -> None:
    asked = {}
    for kind in (Pieces, TlsPieces):
        sock = kind(packet(b"\0" + b"x" * 300), [100])
        assert PacketBuffer(sock).receive_now()
        asked[kind] = sock.asked
    assert asked == {Pieces: 1, TlsPieces: 5}, "four pieces, and the end"


class Cut(TlsPieces):
    """One that is cut behind its bytes."""

    def recv_into(self, view: memoryview) -> int:
        size = super().recv_into(view)
        if not size:
            raise ConnectionResetError("reset by peer")
        return size


def test_what_came_before_a_cut_is_taken_before_the_cut_is_told() -> None:
    buffer = PacketBuffer(Cut(packet(b"\0one") + packet(b"\0two")[:-1], [3]))
    assert buffer.receive_now()
    assert buffer.events() == ([b"one"], None)
    for _ in range(2):
        with pytest.raises(ConnectionResetError):
            buffer.receive_now()


def test_a_packet_without_anything_is_no_event() -> None:
    buffer = PacketBuffer(Pieces(packet(b"\0one") + packet(b"") + packet(b"\0two"), [100]))
    buffer.receive_now()
    assert buffer.events() == ([b"one"], b"")


@pytest.mark.parametrize("more", [0, 5], ids=["an empty packet ends it", "a short packet ends it"])
def test_a_payload_of_sixteen_megabytes_is_joined(more: int) -> None:
    payload = b"\0" + b"y" * (0xFFFFFF + more - 1)
    data = packet(payload[:0xFFFFFF]) + packet(payload[0xFFFFFF:])
    buffer = PacketBuffer(Pieces(packet(b"\0first") + data + packet(b"\0last"), [1 << 20]))
    found: list[bytes] = []
    while len(found) < 3:
        buffer.receive_now()
        events, end = buffer.events()
        found += events
        assert end is None
    assert found == [b"first", payload[1:], b"last"]
    assert result_set.join_packets(data, 0) == (payload, len(data))
    assert result_set.join_packets(data[:-1], 0)[0] is None


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_result_rows_are_parsed_from_any_slicing(size: int) -> None:
    rows = [(b"1", None, b""), (b"2", b"v" * 251, b"w" * 70_000), (None, None, None)]

    def encoded(value: bytes | None) -> bytes:
        if value is None:
            return b"\xfb"
        if len(value) < 251:
            return bytes([len(value)]) + value
        width, head = (2, b"\xfc") if len(value) < 65536 else (3, b"\xfd")
        return head + len(value).to_bytes(width, "little") + value

    data = b"".join(packet(b"".join(map(encoded, row))) for row in rows) + packet(b"\xfe\0\0\2\0")
    parse = result_set._parser(3)
    columns: list[list[bytes | None]] = [[], [], []]
    adders = [column.append for column in columns]
    rest, state, given = b"", 0, 0
    while state == 0:
        at, state = parse(rest, adders)
        rest = rest[at:]
        if state == 0:
            rest, given = rest + data[given : given + size], given + size
    assert list(zip(*columns, strict=True)) == rows


@pytest.mark.parametrize(
    ("text", "lexer", "expected"),
    [
        ("/*!50000 TRUNCATE /* job */ TABLE t */", Lexer(), ["TRUNCATE", "TABLE", "t"]),
        ("/*!99999 TRUNCATE /* job */ TABLE t */ DO 1", Lexer(False, 90704), ["DO", "1"]),
        ("/*!50701 a */ b", Lexer(True, 101115), ["b"]),  # a version of MySQL's that MariaDB never had
        ("/*M!50701 a */ b", Lexer(True, 101115), ["a", "b"]),
        ("/*M!50701 a */ b", Lexer(False, 90704), ["b"]),
        ("/*!100100 a */ b", Lexer(False, 80045), ["b"]),
        ("TRUNCATE -- x\n TABLE --y\n `a``b`", Lexer(), ["TRUNCATE", "TABLE", "-", "-", "y", "`a``b`"]),
        ("a # b\nc --", Lexer(), ["a", "c"]),
        ("/*! a", Lexer(), ["a"]),
        ("SET x = 'it\\'s' , y", Lexer(), ["SET", "x", "=", "'it\\'s'", ",", "y"]),
        ("SET x = 'a\\', y", Lexer(backslash_escapes=False), ["SET", "x", "=", "'a\\'", ",", "y"]),
        ('"a\\"" b', Lexer(), ['"a\\""', "b"]),
        ('"a\\" b', Lexer(ansi_quotes=True), ['"a\\"', "b"]),
        ("größe€", Lexer(), ["größe€"]),
        ("a\xa0b --\n", Lexer(), ["a\xa0b"]),
        ("a\xa0b\xa0--\xa0c\n/*!\xa0d */", Lexer(blanks="\xa0"), ["a", "b", "d"]),
    ],
)
def test_words_are_those_that_the_server_took(text: str, lexer: Lexer, expected: list[str]) -> None:
    assert words(text, lexer) == expected


@pytest.mark.parametrize("text", ["TRUNCATE `t", "TRUNCATE 't", "TRUNCATE t 'x\\'", "TRUNCATE --\x7f x\n t"])
def test_what_cannot_have_run_as_it_is_read_is_refused_where_it_may_be_ours(text: str) -> None:
    """The server ran it, so it was read otherwise than the server reads it."""
    assert "certainty" in judged(text).refused
    assert judged(text, "percona").refused == ""
    assert "certainty" in judged(f"{text} old", "percona").refused


def test_a_name_that_is_no_text_of_its_client_is_refused() -> None:
    def found(text: str, database: str = "old") -> Statement:
        return judge(
            QueryText(database, text, readable=False),
            "old",
            lambda table: table if table.schema == "old" else None,
        )

    assert "certainty" in found("TRUNCATE gr\ufffd").refused
    assert found("ALTER TABLE x COMMENT 'gr\ufffd'").refused == ""
    assert found("TRUNCATE gr\ufffd", "percona").refused == ""


def test_where_the_server_wrote_names_in_its_own_character_set_they_are_read_in_it() -> None:
    def found(text: str, other: str) -> Statement:
        ours = TableId("old", "größe")
        return judge(
            QueryText("old", text, other=other), "old", lambda table: ours if table == ours else None
        )

    written = "DROP TABLE `{}` /* generated by server */"
    assert found(written.format("grÃ¶ÃŸe"), written.format("größe")).tables == (TableId("old", "größe"),)
    assert "UTF-8" in found("TRUNCATE grÃ¶ÃŸe", "TRUNCATE größe").refused
    assert found("TRUNCATE größe", "TRUNCATE grXe").kind is StatementKind.TRUNCATED


@pytest.mark.parametrize(
    ("updated", "ways", "refused"),
    [
        (frozenset({"percona"}), "a view", False),
        (frozenset({"percona", "old"}), "", True),
        (frozenset(), "", False),
        (None, "", False),
        (None, "a view", True),
    ],
)
def test_a_statement_elsewhere_is_ours_if_the_server_says_so_or_says_nothing_and_there_is_a_way(
    updated: frozenset[str] | None, ways: str, refused: bool
) -> None:
    query = QueryText("percona", "UPDATE heartbeat SET a = 1", updated=updated)
    found = judge(query, "old", lambda table: table if table.schema == "old" else None, ways=ways)
    assert bool(found.refused) == refused
