"""The failure of an incident: which target rows differ and how, or with which error a run stopped; and whether a
replay shows it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from scenarios.chaos.incident.halted import of_rows

_SHOWN = 20
_TWICE = {"duplicate": "twice"}
_VALUES_BEGIN = (";", ":", "(", "'", '"', "=")
UNEXPECTED = "unexpected"
"""The status of a row that is what the mapping says, and not what a user expects."""
_STATUSES = ("different", "missing", "extra", "twice")


class Judgement(Enum):
    """The answer of a replay."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    UNKNOWN = "unknown"


EXIT_CODES = {Judgement.REPRODUCED: 0, Judgement.NOT_REPRODUCED: 1, Judgement.UNKNOWN: 3}


@dataclass(frozen=True, slots=True)
class Wrong:
    """A target row that isn't what the mapping says.

    Attributes:
        target: its table.
        status: ``different``, ``missing``, ``extra``, ``twice`` or ``unexpected``.
        columns: those that differ; empty unless it is different or unexpected.
        key: its key by column, as far as it is known; a value that isn't known is None.
    """

    target: str
    status: str
    columns: tuple[str, ...] = ()
    key: Mapping[str, str | None] | None = None

    def like(self, other: Wrong) -> bool:
        """Tells whether the same happened to a row of the same table: of different ones, to a column of both."""
        same = (self.target, self.status) == (other.target, other.status)
        return same and (not self.columns or not other.columns or bool({*self.columns} & {*other.columns}))

    def said(self) -> str:
        """The row in words."""
        key = ", ".join(f"{name} {value}" for name, value in (self.key or {}).items() if value is not None)
        columns = f" in {', '.join(self.columns)}" if self.columns else ""
        return f"{self.target}{f', {key}' if key else ''}: {self.status}{columns}"


@dataclass(frozen=True, slots=True)
class Expected:
    """A value that a user knows to be right, whatever the mapping says.

    Attributes:
        target, column: where it should be.
        key: of the row, by column.
        value: as text; None for NULL.
    """

    target: str
    key: Mapping[str, str | None]
    column: str
    value: str | None

    def unless(self, found: str | None) -> list[Wrong]:
        """Returns the row as wrong where another value is there."""
        return [] if found == self.value else [Wrong(self.target, UNEXPECTED, (self.column,), self.key)]


@dataclass(frozen=True)
class Failure:
    """A failure, as a verification or a replay found it.

    Attributes:
        wrong: rows that differ; the first ones of many.
        number: how many there are.
        halted: the named error with which the run stopped, or "".
        checked: target rows that were compared.
        tables: targets that were compared.
        expected: values that should be there.
        error: name of the class of the error, where it is known.
    """

    wrong: tuple[Wrong, ...] = ()
    number: int = 0
    halted: str = ""
    checked: int = 0
    tables: tuple[str, ...] = ()
    expected: tuple[Expected, ...] = ()
    error: str = ""

    def anything(self) -> bool:
        """Tells whether anything is wrong."""
        return bool(self.wrong or self.number or self.halted)

    def lines(self) -> list[str]:
        """The failure in words."""
        if self.halted:
            return [f"the run stopped: {self.halted}"]
        if not self.wrong:
            return [f"{self.checked} rows compared, none differs"]
        more = [f"... {self.number - len(self.wrong)} more"] if self.number > len(self.wrong) else []
        return [*(one.said() for one in self.wrong), *more]


def of_report(document: Mapping[str, Any]) -> Failure:
    """The failure that a verification's report (``verify.json``) tells of.

    Raises ``KeyError``, ``TypeError`` for a document that is none.
    """
    wrong, number, checked = list[Wrong](), 0, 0
    for table in document["tables"]:
        counts = table["counts"]
        checked += counts["compared"]
        differ = {
            name: counts[name] for name in ("different", "missing", "extra", "duplicate") if counts[name]
        }
        number += sum(differ.values())
        sampled = set[str]()
        for sample in table["samples"]:
            status = _TWICE.get(sample["status"], sample["status"])
            if status not in _STATUSES:
                continue
            sampled.add(status)
            columns = tuple(cell["column"] for cell in sample["cells"] if cell["differs"])
            wrong.append(
                Wrong(table["target"], status, columns if status == "different" else (), dict(sample["key"]))
            )
        named = tuple(column["column"] for column in table["columns"])
        for status in (_TWICE.get(name, name) for name in differ):
            if status not in sampled:
                wrong.append(Wrong(table["target"], status, named if status == "different" else ()))
    tables = tuple(table["target"] for table in document["tables"])
    return Failure(tuple(wrong[:_SHOWN]), number, checked=checked, tables=tables)


