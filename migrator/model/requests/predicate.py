"""The grammar of a dump request's predicate: comparisons of a row's own columns, and nothing that does something.

A request may come from whoever reaches ZooKeeper, and its predicate meets the source under the migration's
login. So it is read by a grammar that holds what rows are chosen by, and everything else is refused:
subqueries, functions that aren't listed (they may write, sleep, lock or read files), casts, operators that
somebody may have made, parameters, whole rows, other tables. Pure.

What servers read differently is left out, lest one sees what the grammar didn't: a backslash in a text escapes or
doesn't, by a setting; a comment begins at ``--`` or at ``-- ``, and ends at a carriage return or doesn't; a
blank or digit beyond ASCII is a letter to PostgreSQL.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from migrator.errors import RequestError
from migrator.model.table import TableSchema

MOST_CHARACTERS = 4_000
_DEEPEST = 30
_TOKEN = re.compile(
    r"""(?P<space>[ \t\n\r\f]+)
    |(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w$]))
    |(?P<text>'(?:[^'\\]|'')*')
    |(?P<quoted>"(?:[^"]|"")+"|`(?:[^`]|``)+`)
    |(?P<word>[^\W\d][\w$]*)
    |(?P<sign><>|!=|<=|>=|\|\||-(?!-)|[<>=(),+*/%.])""",
    re.VERBOSE,
)
_OF_TEXTS = (
    "char_length",
    "concat",
    "left",
    "length",
    "lower",
    "ltrim",
    "right",
    "rtrim",
    "substr",
    "substring",
    "trim",
    "upper",
)
_OF_NUMBERS = ("abs", "ceil", "ceiling", "floor", "mod", "round", "sign")
_OF_MOMENTS = ("date", "day", "hour", "minute", "month", "second", "year")
_FUNCTIONS = frozenset((*_OF_TEXTS, *_OF_NUMBERS, *_OF_MOMENTS, "coalesce", "greatest", "least", "nullif"))
"""Each looks at its arguments alone, is done at once, and makes nothing that is longer than they are together."""
_COMPARED = ("=", "<>", "!=", "<", "<=", ">", ">=")
_MOMENTS = ("date", "time", "timestamp", "interval")


class PredicateError(ValueError):
    """Says what of a predicate is no comparison of a row's columns."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str

    def word(self) -> str:
        """An unquoted word in small letters; else nothing."""
        return self.text.lower() if self.kind == "word" else ""


def grammatical(text: str, table: TableSchema, quote: str) -> None:
    """Checks a predicate for a table, as ``check_predicate`` does. Raises ``RequestError``."""
    try:
        check_predicate(text, table.names(), quote)
    except PredicateError as error:
        raise RequestError(
            f"the predicate can't be asked of {table.id}",
            where=f"--where {text[:200]!r}",
            cause=str(error),
            remedy="compare the table's own columns with values: AND, OR, NOT, IN, BETWEEN, LIKE, IS NULL;"
            " find what is more than that by a query of your own, and give its keys by --keys-file",
        ) from None


def check_predicate(text: str, columns: Collection[str], quote: str) -> None:
    """Raises ``PredicateError`` for what is no comparison of a row's columns.

    Args:
        text: of the predicate.
        columns: names of the table's columns.
        quote: what quotes a name on the source's server.
    """
    if len(text) > MOST_CHARACTERS:
        raise PredicateError(f"it has {len(text):,} characters, of which there may be {MOST_CHARACTERS:,}")
    _Reader(_tokens(text, quote), frozenset(columns), quote).all()


