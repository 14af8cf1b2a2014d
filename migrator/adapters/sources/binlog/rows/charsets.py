"""Character sets: from a collation id in the log to text, exactly as the server converts it for a client.

Python's codecs are not the server's: its latin1 is cp1252 with five more characters, others differ too. So
the table of every one-byte set comes from the server itself, one query a set, and so do the multi-byte
national sets that the database uses (``multibyte``). Unicode sets are decoded by Python.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from migrator.adapters.sources.binlog.rows import multibyte
from migrator.errors import SourceError

UNICODE_CODECS = {
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
BINARY = "binary"


@dataclass(frozen=True, slots=True)
class Charsets:
    """Character sets of a server.

    Attributes:
        names: collation id -> name of its character set.
        tables: name of a one-byte set -> its 256 characters.
        multibyte: name of a multi-byte national set -> its decoder, for those that the database used at the start.
    """

    names: dict[int, str]
    tables: dict[str, str]
    multibyte: dict[str, multibyte.Decoder] = field(default_factory=dict)

    def name(self, collation: int) -> str:
        """The character set of a collation. Raises ``SourceError`` for an unknown id."""
        if collation not in self.names:
            raise SourceError(
                "the log uses a collation that the server doesn't list",
                where=f"collation id {collation}",
                remedy="start the migration again, so that it reads the server's collations anew",
            )
        return self.names[collation]

    def decoder(self, charset: str) -> Callable[[bytes], str]:
        """Bytes of that character set to text. Raises ``SourceError`` if there is no exact way."""
        if charset == "ucs2":
            return _ucs2
        if charset in UNICODE_CODECS:
            decode, codec = codecs.decode, UNICODE_CODECS[charset]
            return lambda raw: decode(raw, codec)
        if charset in self.multibyte:
            return self.multibyte[charset]
        table = self.tables.get(charset)
        if table is None and charset in multibyte.CHARSETS:
            raise SourceError(
                "text of a character set that the database didn't use before has come",
                where=f"character set {charset}",
                remedy="start the migration again: it then reads the characters of this set",
            )
        if table is None:
            raise SourceError(
                "text of this character set can't be read from the log",
                where=f"character set {charset}",
                remedy="convert the column to utf8mb4 first, or leave the table out",
            )
        charmap = codecs.charmap_decode
        return lambda raw: charmap(raw, "strict", table)[0]


def _ucs2(raw: bytes) -> str:
    """The server takes surrogates in UCS-2 for characters, and prints them as bytes that are no UTF-8."""
    text = codecs.decode(raw, "utf-16-be")
    if 2 * len(text) != len(raw):
        raise ValueError("a text in ucs2 holds surrogates, which are no characters")
    return text


def is_supported(charset: str, one_byte: Collection[str]) -> bool:
    """Returns whether columns of this character set can be decoded."""
    return charset == BINARY or charset in (*UNICODE_CODECS, *multibyte.CHARSETS, *one_byte)


def one_byte_charsets(connection: Any) -> frozenset[str]:
    """Names of the server's one-byte sets."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS WHERE MAXLEN = 1")
        return frozenset(str(name) for (name,) in cursor.fetchall()) - {BINARY}


def load_charsets(connection: Any, collations: str) -> Charsets:
    """Asks the server for its collations, the table of every one-byte set, and the multi-byte sets in use.

    ``collations`` is the view of information_schema with ``ID`` and ``CHARACTER_SET_NAME`` of every collation.
    """
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT ID, CHARACTER_SET_NAME FROM information_schema.{collations}")
        names = {int(number): str(name) for number, name in cursor.fetchall() if number is not None}
        tables = {}
        for name in sorted(one_byte_charsets(connection)):
            if not re.fullmatch(r"\w+", name):  # an introducer can't be quoted
                continue
            cursor.execute(f"SELECT CONVERT(_{name} X'{bytes(range(256)).hex()}' USING utf8mb4)")
            tables[name] = str(cursor.fetchone()[0])
        cursor.execute(
            "SELECT DISTINCT CHARACTER_SET_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
        )
        used = {str(name) for (name,) in cursor.fetchall()} & set(multibyte.CHARSETS)
    return Charsets(
        names,
        {name: table for name, table in tables.items() if len(table) == 256},
        {name: multibyte.multibyte_decoder(connection, name) for name in sorted(used)},
    )
