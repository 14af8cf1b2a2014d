"""Captured query logs as sources of parameters: finds the logged SELECTs of each pair, and their values.

The statements of a log are never run. A pair's ``log`` is a template; a logged statement that equals it word
by word, apart from case, white space and one literal for each ``:name``, gives the pair one set of
parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from verify.dual_read.log_files import BACKSLASH_ESCAPES, Logged
from verify.dual_read.queries import QueryPair

_TOKEN = re.compile(
    r"""(?P<space>\s+|/\*.*?\*/|--[^\n]*|\#[^\n]*)
      | (?P<text>[eE]?'(?:[^'\\]|''|\\.)*')
      | (?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)
      | (?P<number>(?<![\w$.])\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|(?<![\w.])\.\d+)
      | (?P<parameter>(?<!:):[A-Za-z_]\w*)
      | (?P<place>\$\d+)
      | (?P<word>[\w$]+)
      | (?P<other>::|<=|>=|<>|!=|\|\||.)""",
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


def tokens(statement: str) -> list[_Token]:
    """The words of a statement without white space and comments; words outside quotes in lower case."""
    found = []
    for match in _TOKEN.finditer(statement.strip().rstrip(";")):
        kind = match.lastgroup or "other"
        if kind != "space":
            found.append(_Token(kind, match[0].lower() if kind == "word" else match[0]))
    return found


class Template:
    """A pair's ``log``: matches statements and takes the values of its parameters from them."""

    def __init__(self, text: str, form: str):
        self._wanted = tokens(text)
        self._escapes = form in BACKSLASH_ESCAPES

    def match(self, logged: Logged) -> dict[str, Any] | None:
        """Returns the parameters of a statement that fits the template; None if it doesn't fit."""
        found: dict[str, Any] = {}
        statement, at = tokens(logged.text), 0
        for token in self._wanted:
            if token.kind != "parameter":
                if at >= len(statement) or statement[at] != token:
                    return None
                at += 1
                continue
            taken = self._literal(statement, at, logged.bound)
            if taken is None:
                return None
            value, at = taken
            name = token.text[1:]
            if name in found and found[name] != value:
                return None
            found[name] = value
        return found if at == len(statement) else None

    def _literal(self, statement: Sequence[_Token], at: int, bound: Sequence[Any]) -> tuple[Any, int] | None:
        """One literal, and the place after it."""
        sign = ""
        if at < len(statement) and statement[at].text in ("-", "+"):
            sign, at = statement[at].text, at + 1
        if at >= len(statement):
            return None
        token = statement[at]
        if token.kind == "number":
            number = Decimal(sign + token.text)
            return (int(number) if token.text.isdigit() else number), at + 1
        if sign:
            return None
        if token.kind == "text":
            return self._unquoted(token.text), at + 1
        if token.kind == "place" and int(token.text[1:]) <= len(bound):
            return bound[int(token.text[1:]) - 1], at + 1
        words = {"null": None, "true": True, "false": False}
        return (words[token.text], at + 1) if token.kind == "word" and token.text in words else None

    def _unquoted(self, text: str) -> str:
        escaped = self._escapes or text[0] in "eE"
        inner = text[text.index("'") + 1 : -1].replace("''", "'")
        if not escaped:
            return inner
        special = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}
        return re.sub(r"\\(.)", lambda found: special.get(found[1], found[1]), inner, flags=re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogMatches:
    """Parameters from a log for each pair that has a template, and how much of the log no pair describes."""

    parameters: dict[str, list[dict[str, Any]]]
    statements: int
    unmatched: int


def match_log(statements: Iterable[Logged], pairs: Sequence[QueryPair], form: str, limit: int) -> LogMatches:
    """Goes through a log once; at most ``limit`` different sets of parameters per pair are kept, the first ones."""
    templates = {pair.name: Template(pair.log, form) for pair in pairs if pair.log}
    found: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in templates}
    seen = unmatched = 0
    for logged in statements:
        if not tokens(logged.text[:20])[:1] or tokens(logged.text[:20])[0].text not in ("select", "with"):
            continue
        seen += 1
        unmatched += not _first(templates, found, logged, limit)
    return LogMatches({name: list(sets.values()) for name, sets in found.items()}, seen, unmatched)


def _first(
    templates: dict[str, Template], found: dict[str, dict[str, dict[str, Any]]], logged: Logged, limit: int
) -> bool:
    for name, template in templates.items():
        parameters = template.match(logged)
        if parameters is not None:
            if len(found[name]) < limit:
                found[name].setdefault(
                    repr(sorted(parameters.items(), key=lambda parameter: parameter[0])), parameters
                )
            return True
    return False