def old_rows(document: Mapping[str, Any]) -> list[tuple[str, dict[str, str | None]]]:
    """The old rows that a report shows beside rows that differ, each with its table."""
    return [
        (old["table"], dict(old["values"]))
        for table in document["tables"]
        for sample in table["samples"]
        for old in sample["old_rows"]
    ]


def judged(recorded: Failure, found: Failure) -> tuple[Judgement, str]:
    """Tells whether a replay shows the recorded failure, and the reason in words."""
    if recorded.halted:
        if not found.halted:
            reason = "the run didn't stop"
            if not of_rows(recorded.error):
                return (
                    Judgement.UNKNOWN,
                    f"{reason}: a {recorded.error} needs more than rows and their changes, which is all of the file",
                )
            return (Judgement.UNKNOWN, f"{reason}, but rows differ") if found.wrong else (
                Judgement.NOT_REPRODUCED, reason,
            )  # fmt: skip
        if words_of(found.halted) == words_of(recorded.halted):
            return Judgement.REPRODUCED, f"the run stopped again: {found.halted}"
        return Judgement.UNKNOWN, f"the run stopped for another reason: {found.halted}"
    if found.halted:
        return Judgement.UNKNOWN, f"the run stopped before anything could be compared: {found.halted}"
    if not recorded.anything():
        seen = "; ".join(found.lines()[:3])
        return Judgement.UNKNOWN, f"the file holds no failure to compare with; the replay: {seen}"
    again = [one for one in found.wrong if any(one.like(other) for other in recorded.wrong)]
    if again:
        return Judgement.REPRODUCED, "; ".join(one.said() for one in again[:3])
    if found.wrong:
        return Judgement.UNKNOWN, f"other rows differ: {'; '.join(found.lines()[:3])}"
    if not found.checked:
        return Judgement.UNKNOWN, "no row was compared"
    return Judgement.NOT_REPRODUCED, f"{found.checked} rows compared, none differs"


def renamed(failure: Failure, text: Callable[[str], str | None], halted: Callable[[str], str]) -> Failure:
    """The failure with the values of keys replaced, and the error's words."""

    def named(key: Mapping[str, str | None]) -> dict[str, str | None]:
        return {name: None if value is None else text(value) for name, value in key.items()}

    return replace(
        failure,
        wrong=tuple(replace(one, key=None if one.key is None else named(one.key)) for one in failure.wrong),
        halted=halted(failure.halted) if failure.halted else "",
        expected=tuple(
            replace(one, key=named(one.key), value=None if one.value is None else text(one.value))
            for one in failure.expected
        ),
    )


def to_json(failure: Failure) -> dict[str, Any]:
    """The failure as a document."""
    return {
        "wrong": [
            {"target": one.target, "status": one.status, "columns": list(one.columns), "key": one.key}
            for one in failure.wrong
        ],
        "number": failure.number,
        "halted": failure.halted,
        "error": failure.error,
        "checked": failure.checked,
        "tables": list(failure.tables),
        "expected": [
            {"target": one.target, "key": one.key, "column": one.column, "value": one.value}
            for one in failure.expected
        ],
    }


def from_json(document: Mapping[str, Any]) -> Failure:
    """The failure of a document. Raises ``KeyError``, ``TypeError``."""
    wrong: Sequence[Mapping[str, Any]] = document["wrong"]
    return Failure(
        tuple(Wrong(one["target"], one["status"], tuple(one["columns"]), one["key"]) for one in wrong),
        document["number"],
        document["halted"],
        document["checked"],
        tuple(document["tables"]),
        tuple(
            Expected(one["target"], one["key"], one["column"], one["value"]) for one in document["expected"]
        ),
        document.get("error", ""),
    )


def words_of(error: str) -> str:
    """The first words of an error's message, up to the first that may tell of a single row."""
    for mark in _VALUES_BEGIN:
        error = error.partition(mark)[0]
    return error.strip()
