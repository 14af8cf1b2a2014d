"""CHECK conditions of one column, as servers print them, as rules for its values. Pure.

Comparisons with numbers and lists of texts, tied by AND, are read; what is anything else gives no rule, and is tried
on a sample only. A rule may suspect too much: the target decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from decimal import Context, Decimal

from migrator.model.fit import Limit, Rule

_WORD = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \d+(?:\.\d+)?(?:e[+-]?\d+)? | [^\W\d][\w$]*
    | <= | >= | <> | != | :: | \S""",
    re.VERBOSE | re.IGNORECASE,
)
_CAST = re.compile(r"^(character|bit|double|timestamp|time)$")
_OF_CASTS = frozenset({"varying", "precision", "without", "with", "time", "zone"})
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_FARTHEST = Decimal(10**40)
"""Bounds are printed without exponents: MySQL compares with those as floating-point numbers, and rounds."""
_NEAR = Decimal("0.000001")
"""Distance to a bound that a condition leaves out by itself: the value at the bound is suspected, too."""
_EXACTLY = Context(prec=60)
_LENGTHS = {
    "char_length": Limit.CHARACTERS,
    "character_length": Limit.CHARACTERS,
    "length": Limit.CHARACTERS,
    "octet_length": Limit.OCTETS,
}
"""MySQL's ``length`` counts bytes, PostgreSQL's doesn't; MySQL quotes names by backticks."""


class _Other(Exception):
    """The condition is of another kind."""


def rules_of(condition: str, column: str) -> tuple[Rule, ...]:
    """Returns the rules that a condition sets for a column's values; none where it is of another kind.

    Args:
        condition: as PostgreSQL, MySQL or MariaDB prints it, with or without ``CHECK``.
        column: its name; ``VALUE`` in a domain's condition.
    """
    try:
        tokens = _plain(_WORD.findall(condition.replace("\\'", "'")))
        if tokens and tokens[0].upper() == "CHECK":
            tokens = tokens[1 : _closing(tokens, 1) + 1]  # what follows is NOT VALID and the like
        return tuple(_all(_bare(tokens), column))
    except (_Other, IndexError):
        return ()


def _plain(tokens: Sequence[str]) -> list[str]:
    """The tokens without casts, and without names of character sets before texts."""
    found: list[str] = []
    at = 0
    while at < len(tokens):
        word = tokens[at]
        if word == "::":
            at = _behind_cast(tokens, at + 1)
            continue
        if not (word.startswith("_") and tokens[at + 1 : at + 2] and tokens[at + 1][0] == "'"):
            found.append(word)
        at += 1
    return found


def _behind_cast(tokens: Sequence[str], at: int) -> int:
    several = _CAST.match(tokens[at]) is not None
    at += 1
    while several and at < len(tokens) and tokens[at] in _OF_CASTS:
        at += 1
    if tokens[at : at + 1] == ["."]:
        at += 2
    for opening, closing in (("(", ")"), ("[", "]")):
        if tokens[at : at + 1] == [opening]:
            at = tokens.index(closing, at) + 1
    return at


def _bare(tokens: Sequence[str]) -> list[str]:
    """The tokens, freed of parentheses around all of them, or around one that no function has before it."""
    found = list(tokens)
    at = 0
    while at + 2 < len(found):
        alone = found[at] == "(" and found[at + 2] == ")"
        if alone and not (
            at and re.match(r"\w", found[at - 1]) and found[at - 1].upper() not in ("AND", "CHECK")
        ):
            found[at : at + 3] = [found[at + 1]]
            at = max(0, at - 1)
        else:
            at += 1
    while found and found[0] == "(" and _closing(found, 0) == len(found) - 1:
        found = found[1:-1]
    return found


def _closing(tokens: Sequence[str], at: int) -> int:
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place] in "([") - (tokens[place] in ")]")
        if not depth:
            return place
    raise _Other


