"""Every error a user can meet, as one tree.

``MigratorError``
    ``ConfigError``        a setting is unknown, missing or wrong
    ``PreflightError``     the source or target is not ready; carries findings
    ``ConnectionFailed``   a server can't be reached or refuses the login (retryable when the network is to blame)
    ``SourceError``        the source log or a chunk can't be read or represented
        ``GapError``       the log no longer holds the position we need
        ``SchemaError``    a source table changed in a way that can't be carried on
            ``ReplacedError``  another table has the name of a captured one
    ``ClusterError``       Spark's executors can't do their part
    ``KeptPlanError``      the plan that an earlier start kept isn't its function's; a run begins again by itself
    ``MappingError``       the user's mapping is wrong, or fails on a row
        ``RowUnmapped``    it fails on one row, which is known
        ``MappingErrors``  several functions or queries of it are
    ``TargetError``        the target refuses a row or isn't at the expected revision
        ``RowRefused``     the target refuses one row, which is known, for what it holds
        ``BesideError``    what the target does of itself when a row is written fails, whatever the row holds
    ``EventLogError``      the event log can't be written or read
        ``DamageError``    a segment is missing, torn or corrupt
    ``OutputError``        an output of change events can't be written, or isn't what was left there
    ``CutoverError``       a side can't be fenced off or opened again
    ``FencedError``        another leader with a higher epoch has taken over
    ``HalfResetError``     a reset of the migration began and isn't finished
    ``RequestError``       a dump request is wrong, or not in a state that allows what was asked
    ``VerifyError``        the comparison can't be made

Each error says what, where (a setting, table, row or position), why, and what to do. None of them is ever
swallowed: a command that meets one prints it and exits with code 2, positions kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Protocol

CORRECTED_MAPPING = (
    ". A corrected mapping is one that was changed: if the rows applied so far are what it makes of them, start with"
    " --accept-mapping and the target's name; else the next start says how the target gets all rows anew"
)
"""The end of each remedy by which a mapping is corrected after rows may have been applied."""
_DOCUMENT = re.compile(r"docs/((?:[a-z-]+/)*)([a-z-]+)\.md")

_TAB = re.compile(r" *\t+")
"""Tabs by which a library sets off a second line, which is none any more."""


def readable(remedy: str) -> str:
    """A remedy that names, for each document it refers to, the command that prints it, wherever we were
    installed."""
    return _DOCUMENT.sub(r"docs/\1\2.md, printed by `migrator docs \2`", remedy)


class MigratorError(Exception):
    """A named failure that a user can act on.

    Args:
        what: one sentence saying what failed.
        where: setting, table, row, file or position concerned; empty when there is only one possible place.
        cause: why, in the words of the server or library where there are any.
        remedy: what to do about it.
        retryable: whether trying again without any change may succeed (a network cut may; a wrong password
            will not).
    """

    def __init__(
        self, what: str, *, where: str = "", cause: str = "", remedy: str = "", retryable: bool = False
    ):
        super().__init__(what)
        self.what = what
        self.where = where
        self.cause = cause
        self.remedy = remedy
        self.retryable = retryable

    def __str__(self) -> str:
        return "; ".join(line.replace("\n", " ").strip() for line in self.lines())

    def lines(self) -> list[str]:
        """The message as lines for a terminal: what, then where, cause and remedy if known.

        Several places are a line each below ``where``.
        """
        cause = _TAB.sub(" ", self.cause)
        rest = (("where", self.where), ("cause", cause), ("remedy", readable(self.remedy)))
        labelled = [f"{label}: {text}" for label, text in rest if text]
        return [self.what, *(line for text in labelled for line in text.replace("\n", "\n  ").split("\n"))]


class ConfigError(MigratorError):
    """A setting is unknown, missing or has a wrong value. All problems of one file are reported together."""


class PreflightError(MigratorError):
    """At least one preflight finding refuses the migration."""


class ConnectionFailed(MigratorError):
    """A server can't be reached, or refuses the login."""


class SourceError(MigratorError):
    """The source log or a chunk can't be read or represented."""


class GapError(SourceError):
    """The source log no longer holds the position that is needed: a re-dump is the way out."""


class SchemaError(SourceError):
    """A source table changed in a way that the mapping can't be carried over."""


