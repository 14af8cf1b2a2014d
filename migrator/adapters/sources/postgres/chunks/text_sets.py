"""Regular expressions of the letters that character sets of MySQL and MariaDB lack. Pure."""

from __future__ import annotations

import functools
from collections.abc import Iterator

_CODECS = {
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
}
_PLANE = 0x10000


def missing_letters(charset: str, short: str, long: str) -> str:
    """A regular expression of a letter that the character set lacks, or may lack.

    Of those with several bytes a letter all beyond ASCII may be lacking.

    Args:
        charset: MySQL's name.
        short, long: how a letter is written by its number, below and from 65,536 on.
    """
    if charset in ("utf8", "utf8mb3", "ucs2"):
        return f"[{long.format(_PLANE)}-{long.format(0x10FFFF)}]"
    ranges = "".join(
        short.format(first) + ("" if first == last else f"-{short.format(last)}")
        for first, last in _ranges(charset)
    )
    return f"[^{ranges}]"


@functools.lru_cache
def _ranges(charset: str) -> tuple[tuple[int, int], ...]:
    return tuple(_joined(sorted({*range(1, 128), *_letters(_CODECS.get(charset, ""))})))


def _letters(codec: str) -> Iterator[int]:
    for byte in range(128, 256) if codec else ():
        try:
            yield ord(bytes([byte]).decode(codec))
        except UnicodeDecodeError:
            continue


def _joined(numbers: list[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