def _all(tokens: Sequence[str], column: str) -> list[Rule]:
    """The rules of parts that AND ties together; that of BETWEEN isn't one of those."""
    parts: list[list[str]] = [[]]
    depth, between = 0, False
    for word in tokens:
        depth += (word in "([") - (word in ")]")
        upper = word.upper()
        if not depth and upper in ("OR", "NOT", "XOR", "IS", "CASE"):
            raise _Other
        if not depth and upper == "AND" and not between:
            parts.append([])
            continue
        between = (between or (upper == "BETWEEN" and not depth)) and not (upper == "AND" and not depth)
        parts[-1].append(word)
    if len(parts) == 1:
        return [_one(parts[0], column)]
    found: list[Rule] = []
    for part in parts:
        with suppress(_Other, IndexError):  # each of them holds, whatever the others say
            found += _all(_bare(part), column)
    return found


def _one(tokens: list[str], column: str) -> Rule:
    limit = _LENGTHS.get(tokens[0].lower())
    if limit is None:
        return _compared(tokens, column)
    if tokens[1] != "(" or tokens[3] != ")" or not _is(tokens[2], column):
        raise _Other
    rule = _compared(["VALUE", *tokens[4:]], "VALUE")
    most = rule.bounds[1] if rule.limit is Limit.RANGE else None
    if not isinstance(most, Decimal) or not 0 <= most < _FARTHEST:
        raise _Other
    bytes_too = tokens[0].lower() == "length" and tokens[2].startswith("`")
    return Rule(Limit.OCTETS if bytes_too else limit, (int(most),))


def _compared(tokens: list[str], column: str) -> Rule:
    if not _is(tokens[0], column):
        number, at = _number(tokens, 0)
        if tokens[at] in _FLIPPED and _is(tokens[at + 1], column) and len(tokens) == at + 2:
            return _range(_FLIPPED[tokens[at]], number)
        raise _Other
    word = tokens[1].upper()
    if word == "BETWEEN":
        least, at = _number(tokens, 2)
        if tokens[at].upper() != "AND":
            raise _Other
        most, at = _number(tokens, at + 1)
        return _ended(tokens, at, Rule(Limit.RANGE, (least, most)))
    if word == "IN":
        return Rule(Limit.MEMBERS, _texts(tokens[2:], "(", ")"))
    if word == "=" and tokens[2].upper() == "ANY":
        inner = _bare(tokens[3:])
        return Rule(Limit.MEMBERS, _texts(inner[1:], "[", "]")) if inner[0].upper() == "ARRAY" else _other()
    if word == "=" and tokens[2].startswith("'"):
        return _ended(tokens, 3, Rule(Limit.MEMBERS, (_text(tokens[2]),)))
    number, at = _number(tokens, 2)
    return _ended(tokens, at, _range(word, number))


def _range(sign: str, number: Decimal) -> Rule:
    bounds = {
        ">": (_EXACTLY.add(number, _NEAR), _FARTHEST),
        ">=": (number, _FARTHEST),
        "<": (_FARTHEST.copy_negate(), _EXACTLY.subtract(number, _NEAR)),
        "<=": (_FARTHEST.copy_negate(), number),
        "=": (number, number),
    }
    return Rule(Limit.RANGE, bounds[sign]) if sign in bounds else _other()


def _number(tokens: Sequence[str], at: int) -> tuple[Decimal, int]:
    sign = -1 if tokens[at] == "-" else 1
    at += sign < 0
    word = tokens[at].strip("'")
    if not re.fullmatch(r"-?\d+(\.\d+)?(e[+-]?\d+)?", word, re.IGNORECASE):
        raise _Other
    return sign * Decimal(word), at + 1


def _texts(tokens: Sequence[str], opening: str, closing: str) -> tuple[str, ...]:
    if tokens[0] != opening or tokens[-1] != closing or set(tokens[2:-1:2]) - {","}:
        raise _Other
    return tuple(_text(word) for word in tokens[1:-1:2])


def _text(word: str) -> str:
    if not word.startswith("'"):
        raise _Other
    return word[1:-1].replace("''", "'")


def _is(word: str, column: str) -> bool:
    quoted = word[0] in '`"'
    name = word[1:-1].replace(word[0] * 2, word[0]) if quoted else word
    return name == column


def _ended(tokens: Sequence[str], at: int, rule: Rule) -> Rule:
    return rule if len(tokens) == at else _other()


def _other() -> Rule:
    raise _Other
