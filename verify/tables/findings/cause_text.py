"""The likely cause of unequal text, binary or JSON, from canonical texts; empty where there is no name for it."""

from __future__ import annotations

import json
import unicodedata
from decimal import Decimal, InvalidOperation

_LATIN_1 = tuple(chr(byte) for byte in range(256))
_WINDOWS = tuple(
    bytes((byte,)).decode("cp1252", "replace").replace("\ufffd", chr(byte)) for byte in range(256)
)
"""Latin-1 and Windows-1252, by byte: UTF-8 is most often taken for one of them. Servers call the second Latin-1 too,
without its five gaps."""
_TRUE, _FALSE = ("1", "t", "true", "y", "yes"), ("0", "f", "false", "n", "no")


def text_cause(mapped: str, target: str) -> str:
    """Names the likely cause of a difference between two texts."""
    if not target:
        return "empty text in the target"
    if mapped.strip() == target.strip():
        return "whitespace at an end"
    if "".join(mapped.split()) == "".join(target.split()):
        return "whitespace"
    if mapped.casefold() == target.casefold():
        return "upper and lower case"
    if "".join(mapped.split()).casefold() == "".join(target.split()).casefold():
        return "upper and lower case, and whitespace"
    if unicodedata.normalize("NFC", mapped) == unicodedata.normalize("NFC", target):
        return "Unicode form of the same characters"
    if _misread(mapped, target):
        return "encoding: UTF-8 read as Latin-1 in the target"
    if _misread(target, mapped):
        return "encoding: UTF-8 read as Latin-1 in the mapped row"
    if _written_otherwise(mapped, target):
        return "type: the same value, written as another type"
    if mapped.startswith(target):
        return f"cut off after {len(target)} characters"
    if "\ufffd" in target or ("?" in target and "?" not in mapped):
        return "characters lost in an encoding"
    return ""


def binary_cause(mapped: str, target: str) -> str:
    """Names the likely cause of a difference between two byte strings in hexadecimal."""
    if not target:
        return "no bytes in the target"
    if _stripped(mapped) == _stripped(target):
        return "zero bytes at the end"
    if mapped.startswith(target):
        return f"cut off after {len(target) // 2} bytes"
    if mapped.encode().hex() == target:
        return "type: hexadecimal text in place of the bytes"
    return ""


def json_cause(mapped: str, target: str) -> str:
    """Names the likely cause of a difference between two JSON documents."""
    a, b = _parsed(mapped), _parsed(target)
    if _as_words(a) == _as_words(b):
        return "type: a number, truth value or null became text, or the reverse"
    if isinstance(b, str) and _parsed(b) == a:
        return "type: the document became one text"
    return ""


def _misread(right: str, wrong: str) -> bool:
    """Returns whether ``wrong`` comes of reading the UTF-8 of ``right`` byte by byte, once or more often."""
    misread = {right}
    for _ in range(3):
        misread = {read for text in misread for read in _byte_by_byte(text)}
        if wrong in misread:
            return True
    return False


def _byte_by_byte(text: str) -> set[str]:
    bytes_of = text.encode("utf-8", "surrogatepass")
    return {"".join(map(table.__getitem__, bytes_of)) for table in (_LATIN_1, _WINDOWS)} - {text}


def _written_otherwise(mapped: str, target: str) -> bool:
    """Returns whether two texts write the same number, truth value or midnight differently."""
    a, b = mapped.strip().casefold(), target.strip().casefold()
    if any({a, b} <= set(words) for words in (_TRUE, _FALSE)):
        return True
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) == len("2000-01-31") and longer[:10] == shorter and shorter[4:5] == "-":
        return longer[10:].strip(" tz0:.+") == ""
    try:
        return Decimal(a) == Decimal(b)
    except InvalidOperation:
        return False


def _stripped(digits: str) -> str:
    while digits.endswith("00") and len(digits) % 2 == 0:
        digits = digits[:-2]
    return digits


def _as_words(value: object) -> object:
    if isinstance(value, dict):
        return {name: _as_words(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_as_words(element) for element in value]
    return {True: "true", False: "false", None: "null"}.get(value, value)  # type: ignore[call-overload]


def _parsed(text: str) -> object:
    """A document with its numbers as text, or the text itself if it is none."""
    try:
        parsed: object = json.loads(text, parse_float=str, parse_int=str)
    except (ValueError, RecursionError):
        return text
    return parsed
