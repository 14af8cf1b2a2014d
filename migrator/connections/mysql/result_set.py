"""Result sets read in bulk: the text protocol's rows straight from received bytes into columns.

PyMySQL makes an object of every packet and of every value; a generated loop over whole buffers is several times as
fast and leaves values as the server's bytes, which Arrow takes as they are.

Format: MySQL client protocol, "Text Resultset Row".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import pymysql
from pymysql.connections import FieldDescriptorPacket
from pymysql.constants.COMMAND import COM_QUERY
from pymysql.cursors import Cursor

from migrator.connections.mysql.packet_buffer import BufferedConnection, PacketBuffer

Columns = list[list[bytes | None]]
Signature = tuple[tuple[Any, ...], ...]
_Parse = Callable[[bytes, Sequence[Callable[[bytes | None], None]]], tuple[int, int]]

LARGEST_PACKET = 0xFFFFFF
_MORE, _END = 0, 1
_HEADER = b"\xfe\xff\xff\0"
"""The header of a row joined from several packets: any size but theirs."""
_CHANGE_NO_VALUE = {1292, 3170}
"""Warnings that a text in an operator's condition was taken for a number, and that a plan took too much memory."""


class ResultSet:
    """Columns of one result.

    Attributes:
        columns: one list of values a column, as the server's bytes.
        signature: type, length, flags, charset and decimals of the columns, to notice a changed table.
    """

    def __init__(self, columns: Columns, signature: Signature):
        self.columns = columns
        self.signature = signature


def read_columns(connection: BufferedConnection, sql: str) -> ResultSet:
    """Runs a SELECT and reads its whole result. Raises PyMySQL's errors."""
    signature = begin(connection, sql)
    columns: Columns = [[] for _ in signature]
    for part in _parts(connection, len(signature), None):
        columns = part
    return ResultSet(columns, signature)


def read_parts(connection: BufferedConnection, sql: str, most_rows: int) -> Iterator[Columns]:
    """The same in parts of about so many rows. To be read to its end before the next statement."""
    yield from _parts(connection, len(begin(connection, sql)), most_rows)


def begin(connection: BufferedConnection, sql: str) -> Signature:
    """Runs a SELECT and reads its head. Raises PyMySQL's errors."""
    connection._execute_command(COM_QUERY, sql)
    count = connection._read_packet().read_length_encoded_integer()
    fields = [connection._read_packet(FieldDescriptorPacket) for _ in range(count)]
    connection._read_packet()  # EOF between columns and rows
    return tuple((f.type_code, f.length, f.flags, f.charsetnr, f.scale) for f in fields)


def _parts(connection: BufferedConnection, count: int, most_rows: int | None) -> Iterator[Columns]:
    columns: Columns = [[] for _ in range(count)]
    parse, buffer = _parser(count), connection.buffer
    data = buffer.drain()
    while True:
        at, state = parse(data, [column.append for column in columns])
        data = data[at:]
        if state == _END:
            heed(connection, _check_end(connection, data))
            yield columns
            return
        if most_rows is not None and len(columns[0]) >= most_rows:
            yield columns
            columns = [[] for _ in range(count)]
        data += buffer.receive(_missing(data))


def _missing(data: bytes) -> int:
    """Returns how many bytes are missing at least from the packet at the start of ``data`` (a large one is joined
    once)."""
    if len(data) < 4:
        return 1
    size = int.from_bytes(data[:3], "little")
    at = 4 + size
    while size == LARGEST_PACKET and len(data) >= at + 4:
        size = int.from_bytes(data[at : at + 3], "little")
        at += 4 + size
    return max(1, at - len(data))


def _check_end(connection: BufferedConnection, data: bytes) -> int:
    """The packet after the rows, which ``data`` begins with; the number of warnings in it."""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:3], "little"):
        data += connection.buffer.receive(1)
    return check_end(data, 0)


def is_end(data: bytearray, at: int) -> bool:
    """Tells whether the complete packet at ``at`` is no row, but what follows the rows."""
    size = data[at] | data[at + 1] << 8 | data[at + 2] << 16
    return size > 0 and (data[at + 4] == 0xFF or (data[at + 4] == 0xFE and size < 9))


