"""The words of a statement as the server's own lexer takes them.

Sources: MySQL's ``sql/sql_lex.cc`` and MariaDB's, "Comment Syntax" of both manuals. What matters here: an
    executable comment (``/*! ... */``) is code only for servers from its version on; a plain comment may
    stand inside of one, also where it is skipped; a comment needn't be closed at the end of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SPACE = " \t\n\v\f\r"
_NAME = re.compile(r"[0-9A-Za-z_$@\x80-\U0010ffff]+")
_VERSION = re.compile(r"\d{5,6}")
_NOT_OF_MARIADB = range(50700, 100000)
"""Versions of MySQL that MariaDB takes for features it hasn't got: it skips such comments."""


@dataclass(frozen=True, slots=True)
class Lexer:
    """The ways in which the server that ran a statement reads it.

    Attributes:
        mariadb: whether it is a MariaDB.
        version: of the server, such as 80045 or 101115; for executable comments.
        backslash_escapes: whether a backslash escapes in strings (no NO_BACKSLASH_ESCAPES).
        ansi_quotes: whether double quotes stand around names.
        blanks: further characters that are space in the client's character set.
    """

    mariadb: bool = True
    version: int = 101100
    backslash_escapes: bool = True
    ansi_quotes: bool = False
    blanks: str = ""

    def runs(self, marked: bool, version: int) -> bool:
        """Returns whether an executable comment is code. ``marked``: it begins with ``/*M!``."""
        if marked and not self.mariadb:
            return False
        if version > self.version:
            return False
        return not self.mariadb or marked or version not in _NOT_OF_MARIADB


class Unreadable(ValueError):
    """The text isn't what the server can have run: it was read otherwise than the server reads it."""


def words(text: str, lexer: Lexer) -> list[str]:
    """The words, quoted ones in their quotes, comments left out and those that the server ran opened.

    Raises ``Unreadable`` for a string or a quoted name without an end.
    """
    found: list[str] = []
    at, in_code = 0, False
    while at < len(text):
        two = text[at : at + 2]
        if text[at] in _SPACE or text[at] == "\0" or text[at] in lexer.blanks:
            at += 1
        elif text[at] == "#" or (two == "--" and _ends_dashes(text[at + 2 : at + 3], lexer)):
            at = _behind(text, "\n", at)
        elif two == "/*":
            at, opened = _comment(text, at, lexer)
            in_code = in_code or opened
        elif two == "*/" and in_code:
            at, in_code = at + 2, False
        elif text[at] in "'\"`":
            end = _string_end(text, at, lexer)
            found.append(text[at:end])
            at = end
        elif name := _NAME.match(text, at):
            end = next((at + n for n, char in enumerate(name[0]) if char in lexer.blanks), name.end())
            found.append(text[at:end])
            at = end
        else:
            found.append(text[at])
            at += 1
    return found


def unquoted(word: str, ansi_quotes: bool = True) -> str:
    """A name without its quotes; a string in double quotes stays as it is where those aren't for names."""
    quotes = '`"' if ansi_quotes else "`"
    if len(word) > 1 and word[0] in quotes + "'" and word[-1] == word[0]:
        return word[1:-1].replace(word[0] * 2, word[0])
    return word


def _ends_dashes(char: str, lexer: Lexer) -> bool:
    """Returns whether dashes before it begin a comment: before space and control characters; their sets differ."""
    if char > "~" and char not in lexer.blanks:
        raise Unreadable(f"whether there is a comment behind -- depends on {char!r}")
    return char <= " " or char in lexer.blanks


def _behind(text: str, end: str, at: int) -> int:
    """The place behind the next ``end``; the end of the text where there is none."""
    place = text.find(end, at)
    return len(text) if place < 0 else place + len(end)


def _comment(text: str, at: int, lexer: Lexer) -> tuple[int, bool]:
    """Returns where reading goes on at a comment, and whether that is inside of it."""
    marked = text.startswith("/*M!", at)
    if not marked and not text.startswith("/*!", at):
        return _behind(text, "*/", at + 2), False
    begin = at + (4 if marked else 3)
    version = _VERSION.match(text, begin)
    if lexer.runs(marked, int(version[0]) if version else 0):
        return (version.end() if version else begin), True
    if marked and not lexer.mariadb:
        return _behind(text, "*/", at + 2), False  # to MySQL a comment like any other
    return _skipped(text, begin), False


def _skipped(text: str, at: int) -> int:
    """The end of an executable comment that isn't run; plain comments may lie inside."""
    while at < len(text):
        if text.startswith("*/", at):
            return at + 2
        at = _behind(text, "*/", at + 2) if text.startswith("/*", at) else at + 1
    return at


def _string_end(text: str, at: int, lexer: Lexer) -> int:
    quote = text[at]
    escapes = lexer.backslash_escapes and (quote == "'" or (quote == '"' and not lexer.ansi_quotes))
    place = at + 1
    while place < len(text):
        if text[place] == "\\" and escapes:
            place += 2
        elif text[place] == quote:
            if text[place + 1 : place + 2] != quote:
                return place + 1
            place += 2
        else:
            place += 1
    raise Unreadable(f"there is no end to {text[at : at + 40]!r}")
