"""Broken variants of the judge itself: each must be found out by differences that are planted in a good history.

A judge that is broken in this way sees another history than the recorded one, so each variant is a function between
histories. (``tests/integration/verify/test_verify_controls.py`` does the same for ``migrator verify``.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from migrator.errors import VerifyError
from scenarios.mutants.kill import KillRow
from scenarios.simulation.run import simulate
from scenarios.simulation.setup import WITNESS
from verify.history.history import DELETE, PUT, SCHEMAS, History, table_of
from verify.history.judge import judge
from verify.history.result import Outcome, overall

Sight = Callable[[History], History]
CODES = ("D3", "D4", "D6", "D7")
_LARGE = 2**53
_TABLE = "register"


def _with_tables_changed(history: History, change: Callable[[pa.Table], pa.Table], *names: str) -> History:
    """The history with some of its tables changed."""
    return replace(history, **{name: change(getattr(history, name)) for name in names})


_VALUES = tuple(name for name, schema in SCHEMAS.items() if "value" in schema.names)


# -- broken judges
# --------------------------------------------------------------------------------------------------


def _nothing(history: History) -> History:
    return _with_tables_changed(
        history, lambda table: table.slice(0, 0), *(name for name in SCHEMAS if name != "faults")
    )


def _as_doubles(history: History) -> History:
    def lossy(table: pa.Table) -> pa.Table:
        doubles = pa.chunked_array(
            [[None if value is None else int(float(value)) for value in table["value"].to_pylist()]],
            pa.int64(),
        )
        return table.set_column(table.schema.get_field_index("value"), table.schema.field("value"), doubles)

    return _with_tables_changed(history, lossy, *_VALUES)


def _without_values(history: History) -> History:
    def blind(table: pa.Table) -> pa.Table:
        nulls = pa.nulls(table.num_rows, pa.int64())
        return table.set_column(table.schema.get_field_index("value"), table.schema.field("value"), nulls)

    return _with_tables_changed(history, blind, *_VALUES)


def _without_deletes(history: History) -> History:
    def puts(table: pa.Table) -> pa.Table:
        return table.filter(pc.equal(table["kind"], PUT))

    rows = {(row["table"], row["key"]) for row in history.final_source.to_pylist()}
    left = [row for row in history.final_target.to_pylist() if (row["table"], row["key"]) in rows]
    columns = {name: [row[name] for row in left] for name in SCHEMAS["final_target"].names}
    history = replace(history, final_target=table_of("final_target", columns))
    return _with_tables_changed(history, puts, "log", "changes", "deliveries", "operations")


def _source_twice(history: History) -> History:
    """Takes the commits of the source's log for the target's commits."""
    log = history.log.to_pylist()
    lines: list[dict[str, Any]] = []
    done = -1
    for commit in history.commits.to_pylist():
        new = [row for row in log if done < (row["order"] or 0) <= commit["order"]]
        lines += [{**row, "commit": commit["commit"]} for row in new]
        done = commit["order"]
    changes = {name: [line[name] for line in lines] for name in SCHEMAS["changes"].names}
    return replace(history, changes=table_of("changes", changes), final_target=history.final_source)


@dataclass(frozen=True, slots=True)
class BrokenJudge:
    """A judge that sees less.

    Attributes:
        name: for people.
        broken: what it does.
        sees: the history that it judges in place of the recorded one.
        wrong_on: planted differences that it misses, ``good`` if it objects to a good history; they find it out.
    """

    name: str
    broken: str
    sees: Sight
    wrong_on: tuple[str, ...]


JUDGES = (
    BrokenJudge(
        "judge-compares-nothing",
        "the judge gets no rows",
        _nothing,
        ("good", "large value", "value", "row stays", "row missing"),
    ),
    BrokenJudge("judge-casts-to-double", "values are compared as doubles", _as_doubles, ("large value",)),
    BrokenJudge("judge-ignores-column", "values are not compared", _without_values, ("large value", "value")),
    BrokenJudge(
        "judge-drops-deletes",
        "deletes, and rows that only the target has, are not looked at",
        _without_deletes,
        ("good",),
    ),
    BrokenJudge(
        "judge-reads-one-side-twice",
        "the source is compared with itself",
        _source_twice,
        ("large value", "value", "row stays", "row missing"),
    ),
)


# -- planted differences
# --------------------------------------------------------------------------------------------


def _off_by(amount: int) -> Sight:
    """The last row that the target got differs in its value."""

    def plant(history: History) -> History:
        rows = history.final_target.to_pylist()
        victim = next(row for row in rows if row["table"] == _TABLE)
        changes = history.changes.to_pylist()
        last = max(at for at, row in enumerate(changes) if _same_key(row, victim))
        wrong = victim["value"] + amount
        changes[last] = {**changes[last], "value": wrong}
        rows = [{**row, "value": wrong} if row is victim else row for row in rows]
        return _with_target(history, changes, rows)

    return plant


def _stays(history: History) -> History:
    """A row that the source deleted for good is not deleted."""
    changes = history.changes.to_pylist()
    at = _deleted_for_good(history)
    if at is None:
        raise VerifyError("no row of this history was deleted for good")
    stays = {name: changes[at][name] for name in SCHEMAS["final_target"].names} | {"kind": PUT}
    return _with_target(
        history, [*changes[:at], *changes[at + 1 :]], [*history.final_target.to_pylist(), stays]
    )


def _missing(history: History) -> History:
    """The last commit loses a row."""
    rows = history.final_target.to_pylist()
    victim = next(row for row in rows if row["table"] == _TABLE)
    lost = {**victim, "kind": DELETE, "commit": history.commits["commit"][-1].as_py()}
    return _with_target(
        history, [*history.changes.to_pylist(), lost], [row for row in rows if row is not victim]
    )


PLANTED: Mapping[str, Sight] = {
    "large value": _off_by(1),
    "value": _off_by(1000),
    "row stays": _stays,
    "row missing": _missing,
}


def _same_key(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return (one["table"], one["key"]) == (other["table"], other["key"])


def _with_target(history: History, changes: Sequence[Mapping[str, Any]], rows: Sequence[Any]) -> History:
    def recorded(name: str, lines: Sequence[Mapping[str, Any]]) -> pa.Table:
        return table_of(name, {column: [line[column] for line in lines] for column in SCHEMAS[name].names})

    return replace(history, changes=recorded("changes", changes), final_target=recorded("final_target", rows))


def _deleted_for_good(history: History) -> int | None:
    """Index among the changes of the last delete of a key that is absent in the end."""
    changes = history.changes.to_pylist()
    present = {(row["table"], row["key"]) for row in history.final_target.to_pylist()}
    found = [
        at
        for at, row in enumerate(changes)
        if row["kind"] == DELETE and (row["table"], row["key"]) not in present
    ]
    return found[-1] if found else None


# -- the table
# ------------------------------------------------------------------------------------------------------


def good_history() -> History:
    """A history that holds, with a row that vanished for good and odd values that doubles can't tell apart."""
    for seed in range(200):
        history = simulate(seed, WITNESS)
        outcomes = [result.outcome for result in judge(history)]
        if outcomes.count(Outcome.HOLDS) == len(outcomes) and _deleted_for_good(history) is not None:
            return _with_tables_changed(history, _enlarged, *_VALUES)
    raise VerifyError("no seed makes a history that the judges can be tried on")


