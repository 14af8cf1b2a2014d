"""The statements of a SQL file: a structure dump of pg_dump or mysqldump, or statements that somebody wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from migrator.errors import ConfigError

_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^'\\]|''|\\.)*'|\"(?:[^\"]|\"\")*\"|`(?:[^`]|``)*`"
    r"|\$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$|;|\n|[A-Za-z_][\w$]*|[^\S\n]+|.",
    re.DOTALL,
)
_COMMAND = re.compile(r"[^\S\n]*(\\[^\n]*|DELIMITER[^\S\n]+\S+[^\n]*)", re.IGNORECASE)
"""Words that the programs run themselves, at a statement's beginning."""
_COMMENT = re.compile(r"--|#|/\*(?!M?!)")
_TO_THE_LINES_END = re.compile(r"[^\n]*")
_PLAIN_TEXT = re.compile(r"'(?:[^']|'')*'", re.DOTALL)
"""A text of PostgreSQL: a backslash is a backslash, but behind ``E``."""
_BOUND = re.compile(r"\$\d+")
"""The place of a parameter of PostgreSQL."""
_COPY = re.compile(r"COPY\s.*\sFROM\s+stdin\b", re.IGNORECASE | re.DOTALL)
_SILENT = ("\\restrict", "\\unrestrict")
_LEFT_OUT = (
    (r"\\(c|connect)\b", "changes of the database"),
    (r"(CREATE|ALTER|DROP)\s+(DATABASE|SCHEMA\s+IF\s+NOT\s+EXISTS\s+`)", "databases"),
    (r"USE\s", "changes of the database"),
    (
        r"(GRANT|REVOKE|ALTER\s+DEFAULT\s+PRIVILEGES)\s",
        "rights: the logins get what `migrator grants` prints",
    ),
    (r"(CREATE|ALTER|DROP)\s+(ROLE|USER)\s", "logins"),
    (r"(CREATE|ALTER|DROP)\s+(PUBLICATION|SUBSCRIPTION)\s", "publications and subscriptions"),
    (r"SET\s+(SESSION\s+AUTHORIZATION|ROLE)\s", "changes of the login"),
    (
        r"SET\s+@@GLOBAL|SET\s+@@SESSION\.SQL_LOG_BIN|SET\s+@MYSQLDUMP_TEMP_LOG_BIN",
        "the dump's own log settings",
    ),
)
_OWNER = re.compile(r"\bOWNER\s+TO\s+(\"(?:[^\"]|\"\")+\"|\w+)\s*$", re.IGNORECASE)
_AUTHORIZATION = re.compile(
    r"\bCREATE\s+SCHEMA\b.*\bAUTHORIZATION\s+(\"(?:[^\"]|\"\")+\"|\w+)", re.IGNORECASE
)
_HINT = re.compile(r"/\*M?!\d*(?P<inside>.*?)\*/", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of a file.

    Attributes:
        line: where it begins, from 1.
        text: without its end.
        rows: what follows a ``COPY ... FROM stdin``; None for any other statement.
    """

    line: int
    text: str
    rows: str | None = None


@dataclass(frozen=True, slots=True)
class Script:
    """A file's statements in order; ``left_out``: what was there beside them, by kind, with how often."""

    statements: tuple[Statement, ...]
    left_out: tuple[tuple[str, int], ...]

    def owners(self) -> list[str]:
        """Names of the roles that get something of it, as identifiers."""
        found = (
            one
            for statement in self.statements
            for pattern in (_OWNER, _AUTHORIZATION)
            for one in pattern.findall(statement.text)
        )
        named = (name[1:-1].replace('""', '"') if name.startswith('"') else name.lower() for name in found)
        return sorted(
            {name for name in named if name not in ("current_user", "session_user", "current_role")}
        )


def script(text: str, kind: str, file: str) -> Script:
    """Reads a file for a server of that kind.

    Raises ``ConfigError`` for what only another program could run, naming line and text.
    """
    kept, left = [], dict[str, int]()
    for one in _statements(text, kind, file):
        why = next(
            (why for pattern, why in _LEFT_OUT if re.match(pattern, bare(one.text), re.IGNORECASE)), ""
        )
        if why:
            left[why] = left.get(why, 0) + 1
        elif bare(one.text):
            kept.append(one)
    if not any(re.match(r"CREATE\s", bare(one.text), re.IGNORECASE) for one in kept):
        raise ConfigError(
            "the file makes no table",
            where=file,
            cause=f"{len(kept)} statement(s), none of them is a CREATE",
            remedy="give the whole structure: `pg_dump -s` or `mysqldump --no-data --routines` writes it",
        )
    return Script(tuple(kept), tuple(left.items()))


def split(text: str, kind: str, where: str) -> list[str]:
    """The statements of a text that a client sent at once, for a server of that kind.

    Raises ``ConfigError`` naming ``where`` for a text that isn't whole.
    """
    return [one.text for one in _statements(text, kind, where) if bare(one.text)]


def tokens(text: str, kind: str) -> Iterator[str]:
    """The pieces that a statement consists of, in order: texts, names, comments, ``$1``, words, single characters."""
    place, before = 0, list[str]()
    while place < len(text):
        bound = _BOUND.match(text, place) if kind == "postgresql" else None
        token = bound[0] if bound else _token(text, place, before, kind == "postgresql")
        before = [token]
        place += len(token)
        yield token


def bare(text: str) -> str:
    """A statement without comments; what a MySQL-like server runs of them is a part of it."""
    found = _HINT.sub(lambda hint: hint["inside"], text)
    return re.sub(r"\A(\s*(--[^\n]*(\n|\Z)|/\*.*?\*/))*\s*", "", found, flags=re.DOTALL).strip()


def _statements(text: str, kind: str, file: str) -> Iterator[Statement]:
    """Cuts a text at the ends of its statements, outside of texts, names, comments and bodies of functions."""
    postgres = kind == "postgresql"
    place, line, begun, end = 0, 1, 0, ";"
    pieces: list[str] = []
    while place < len(text):
        if not begun and (found := _COMMAND.match(text, place)):
            word = found[1].strip()
            if word.upper().startswith("DELIMITER"):
                end = word.split()[1]
            elif re.match(_LEFT_OUT[0][0], word):
                yield Statement(line, word)
            elif not word.startswith(_SILENT) and postgres:
                raise _unreadable(file, line, word, "it is a command of psql, not SQL")
            place = found.end()
            continue
        if begun and end != ";" and text.startswith(end, place):
            yield Statement(begun, "".join(pieces).strip())
            pieces, begun, place = [], 0, place + len(end)
            continue
        token = _token(text, place, pieces, postgres)
        if token in ("'", '"', "`") or (token == "/" and text.startswith("/*", place)):
            said = text[place : place + 60].split("\n")[0]
            raise _unreadable(file, line, said, "what begins here has no end")
        place += len(token)
        if token == ";" and end == ";" and not _in_body(pieces, postgres):
            statement, rows = "".join(pieces).strip(), None
            if _COPY.match(bare(statement)):
                rows, place = _copied(text, place, file, begun)
            if begun:
                yield Statement(begun, statement, rows)
            pieces, begun, line = [], 0, text.count("\n", 0, place) + 1
            continue
        said_something = token.strip() and not _COMMENT.match(token)
        if said_something or begun:
            begun = begun or line
            pieces.append(token)
        line += token.count("\n")
    if begun:
        yield Statement(begun, "".join(pieces).strip())


def _token(text: str, place: int, pieces: Sequence[str], postgres: bool) -> str:
    if postgres:
        if text.startswith(("#", "`"), place):
            return text[place]
        if text.startswith("'", place) and not (pieces and pieces[-1].lower() == "e"):
            plain = _PLAIN_TEXT.match(text, place)
            return plain[0] if plain else "'"
    elif text.startswith("$", place):
        return "$"
    elif text.startswith('"', place):
        found = re.compile(r'"(?:[^"\\]|""|\\.)*"', re.DOTALL).match(text, place)
        return found[0] if found else '"'
    elif text.startswith("#", place):
        found = _TO_THE_LINES_END.match(text, place)
        assert found is not None
        return found[0]
    found = _TOKEN.match(text, place)
    assert found is not None  # its last branch takes anything
    return found[0]


def _in_body(pieces: Sequence[str], postgres: bool) -> bool:
    """Tells whether a semicolon stands in the body of a function of SQL's own form (``BEGIN ATOMIC ... END``)."""
    if not postgres:
        return False
    words = [piece.upper() for piece in pieces if piece.isidentifier()]
    if "ATOMIC" not in words:
        return False
    inside = words[words.index("ATOMIC") :]
    return inside.count("END") <= inside.count("CASE")


def _copied(text: str, place: int, file: str, line: int) -> tuple[str, int]:
    found = re.compile(r"[^\S\n]*\n(?P<rows>(?:.*\n)??)\\\.(?:\n|\Z)", re.DOTALL).match(text, place)
    if found is None:
        raise _unreadable(file, line, "COPY ... FROM stdin", "the line \\. that ends its rows is missing")
    return found["rows"], found.end()


def _unreadable(file: str, line: int, said: str, why: str) -> ConfigError:
    return ConfigError(
        "the SQL file can't be read",
        where=f"{file}, line {line}: {said}",
        cause=why,
        remedy="give a dump as plain SQL (`pg_dump -s`, `mysqldump --no-data`), or take the line out",
    )