def _tokens(text: str, quote: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None or "\0" in found[0]:
            raise PredicateError(f"{text[at : at + 20]!r} is nothing that a predicate may hold")
        kind = found.lastgroup or ""
        if kind == "quoted" and found[0][0] != quote:
            raise PredicateError(f"{found[0]} is no name here: names are quoted by {quote}, texts by '")
        if kind != "space":
            tokens.append(_Token(kind, found[0]))
        at = found.end()
    return tokens


class _Reader:
    """Reads tokens by the grammar, from the weakest operator to the strongest."""

    def __init__(self, tokens: list[_Token], columns: frozenset[str], quote: str):
        self._tokens = tokens
        self._columns = columns
        self._small = frozenset(name.lower() for name in columns)
        self._quote = quote
        self._at = self._depth = 0

    def all(self) -> None:
        """The whole predicate."""
        self._either()
        if self._at < len(self._tokens):
            raise PredicateError(f"{self._tokens[self._at].text!r} has no place there")

    def _either(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise PredicateError(f"it is nested deeper than {_DEEPEST} times")
        self._both()
        while self._took("or"):
            self._both()
        self._depth -= 1

    def _both(self) -> None:
        self._one()
        while self._took("and"):
            self._one()

    def _one(self) -> None:
        while self._took("not"):
            pass
        self._value()
        while self._compared():
            pass

    def _compared(self) -> bool:
        """Reads a comparison if one follows, and tells whether one did."""
        if self._signs(*_COMPARED):
            self._value()
            return True
        if self._took("is"):
            self._took("not")
            self._need("null", "true", "false")
            return True
        negated = self._took("not")
        if self._took("in"):
            self._listed()
        elif self._took("between"):
            self._value()
            self._need("and")
            self._value()
        elif self._took("like"):
            self._value()
        elif negated:
            raise PredicateError("after NOT there must be IN, BETWEEN or LIKE")
        else:
            return False
        return True

    def _listed(self) -> None:
        self._sign("(")
        self._value()
        while self._signs(","):
            self._value()
        self._sign(")")

    def _value(self) -> None:
        while self._signs("+", "-"):
            pass
        self._single()
        while self._signs("+", "-", "*", "/", "%", "||"):
            while self._signs("+", "-"):
                pass
            self._single()

    def _single(self) -> None:
        token = self._next()
        word = token.word()
        if token.kind in ("number", "text") or word in ("null", "true", "false"):
            return
        if token.text == "(":
            self._either()
            self._sign(")")
        elif word in _MOMENTS and self._is("text"):
            self._next()
        elif word in _FUNCTIONS and self._signs("("):
            self._arguments()
        elif token.kind == "quoted":
            name = token.text[1:-1].replace(self._quote * 2, self._quote)
            self._column(name if self._quote == '"' else name.lower(), token)
        elif token.kind == "word":
            self._column(word, token)
        else:
            raise PredicateError(f"{token.text!r} has no place there")

    def _arguments(self) -> None:
        if self._signs(")"):
            return
        self._either()
        while self._signs(","):
            self._either()
        self._sign(")")

    def _column(self, name: str, token: _Token) -> None:
        if self._is("sign", "(") or self._is("sign", "."):
            raise PredicateError(
                f"{token.text}{self._tokens[self._at].text} may not be used: there are the table's columns,"
                f" and the functions {', '.join(sorted(_FUNCTIONS))}"
            )
        if name not in (self._columns if token.kind == "quoted" and self._quote == '"' else self._small):
            raise PredicateError(f"{token.text} is no column of the table")

    # -- tokens -------------------------------------------------------------------------------------------------

    def _next(self) -> _Token:
        if self._at >= len(self._tokens):
            raise PredicateError("it ends too early")
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, kind: str, text: str = "") -> bool:
        if self._at >= len(self._tokens):
            return False
        token = self._tokens[self._at]
        return token.kind == kind and text in ("", token.text)

    def _took(self, word: str) -> bool:
        took = self._at < len(self._tokens) and self._tokens[self._at].word() == word
        self._at += took
        return took

    def _need(self, *words: str) -> None:
        if not any(self._took(word) for word in words):
            raise PredicateError(f"{' or '.join(words).upper()} is missing")

    def _signs(self, *texts: str) -> bool:
        took = any(self._is("sign", text) for text in texts)
        self._at += took
        return took

    def _sign(self, text: str) -> None:
        if not self._signs(text):
            raise PredicateError(f"{text!r} is missing")