def check_end(data: bytes | bytearray, at: int) -> int:
    """The packet after the rows: EOF with its number of warnings, or an error that ended the SELECT half-way."""
    if data[at + 4] == 0xFF:
        size = int.from_bytes(data[at : at + 3], "little")
        pymysql.err.raise_mysql_exception(bytes(data[at + 4 : at + 4 + size]))
    return int.from_bytes(data[at + 5 : at + 7], "little")


def heed(connection: BufferedConnection, warnings: int) -> None:
    """Checks the warnings after a SELECT, which may mean that a value is empty or NULL for being too large to print.

    Raises PyMySQL's ``DataError`` for the first one that isn't known to change no value.
    """
    if not warnings:
        return
    with connection.cursor(Cursor) as cursor:
        cursor.execute("SHOW WARNINGS")
        found = [(int(code), str(message)) for _, code, message in cursor.fetchall()]
    serious = [warning for warning in found if warning[0] not in _CHANGE_NO_VALUE]
    if not serious and len(found) < warnings:
        serious = [(0, f"the server gave {warnings} warnings and kept {len(found)} of them")]
    for code, message in serious[:1]:
        raise pymysql.err.DataError(code, message)


def joined_row(source: PacketBuffer, data: bytes, count: int) -> tuple[list[bytes | None], bytes]:
    """A row of several packets that ``data`` begins with, received to its end; and the bytes after it."""
    row, at = join_packets(data, 0)
    while row is None:
        data += source.receive(_missing(data))
        row, at = join_packets(data, 0)
    columns: Columns = [[] for _ in range(count)]
    _parser(count)(_HEADER + row, [column.append for column in columns])
    return [column[0] for column in columns], data[at:]


def join_packets(data: bytes, at: int) -> tuple[bytes | None, int]:
    """A payload of 16 MiB or more, joined from its packets, and the place after it; None when it isn't complete."""
    pieces = []
    while len(data) - at >= 4:
        size = int.from_bytes(data[at : at + 3], "little")
        if len(data) - at - 4 < size:
            return None, at
        pieces.append(data[at + 4 : at + 4 + size])
        at += 4 + size
        if size < LARGEST_PACKET:
            return b"".join(pieces), at
    return None, at


def long_value(data: bytes, at: int) -> tuple[bytes, int]:
    """A value of 251 bytes or more: its length takes 2, 3 or 8 bytes after the byte at ``at - 1``."""
    width = {252: 2, 253: 3, 254: 8}[data[at - 1]]
    stop = at + width + int.from_bytes(data[at : at + width], "little")
    return data[at + width : stop], stop


@lru_cache(maxsize=256)
def _parser(count: int) -> _Parse:
    """The function ``parse(data, adders) -> (place, state)`` for rows of ``count`` columns."""
    source = [
        "def parse(data, adders):",
        f" {''.join(f'add{i}, ' for i in range(count))} = adders",
        " at, have = 0, len(data)",
        " while have - at >= 5:",
        "  size = data[at] | data[at + 1] << 8 | data[at + 2] << 16",
        f"  if size == {LARGEST_PACKET}:",
        "   row, after = join(data, at)",
        "   if row is None:",
        "    break",
        "   parse(header + row, adders)",
        "   at = after",
        "   continue",
        "  if have - at - 4 < size:",
        "   break",
        "  length = data[at + 4]",
        "  if length == 255 or length == 254 and size < 9:",
        f"   return at, {_END}",
        "  at += 4",
    ]
    for i in range(count):
        source += [
            "  length = data[at]",
            "  at += 1",
            "  if length < 251:",
            "   stop = at + length",
            f"   add{i}(data[at:stop])",
            "   at = stop",
            "  elif length == 251:",
            f"   add{i}(None)",
            "  else:",
            "   value, at = long(data, at)",
            f"   add{i}(value)",
        ]
    source.append(f" return at, {_MORE}")
    names: dict[str, Any] = {"join": join_packets, "long": long_value, "header": _HEADER}
    exec(compile("\n".join(source), "<row parser>", "exec"), names)
    parse: _Parse = names["parse"]
    return parse
