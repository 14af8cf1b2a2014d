"""CHECK constraints as far as they can be read: whether a row surely breaks one, and what they compare a column with.

A made row that a constraint surely refuses needs no server to be thrown away. What can't be read (functions,
arithmetic, operators of extensions) is *unknown*, and the server decides. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache

from scenarios.rehearsal.constraints.answers import (
    PATTERNS,
    UNKNOWN,
    Value,
    compared,
    either,
    length_of,
    matched,
    member,
    negated,
    truth,
)
from scenarios.rehearsal.constraints.patterns import of_like
from scenarios.rehearsal.tables import Table

Row = Mapping[str, object]

_Reads = Callable[[Row], Value]

_TOKEN = re.compile(
    r"\s*(?:(?P<text>(?:\b[eE]|\b_\w+\s*)?'(?:[^'\\]|''|\\.)*')|(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<quoted>\"(?:[^\"]|\"\")+\"|`(?:[^`]|``)+`)|(?P<name>[A-Za-z_][\w$.]*)"
    r"|(?P<sign>::|<=>|<=|>=|<>|!=|!~\*|!~|~\*|~~|\|\||[-+*/%(),<>=~!\[\]]))"
)
_CAST = re.compile(
    r"\w+(?:\s+(?:precision|varying|with(?:out)? time zone))?(?:\(\d+(?:,\s*\d+)?\))?(?:\[\])?"
)
_LENGTHS = ("length", "char_length", "character_length")
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>", "!=": "!="}


class _Unreadable(Exception):
    pass


@dataclass
class Condition:
    """One constraint.

    Attributes:
        columns: names of the columns that it reads.
        least, most: numbers or days that it compares a column with by ``>=`` or ``>``, ``<=`` or ``<``.
        patterns: regular expressions that a column is to match.
    """

    columns: set[str] = field(default_factory=set)
    least: dict[str, list[str]] = field(default_factory=dict)
    most: dict[str, list[str]] = field(default_factory=dict)
    patterns: dict[str, list[str]] = field(default_factory=dict)
    reads: _Reads = lambda _: UNKNOWN

    def refuses(self, row: Row) -> bool:
        """Tells whether the row surely breaks it."""
        return truth(self.reads(row)) is False


@cache
def read(check: str, columns: tuple[str, ...]) -> Condition:
    """Reads a constraint as its server prints it. ``columns``: names of the table's columns.

    One that can't be read refuses nothing.
    """
    text = check.strip()
    if text.upper().startswith("CHECK"):
        text = re.sub(r"\)\s*NOT VALID\s*$", ")", text[len("CHECK") :], flags=re.IGNORECASE)
    parser = _Parser(text, columns)
    try:
        parser.found.reads = parser.whole()
    except _Unreadable:
        parser.found.reads = lambda _: UNKNOWN
    return parser.found


def of_table(table: Table) -> list[Condition]:
    """The constraints of a table."""
    columns = tuple(one.name for one in table.columns)
    return [read(check, columns) for check in table.checks]


def of_column(table: Table, name: str) -> list[Condition]:
    """The constraints that read this column and no other."""
    return [one for one in of_table(table) if one.columns == {name}]


def fits(table: Table, name: str, value: object) -> bool:
    """Tells whether no constraint of this column alone surely refuses a value."""
    return not any(one.refuses({name: value}) for one in of_column(table, name))


class _Parser:
    def __init__(self, text: str, columns: Collection[str]):
        self._text, self._place = text, 0
        self._columns = {one.lower(): one for one in columns}
        self.found = Condition()

    def whole(self) -> _Reads:
        reads = self._any()
        if self._text[self._place :].strip():
            raise _Unreadable
        return reads

    def _peek(self) -> str:
        found = _TOKEN.match(self._text, self._place)
        return found[0].strip().lower() if found else ""

    def _take(self, *wanted: str) -> bool:
        if self._peek() not in wanted:
            return False
        self._next()
        return True

    def _next(self) -> re.Match[str]:
        found = _TOKEN.match(self._text, self._place)
        if found is None:
            raise _Unreadable
        self._place = found.end()
        return found

    def _need(self, sign: str) -> None:
        if not self._take(sign):
            raise _Unreadable

    def _any(self) -> _Reads:
        parts = [self._all()]
        while self._take("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else lambda row: either([one(row) for one in parts], True)

    def _all(self) -> _Reads:
        parts = [self._not()]
        while self._take("and"):
            parts.append(self._not())
        return parts[0] if len(parts) == 1 else lambda row: either([one(row) for one in parts], False)

    def _not(self) -> _Reads:
        if self._take("not", "!"):
            inner = self._not()
            return lambda row: negated(truth(inner(row)))
        return self._comparison()

    def _comparison(self) -> _Reads:
        left, name = self._operand()
        if self._take("is"):
            return self._is(left)
        denied = self._take("not")
        reads = self._further(left, name)
        return (lambda row: negated(truth(reads(row)))) if denied else reads

    def _further(self, left: _Reads, name: str) -> _Reads:
        sign = self._peek()
        if self._take("between"):
            least, _ = self._operand()
            self._need("and")
            most, _ = self._operand()
            self._note(name, ">=", least)
            self._note(name, "<=", most)
            return lambda row: either(
                [compared(left(row), ">=", least(row)), compared(left(row), "<=", most(row))], False
            )
        if self._take("in"):
            members = self._list("(", ")")
            return lambda row: member(left(row), [one(row) for one in members])
        if self._take(*PATTERNS):
            pattern, _ = self._operand()
            if not sign.startswith("!"):
                self._note_pattern(name, pattern)
            return lambda row: matched(left(row), sign, pattern(row))
        if self._take("like", "~~"):
            pattern, _ = self._operand()
            text = pattern({})
            if not isinstance(text, str):
                raise _Unreadable
            whole = of_like(text)
            self._note_pattern(name, lambda _: whole)
            return lambda row: matched(left(row), "~*", whole)
        if self._take("<", ">", "<=", ">=", "=", "<>", "!="):
            if self._take("any"):
                return self._one_of(left, sign)
            right, other = self._operand()
            self._note(name, sign, right)
            self._note(other, _TURNED[sign], left)
            return lambda row: compared(left(row), sign, right(row))
        return left

    def _one_of(self, left: _Reads, sign: str) -> _Reads:
        self._need("(")
        right, _ = self._operand()
        self._need(")")
        if sign != "=":
            raise _Unreadable

        def reads(row: Row) -> Value:
            members = right(row)
            return member(left(row), members) if isinstance(members, tuple) else UNKNOWN

        return reads

    def _is(self, left: _Reads) -> _Reads:
        denied = self._take("not")
        word = self._peek()
        if not self._take("null", "true", "false"):
            raise _Unreadable

        def reads(row: Row) -> Value:
            value = left(row)
            if value is UNKNOWN:
                return UNKNOWN
            found = value is None if word == "null" else truth(value) is (word == "true")
            return found is not denied

        return reads

    def _operand(self) -> tuple[_Reads, str]:
        """An operand, and the column that it is, or "" ."""
        reads, name = self._primary()
        while self._take("::"):
            self._skip_type()
        if self._peek() in ("+", "-", "*", "/", "%", "||", "<=>", "collate"):
            raise _Unreadable
        return reads, name

    def _skip_type(self) -> None:
        found = _CAST.match(self._text, self._place)
        if found is None:
            raise _Unreadable
        self._place = found.end()

    def _primary(self) -> tuple[_Reads, str]:
        token = self._next()
        sign = token["sign"]
        if token["text"]:
            text = _text_of(token["text"])
            return lambda _: text, ""
        if token["number"]:
            number = Decimal(token["number"])
            return lambda _: number, ""
        if sign == "-":
            inner, _ = self._primary()
            return lambda row: -value if isinstance(value := inner(row), Decimal) else UNKNOWN, ""
        if sign == "(":
            reads, name = self._inside()
            self._need(")")
            return reads, name
        if token["quoted"]:
            return self._column(token["quoted"][1:-1])
        if token["name"]:
            return self._named(token["name"])
        raise _Unreadable

    def _inside(self) -> tuple[_Reads, str]:
        """The inside of parentheses; a column that stands there alone keeps its name."""
        place = self._place
        try:
            reads, name = self._operand()
            if name and self._peek() == ")":
                return reads, name
        except _Unreadable:
            pass
        self._place = place
        return self._any(), ""

    def _named(self, word: str) -> tuple[_Reads, str]:
        lower = word.lower()
        if lower == "array" and self._peek() == "[":
            members = self._list("[", "]")
            return lambda row: tuple(one(row) for one in members), ""
        if self._peek() == "(":
            return self._call(lower), ""
        if lower in ("true", "false", "null"):
            value = None if lower == "null" else lower == "true"
            return lambda _: value, ""
        return self._column(word)

    def _call(self, function: str) -> _Reads:
        if function == "regexp_like":
            self._need("(")
            left, name = self._operand()
            self._need(",")
            pattern, _ = self._operand()
            self._need(")")
            self._note_pattern(name, pattern)
            return lambda row: matched(left(row), "regexp", pattern(row))
        inner = self._list("(", ")")
        if function == "cast" or not inner:
            raise _Unreadable
        if function in _LENGTHS and len(inner) == 1:
            return lambda row: length_of(inner[0](row))
        return lambda _: UNKNOWN

    def _list(self, begin: str, end: str) -> Sequence[_Reads]:
        self._need(begin)
        found = list[_Reads]()
        while not self._take(end):
            found.append(self._any())
            if not self._take(",") and self._peek() != end:
                raise _Unreadable
        return found

    def _column(self, word: str) -> tuple[_Reads, str]:
        name = self._columns.get(word.lower(), "")
        if not name:
            raise _Unreadable
        self.found.columns.add(name)
        return lambda row: _of_row(row, name), name

    def _note(self, name: str, sign: str, other: _Reads) -> None:
        value = other({})
        if not name or not isinstance(value, str | Decimal):
            return
        for signs, bounds in (((">", ">="), self.found.least), (("<", "<="), self.found.most)):
            if sign in signs:
                bounds.setdefault(name, []).append(str(value))

    def _note_pattern(self, name: str, pattern: _Reads) -> None:
        value = pattern({})
        if name and isinstance(value, str):
            self.found.patterns.setdefault(name, []).append(value)


def _of_row(row: Row, name: str) -> Value:
    if name not in row:
        return UNKNOWN
    value = row[name]
    return value if value is None or isinstance(value, str | bool) else UNKNOWN


def _text_of(token: str) -> str:
    inside = token[token.index("'") + 1 : -1]
    return re.sub(r"''|\\(.)", lambda found: "'" if found[0] == "''" else found[0], inside)
