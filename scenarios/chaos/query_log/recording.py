"""A captured query log as transactions that clients can do again. Pure but for reading the file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from migrator.config.engines import ENGINES
from migrator.errors import ConfigError
from migrator.schema import sql_text
from scenarios.chaos.query_log.schedule import Recorded, Step
from verify.dual_read.log_files import BACKSLASH_ESCAPES, Logged, read_events

_WORDS = re.compile(r"(?:/\*.*?\*/|(?:--|\#)[^\n]*|\s|\()*(\w+)(?:\s+(\w+))?(?:\s+(\w+))?", re.DOTALL)
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE", "MERGE", "CALL", "DO"})
_INSIDE = frozenset({"SAVEPOINT", "RELEASE", "ROLLBACK"})
_BEGINNINGS = ("", "TRANSACTION", "WORK", "ISOLATION", "READ", "DEFERRABLE")
_UNFOLDED = frozenset({"PREPARE", "EXECUTE", "DEALLOCATE"})
"""Statements that the general log has once more, with values in place, as a command of its own."""
_WRITING = re.compile(r"\b(INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\b", re.IGNORECASE)
_COMMITS_FIRST = frozenset(
    {"CREATE", "ALTER", "DROP", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "LOCK", "UNLOCK"}
)
"""First words that commit an open transaction of MySQL (manual: "Statements That Cause an Implicit Commit")."""
_SILENT = frozenset({"SELECT", "SHOW", "EXPLAIN", "DESCRIBE", "DESC", "USE", "FETCH", "DECLARE", "CLOSE", "VALUES",
                     "TABLE", "DISCARD", "RESET", "ANALYZE", "VACUUM", "CHECKPOINT", "LISTEN", "UNLISTEN", "NOTIFY",
                     "HELP", "KILL", "FLUSH"})  # fmt: skip
"""First words of statements that write no row of a table; they are left out without a word."""
_OWN_SETTINGS = re.compile(
    r"(GLOBAL|PERSIST|PERSIST_ONLY|PASSWORD|ROLE|DEFAULT|RESOURCE|NAMES|CHARACTER|CHARSET|STATEMENT|CONSTRAINTS"
    r"|SESSION\s+(AUTHORIZATION|CHARACTERISTICS)|.*\bsql_log_bin\b|.*@@GLOBAL\b|.*@@PERSIST)",
    re.IGNORECASE | re.DOTALL,
)
"""Words behind SET: what belongs to a server or a login, or how a client's own driver talks."""
_AUTOCOMMIT = re.compile(
    r"SET\s+(?:@@)?(?:SESSION\.?\s*|LOCAL\.?\s*)?AUTOCOMMIT\s*:?=\s*(?P<on>\w+)\s*;?\s*$", re.IGNORECASE
)
_NAMED = re.compile(r"SET\s+(?:SESSION\s+|LOCAL\s+)?(?P<name>[\w.@\"`]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Recording:
    """A log's transactions, and what was left out of it: kinds in words, with how many statements."""

    transactions: tuple[Recorded, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Client:
    """A session while its log is read.

    Attributes:
        autocommit, explicit: whether each statement commits by itself; whether a transaction was begun by name.
        begins, last: places of the open transaction's first and last statement.
        steps: of the open transaction.
        fresh: how many steps the session's last statement has added.
        aborted: whether PostgreSQL refuses all that is left of the open transaction.
        settings: what was set for the session, by name.
        virtual: which transaction the last statement was part of, where the log says so.
    """

    autocommit: bool = True
    explicit: bool = False
    begins: int | None = None
    last: int = 0
    steps: list[Step] = field(default_factory=list)
    fresh: int = 0
    aborted: bool = False
    settings: dict[str, Step] = field(default_factory=dict)
    virtual: str = ""

    @property
    def open(self) -> bool:
        """Tells whether statements wait for a COMMIT."""
        return self.explicit or not self.autocommit


def read(file: Path, engine: str, database: str) -> Recording:
    """Reads the log of a server of that engine; statements of other databases than this one are left out.

    Raises ``ConfigError`` for a file that can't be read, or has no transaction of this database that writes.
    """
    reader = _Reader(engine, database)
    for logged in read_events(file, ENGINES[engine].query_log):
        reader.add(logged)
    found = reader.end()
    if not found.transactions:
        seen = "; ".join(f"{number} {what}" for what, number in found.left_out.items())
        raise ConfigError(
            "the query log has no transaction that can be done again",
            where=f"{file}, database {database}",
            cause=seen or "it has no statement",
            remedy="give a log of the database that the project's [source] names, of a time in which it was written:"
            " general_log of MySQL and MariaDB, csvlog with log_statement = 'all' of PostgreSQL",
        )
    return found


def recorded(entries: Iterable[Logged], engine: str, database: str) -> Recording:
    """The transactions of a log's entries."""
    reader = _Reader(engine, database)
    for one in entries:
        reader.add(one)
    return reader.end()


class _Reader:
    """Puts the statements of each session together to transactions."""

    def __init__(self, engine: str, database: str):
        self._engine, self._database = engine, database
        self._escapes = ENGINES[engine].query_log in BACKSLASH_ESCAPES
        self._clients: dict[str, _Client] = {}
        self._found: list[Recorded] = []
        self._left_out = Counter[str]()
        self._place = 0

    def add(self, logged: Logged) -> None:
        """Takes the next entry of the log."""
        client = self._clients.setdefault(logged.session, _Client())
        if logged.event == "closed":
            self._end(logged.session, client, undone=client.open)
            del self._clients[logged.session]
        elif logged.event == "refused":
            self._refused(client)
        elif logged.database not in ("", self._database):
            self._left_out["statement(s) in other databases"] += _first(logged.text)[0] not in _SILENT
        else:
            self._place += 1
            client.fresh = 0
            self._stated(logged, client)

    def end(self) -> Recording:
        """Everything that was read; transactions that the log doesn't end are left out."""
        for session, client in self._clients.items():
            if client.steps and client.open:
                self._left_out["transaction(s) that the log doesn't end"] += 1
            else:
                self._end(session, client)
        return Recording(
            tuple(self._found), {what: number for what, number in self._left_out.items() if number}
        )

    def _stated(self, logged: Logged, client: _Client) -> None:
        first, second, third = _first(logged.text)
        if first in ("BEGIN", "START") and second in _BEGINNINGS:
            self._end(logged.session, client)  # what is open is committed by MySQL
            client.explicit, client.begins = True, self._place
        elif first in ("COMMIT", "END", "ROLLBACK", "ABORT") and "TO" not in (second, third):
            if second == "PREPARED":
                return
            self._end(logged.session, client, undone=first in ("ROLLBACK", "ABORT"))
            client.explicit = "CHAIN" in (second, third) and "NO" not in (second, third)
        elif first == "XA" or (first == "PREPARE" and second == "TRANSACTION"):
            self._two_phases(logged.session, client, second)
        elif first == "SET":
            self._set(logged, client)
        else:
            self._statement(logged, client, first)

    def _two_phases(self, session: str, client: _Client, word: str) -> None:
        """Leaves out a transaction that is prepared: what became of it may stand in another session's log."""
        if word in ("START", "BEGIN"):
            self._end(session, client)
            client.explicit = True
        elif word != "END":
            self._left_out["transaction(s) prepared for two phases"] += client.explicit
            client.steps, client.begins, client.explicit, client.aborted = [], None, False, False

    def _statement(self, logged: Logged, client: _Client, first: str) -> None:
        if self._escapes and first in _COMMITS_FIRST:
            self._end(logged.session, client)
        steps = self._steps(logged, first, client.open)
        if not steps:
            return
        virtual = logged.transaction or str(self._place)
        if not client.open and client.virtual != virtual:
            self._end(logged.session, client)
        if client.begins is None:
            client.begins = self._place
        client.virtual, client.last, client.fresh = virtual, self._place, len(steps)
        client.aborted = client.aborted and first != "ROLLBACK"
        client.steps += steps

    def _steps(self, logged: Logged, first: str, open_: bool) -> list[Step]:
        writes = first in _WRITES or (first == "WITH" and _WRITING.search(logged.text) is not None)
        if not writes and not (open_ and first in _INSIDE):
            silent = _SILENT | _INSIDE | {"WITH"} | (_UNFOLDED if self._escapes else frozenset())
            if first not in silent:
                self._left_out[f"{first or 'empty'} statement(s)"] += 1
            return []
        try:
            if not self._escapes:
                logged.text.encode()
            found = sql_text.split(logged.text, self._engine, "the log")
        except UnicodeEncodeError:
            self._left_out["statement(s) with bytes that aren't UTF-8"] += 1
        except ConfigError:
            self._left_out["statement(s) that the log has cut"] += 1
        else:
            return [_step(one, logged, self._engine) for one in found]
        return []

    def _set(self, logged: Logged, client: _Client) -> None:
        text = logged.text.strip()
        if found := _AUTOCOMMIT.match(text):
            on = found["on"].upper() in ("1", "ON", "TRUE", "DEFAULT")
            if on:
                self._end(logged.session, client)
            client.autocommit = on
            return
        rest = re.sub(r"\ASET\s+", "", text, flags=re.IGNORECASE)
        named = _NAMED.match(text)
        if _OWN_SETTINGS.match(rest) or named is None:
            return
        step = _step(text, logged, self._engine)
        if client.begins is not None and client.open:
            client.steps.append(step)
        if not re.match(r"(LOCAL|TRANSACTION)\b", rest, re.IGNORECASE):
            client.settings[named["name"].lower()] = step

    def _refused(self, client: _Client) -> None:
        """Leaves out what PostgreSQL refused, and nothing else that it tells of; the open transaction is lost."""
        self._left_out["statement(s) that the server refused"] += client.fresh > 0
        if client.open:
            del client.steps[len(client.steps) - client.fresh :]
            client.aborted = True
        elif client.fresh:
            client.steps, client.begins = [], None
        client.fresh = 0

    def _end(self, session: str, client: _Client, *, undone: bool = False) -> None:
        if client.steps and client.begins is not None:
            ends = self._place if client.open else client.last
            self._found.append(
                Recorded(
                    session,
                    client.begins,
                    ends,
                    tuple(client.settings.values()),
                    tuple(client.steps),
                    undone or client.aborted,
                )
            )
        client.steps, client.begins, client.explicit, client.aborted = [], None, False, False


def _first(text: str) -> tuple[str, str, str]:
    """The first three words of a statement in capitals."""
    found = _WORDS.match(sql_text.bare(text))
    first, second, third = found.groups() if found else ("", "", "")
    return (first or "").upper(), (second or "").upper(), (third or "").upper()


def _step(text: str, logged: Logged, engine: str) -> Step:
    """The statement as drivers take it: ``%s`` in place of ``$1``, each other ``%`` doubled."""
    pieces, values = [], list[str | None]()
    for token in sql_text.tokens(text, engine):
        number = int(token[1:]) if re.fullmatch(r"\$\d+", token) else 0
        if 0 < number <= len(logged.bound):
            pieces.append("%s")
            values.append(logged.bound[number - 1])
        else:
            pieces.append(token.replace("%", "%%"))
    return Step("".join(pieces), tuple(values))
