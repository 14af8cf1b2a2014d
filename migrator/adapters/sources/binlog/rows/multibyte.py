"""Text in the multi-byte national character sets (big5, gbk, sjis, ...), exactly as the server converts it.

Python's codecs of the same names differ from the server's in hundreds of characters, so the server is asked
for every code it knows. Codes that it stores without having a character for them are ``?`` in its own
answers, and here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

CHARSETS = ("big5", "cp932", "eucjpms", "euckr", "gb2312", "gb18030", "gbk", "sjis", "ujis")
_THREE_BYTES = ("eucjpms", "ujis")
_FOUR_BYTES = "gb18030"
_FOUR_BYTE_STEPS = (12_600, 1_260, 10, 1)
"""A four-byte code of gb18030 is a number: bytes from 81, 30, 81, 30 in a mixed radix of (126,) 10, 126, 10."""
_SUPPLEMENTARY = 0x90
"""First byte from which on the four-byte codes are the code points from U+10000 on, one after the other."""
_LAST_PLANE_ZERO = 0x84
_BATCH = 65_536

Decoder = Callable[[bytes], str]


def multibyte_decoder(connection: Any, charset: str) -> Decoder:
    """Asks the server for all characters of one of ``CHARSETS``: one query, two for the larger ones."""
    single = _ask(connection, charset, "n", 1)
    # MySQL's eucjpms takes any single byte for a character, and converts none of the upper half
    known = {code: text for code, text in single if code.isascii() or text not in ("", "?")}
    known |= _ask(connection, charset, "n", 2)
    if charset in _THREE_BYTES:
        known |= _ask(connection, charset, f"{0x8F << 16} + n", 3)
    if charset == _FOUR_BYTES:
        code = (
            "((129 + n DIV 12600) << 24) + ((48 + n DIV 1260 MOD 10) << 16) + ((129 + n DIV 10 MOD 126) << 8)"
        )
        known |= _ask(connection, charset, f"{code} + 48 + n MOD 10", 4)
    return decoder(known, charset == _FOUR_BYTES)


def _ask(connection: Any, charset: str, code: str, width: int) -> Iterable[tuple[bytes, str]]:
    """All well-formed codes of a width among those that ``code`` makes of the numbers below 65536."""
    digits = " UNION ALL ".join(f"SELECT {digit} AS n" for digit in range(16))
    wanted = f"n {'< 256' if width == 1 else '>= 32768' if width < 4 else '< 50400'}"
    with connection.cursor() as cursor:
        cursor.execute(
            f"WITH d AS ({digits}),"
            " numbers AS (SELECT a.n * 4096 + b.n * 256 + e.n * 16 + f.n AS n FROM d a, d b, d e, d f),"
            f" codes AS (SELECT {code} AS code FROM numbers WHERE {wanted})"
            f" SELECT code, CONVERT(CHAR(code USING {charset}) USING utf8mb4) FROM codes"
            f" WHERE LENGTH(CHAR(code USING {charset})) = {width:d} AND CHAR_LENGTH(CHAR(code USING {charset})) = 1"
        )
        return [(int(number).to_bytes(width, "big"), str(text)) for number, text in cursor.fetchall()]


def decoder(known: dict[bytes, str], linear: bool = False) -> Decoder:
    """The function from bytes to text. It raises ``ValueError`` for bytes that are no code.

    Args:
        known: every code with its character. No code begins with a shorter one.
        linear: whether four-byte codes beyond the known ones follow gb18030's rule.
    """
    plain = all(known.get(bytes([byte])) == chr(byte) for byte in range(128))
    widths = sorted({len(code) for code in known}, reverse=True)

    def text(raw: bytes) -> str:
        if plain and raw.isascii():
            return raw.decode("ascii")
        pieces, at, end = [], 0, len(raw)
        while at < end:
            for width in widths:
                piece = known.get(raw[at : at + width])
                if piece is not None:
                    at += width
                    break
            else:
                piece = _supplementary(raw[at : at + 4]) if linear else None
                if piece is None:
                    raise ValueError(f"byte {raw[at]:02x} at {at} begins no character")
                at += 4
            pieces.append(piece)
        return "".join(pieces)

    return text


def _supplementary(code: bytes) -> str | None:
    """A four-byte code of gb18030 outside the table; None when it is none."""
    if len(code) < 4 or not all(
        low <= byte for low, byte in zip((0x81, 0x30, 0x81, 0x30), code, strict=True)
    ):
        return None
    if code[0] <= _LAST_PLANE_ZERO or code[1] > 0x39 or code[3] > 0x39 or 0xFF in (code[0], code[2]):
        return None
    first, *others = code
    offsets = (
        first - _SUPPLEMENTARY,
        *(byte - low for byte, low in zip(others, (0x30, 0x81, 0x30), strict=True)),
    )
    point = 0x10000 + sum(offset * step for offset, step in zip(offsets, _FOUR_BYTE_STEPS, strict=True))
    return chr(point) if first >= _SUPPLEMENTARY and point <= 0x10FFFF else "?"