class NamedTable(Protocol):
    """A table's name, as ``TableId`` is one."""

    @property
    def schema(self) -> str:
        """First part of the name."""

    @property
    def name(self) -> str:
        """Second part."""


class ReplacedError(SchemaError):
    """Another table has the name of a captured one. Once all of its rows are read again, the migration goes on with
    it.

    Attributes:
        tables: schema and name of each.
    """

    def __init__(
        self, what: str, tables: Iterable[NamedTable], *, cause: str = "", remedy: str = "", where: str = ""
    ):
        self.tables = frozenset((table.schema, table.name) for table in tables)
        named = where or ", ".join(".".join(table) for table in sorted(self.tables))
        super().__init__(what, where=named, cause=cause, remedy=remedy)


class ClusterError(MigratorError):
    """Executors of a Spark cluster don't come, or can't do their part."""


class KeptPlanError(MigratorError):
    """The plan that an earlier start kept isn't its function's. To map the same batch again is no use: a start is."""


class MappingError(MigratorError):
    """The user's mapping can't be used, or fails on a row."""


class RowUnmapped(MappingError):
    """The mapping fails on one row, and on others or later versions of it may not."""


class MappingErrors(MappingError):
    """Several functions or queries of the mapping can't be used: none of their errors hides another.

    Args:
        problems: at least two, in the order of the files.
    """

    def __init__(self, problems: Sequence[MigratorError]):
        numbered = list(enumerate(problems, 1))
        super().__init__(
            f"the mapping has {len(problems)} problems",
            where="; ".join(dict.fromkeys(one.where for one in problems if one.where)),
            cause="; ".join(f"({n}) {one.what}{one.cause and f': {one.cause}'}" for n, one in numbered),
            remedy="; ".join(f"({n}) {one.remedy}" for n, one in numbered if one.remedy),
        )
        self.problems = tuple(problems)

    def lines(self) -> list[str]:
        """The message as lines for a terminal: those of each problem, numbered."""
        numbered = enumerate(self.problems, 1)
        return [self.what, *(line for n, one in numbered for line in _indented(f"({n})", one.lines()))]


class TargetError(MigratorError):
    """The target refuses a row, or isn't at the expected schema revision."""


class RowRefused(TargetError):
    """The target refuses one row for what it holds: another version of the same row may fit.

    Args:
        table: target table, as ``str(TableId)``.
        key: the row's key, as ``migrator.columnar.bad_rows.key_texts`` writes it.
    """

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        cause: str = "",
        remedy: str = "",
        retryable: bool = False,
        table: str = "",
        key: tuple[str, ...] = (),
    ):
        super().__init__(what, where=where, cause=cause, remedy=remedy, retryable=retryable)
        self.table = table
        self.key = key


def of_row(error: TargetError, table: str, key: tuple[str, ...] | None) -> TargetError:
    """The same error, which knows its row; as it is where the key isn't known or the row isn't to blame."""
    if key is None or error.retryable or type(error) is not TargetError:
        return error
    return RowRefused(
        error.what, where=error.where, cause=error.cause, remedy=error.remedy, table=table, key=key
    )


class BesideError(TargetError):
    """The target's own doing when a row is written (functions of conditions, triggers) fails, whatever the row
    holds."""


class EventLogError(MigratorError):
    """The event log can't be written or read."""


class DamageError(EventLogError):
    """A segment of the event log is missing, torn or corrupt; the source may still have what it held."""


class OutputError(MigratorError):
    """An output of change events refuses, or doesn't hold what was written to it."""


class CutoverError(MigratorError):
    """A side of a cut-over can't be fenced off, or opened again; everything that was done so far is durable."""


class FencedError(MigratorError):
    """A leader with a higher epoch exists: this process must stop and must not write again."""


class HalfResetError(MigratorError):
    """A reset of this migration began and isn't finished: nobody may go on with what is left."""


class RequestError(MigratorError):
    """A dump request is wrong, or isn't in a state that allows what was asked."""


class VerifyError(MigratorError):
    """The comparison can't be made; the verdict is unknown."""


def together(problems: Sequence[MappingError]) -> MappingError:
    """One error for all of them; the error itself where it is the only one."""
    return problems[0] if len(problems) == 1 else MappingErrors(problems)


def _indented(mark: str, lines: list[str]) -> list[str]:
    first, *rest = lines
    return [f"{mark} {first}", *(f"    {line}" for line in rest)]
