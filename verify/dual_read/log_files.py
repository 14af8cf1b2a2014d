"""The statements of captured query logs: the general log of MySQL and MariaDB, PostgreSQL's csvlog."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from migrator.errors import ConfigError

_MYSQL_LINE = re.compile(
    r"^(?:\d{4}-\d\d-\d\dT\S+\t|\d{6}\s+\d{1,2}:\d\d:\d\d\t|\t)?\s*(?P<session>\d+) "
    r"(?P<command>[A-Z][A-Za-z ]*?)(?:\t(?P<text>.*))?$",
    re.DOTALL,
)
_MYSQL_START = re.compile(r"^\S.*, Version: \S+ \(.*\)\. started with:\s*$")
"""The first line that a server writes; sessions are numbered anew behind it."""
_ON = re.compile(r"^\S* on (?P<database>.*?)(?: using .*)?$", re.DOTALL)
_USE = re.compile(r"^\s*use\s+(?P<quote>`?)(?P<database>.+?)(?P=quote)\s*;?\s*$", re.IGNORECASE)
_POSTGRES = re.compile(
    r"^(?:duration: [\d.]+ ms\s+)?(?:statement|execute [^:]*): (?P<text>.*)$", re.DOTALL | re.IGNORECASE
)
_DETAIL = re.compile(r"\$(\d+) = (NULL|'(?:[^']|'')*')")
_DATABASE, _SESSION, _VIRTUAL, _SEVERITY, _MESSAGE, _DETAILS, _QUERY = 2, 5, 9, 11, 13, 14, 19
"""Columns of csvlog, from 0 (PostgreSQL documentation, "Using CSV-Format Log Output")."""
_FAILURES = ("ERROR", "FATAL", "PANIC")

Event = Literal["statement", "refused", "closed"]
"""A statement; the session's last statement was refused (PostgreSQL only); the session has ended."""


class Logged(NamedTuple):
    """An entry of a log.

    Attributes:
        text: of the statement, as its client sent it.
        bound: values of ``$1``, ``$2``, ... as the log prints them.
        session: one client's connection, by a name of its own in the file.
        database: the session's database at that moment, or "" where the log doesn't say.
        transaction: equal for statements of one transaction of a session; "" where the log doesn't say.
        event: what the entry tells.
    """

    text: str
    bound: tuple[Any, ...] = ()
    session: str = ""
    database: str = ""
    transaction: str = ""
    event: Event = "statement"


def read_log(file: Path, form: str) -> Iterator[Logged]:
    """The statements of a log file, in order. Raises ``ConfigError`` where it is none of the format."""
    return (one for one in read_events(file, form, "replace") if one.event == "statement")


def read_events(file: Path, form: str, errors: str = "surrogateescape") -> Iterator[Logged]:
    """All entries of a log file, in order.

    Args:
        file: the log.
        form: one of ``FORMATS``.
        errors: what becomes of bytes that aren't UTF-8, as ``bytes.decode`` names it.

    Raises ``ConfigError`` for a file that can't be read.
    """
    try:
        with file.open(encoding="utf-8", errors=errors, newline="") as lines:
            yield from _READERS[form](lines)
    except (OSError, csv.Error) as error:
        raise ConfigError(
            f"the query log {file} can't be read",
            cause=str(error),
            remedy="give the file of general_log (MySQL, MariaDB) or of log_destination = csvlog (PostgreSQL)",
        ) from error


def _postgres(lines: Iterable[str]) -> Iterator[Logged]:
    csv.field_size_limit(1 << 24)
    for row in csv.reader(lines):
        if len(row) <= _DETAILS:
            continue
        database, session, message = row[_DATABASE], row[_SESSION], row[_MESSAGE]
        if row[_SEVERITY] in _FAILURES:
            if len(row) > _QUERY and row[_QUERY]:
                yield Logged(row[_QUERY], (), session, database, event="refused")
        elif found := _POSTGRES.match(message):
            values = {
                int(n): None if v == "NULL" else v[1:-1].replace("''", "'")
                for n, v in _DETAIL.findall(row[_DETAILS])
            }
            bound = tuple(values.get(i) for i in range(1, max(values, default=0) + 1))
            yield Logged(found["text"], bound, session, database, row[_VIRTUAL])
        elif message.startswith("disconnection: "):
            yield Logged("", (), session, database, event="closed")


def _mysql(lines: Iterable[str]) -> Iterator[Logged]:
    databases, current, starts = dict[str, str](), None, 0
    for line in lines:
        found = _MYSQL_LINE.match(line.rstrip("\r\n"))
        if found is None and not _MYSQL_START.match(line):
            current = None if current is None else (current[0], current[1] + line)
            continue
        if current is not None:
            yield _stated(*current, databases)
            current = None
        if found is None:
            yield from (Logged("", (), session, event="closed") for session in databases)
            databases, starts = {}, starts + 1
            continue
        session, command = f"{starts}/{found['session']}", found["command"]
        # The line goes on if the next one is no entry: its own end belongs to the text then.
        text = (found["text"] or "") + line[len(line.rstrip("\r\n")) :]
        if command in ("Query", "Execute"):
            current = (session, text)
        elif command in ("Connect", "Quit", "Reset Connection"):
            yield Logged("", (), session, event="closed")
            on = _ON.match(text.rstrip("\r\n"))
            if command != "Reset Connection":
                databases[session] = on["database"] if on and command == "Connect" else ""
        elif command == "Init DB":
            databases[session] = text.rstrip("\r\n")
    if current is not None:
        yield _stated(*current, databases)


def _stated(session: str, text: str, databases: dict[str, str]) -> Logged:
    """A statement without the line's end that the server has put behind it; ``USE`` changes the database."""
    whole = text.removesuffix("\n")
    if used := _USE.match(whole):
        databases[session] = used["database"].replace("``", "`")
    return Logged(whole, (), session, databases.setdefault(session, ""))


_READERS: Mapping[str, Callable[[Iterable[str]], Iterator[Logged]]] = {
    "mysql": _mysql,
    "postgresql": _postgres,
}
FORMATS = tuple(_READERS)
"""The general log of MySQL and MariaDB as a file, and PostgreSQL's csvlog."""
BACKSLASH_ESCAPES = frozenset({"mysql"})
"""Formats in whose texts a backslash begins an escape; in others it does so behind ``E`` only."""