def _enlarged(table: pa.Table) -> pa.Table:
    """Values of one table moved to where doubles hold every second integer only: one more rounds down to them."""
    values = [
        value if value is None or name != _TABLE else 4 * value + _LARGE
        for name, value in zip(table["table"].to_pylist(), table["value"].to_pylist(), strict=True)
    ]
    column = pa.chunked_array([values], pa.int64())
    return table.set_column(table.schema.get_field_index("value"), table.schema.field("value"), column)


def judge_rows(history: History) -> tuple[KillRow, ...]:
    """A row per broken judge. Raises ``VerifyError`` if the real judge misses a planted difference."""
    missed = [name for name, plant in PLANTED.items() if _outcome(plant(history)) is not Outcome.VIOLATED]
    if missed or _outcome(history) is not Outcome.HOLDS:
        raise VerifyError(
            "the real judge is wrong",
            where=f"seed {history.description.seed}",
            cause=f"planted differences missed: {', '.join(missed)}"
            if missed
            else "a good history doesn't hold",
        )
    return tuple(_row(broken, wrong_on(broken, history)) for broken in JUDGES)


def wrong_on(broken: BrokenJudge, history: History) -> tuple[str, ...]:
    """Lists what a broken judge gets wrong: about a good history and about what was planted in it."""
    wrong = ["good"] if _outcome(broken.sees(history)) is not Outcome.HOLDS else []
    for name, plant in PLANTED.items():
        if _outcome(broken.sees(plant(history))) is not Outcome.VIOLATED:
            wrong.append(name)
    return tuple(wrong)


def _outcome(history: History) -> Outcome:
    return overall(judge(history, CODES))


def _row(broken: BrokenJudge, wrong: tuple[str, ...]) -> KillRow:
    found_out = set(broken.wrong_on) <= set(wrong)
    return KillRow(
        broken.name,
        broken.broken,
        ("corpus",),
        dict.fromkeys(wrong, 1),
        first=1 if found_out else None,
        killed=int(found_out),
        seeds=1,
        outcome=Outcome.HOLDS if found_out else Outcome.VIOLATED,
    )
