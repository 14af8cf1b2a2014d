"""A repair in words, and its before and after as one value. ``repair_forms`` and ``repair_html`` show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from migrator.model.requests.request import DumpRequest, RequestState
from migrator.run.commands.repair import RepairStep, Way
from verify.report.display import on_terminal
from verify.tables.compare.compare import DUPLICATE, EXTRA
from verify.tables.findings.differing import Differing, DifferingKey, Values

REPAIRED, UNKNOWN, EQUAL = "repaired", "unknown", "equal"
_SAMPLE = 5
_SHOWN = 20
"""Keys of one table that a report shows with their cells, those that still differ first."""


@dataclass(frozen=True, slots=True)
class Planned:
    """One step as the dry run says it: ``keys`` target rows, by dumping about ``rows`` rows of ``sources``."""

    target: str
    keys: int
    way: str
    sources: tuple[str, ...]
    rows: int
    why: str

    def joined(self) -> bool:
        """Tells whether its rows come from the mirror: the dump begins that, and is no count of its rows."""
        return self.way == Way.REMAP.value


@dataclass(frozen=True, slots=True)
class Shown:
    """One key with its cells, in the order of ``columns``; None for a side that has no row.

    Attributes:
        table: target table.
        key: its values.
        columns: names of the compared columns.
        before: status that it was repaired for.
        after: ``repaired``, the status that it still has, or ``unknown`` where it may be one that couldn't be
            judged.
        mapped: mapping(source) before.
        target: the target's row before.
        mapped_after: mapping(source) afterwards, where the key still differs.
        target_after: the same of the target.
    """

    table: str
    key: tuple[str, ...]
    columns: tuple[str, ...]
    before: str
    after: str
    mapped: Values | None
    target: Values | None
    mapped_after: Values | None = None
    target_after: Values | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a repair: the state before and after.

    Attributes:
        before: per table, keys to be repaired by status.
        after: the same keys that still differ, by status.
        others: per table, keys that differ now and weren't to be repaired.
        requests: id, what became of it, and the reason.
        left: some of the keys that still differ: table, status, key.
        open: tables of which not every key is known afterwards: some change all the time, or more differ than
            listed.
        planned: what the dry run says.
        verdicts: per table its verdict before and after, over all its keys.
        samples: some keys with their cells.
        dry_run: whether nothing was done: then ``after`` is ``before``, and so are both verdicts.
    """

    before: dict[str, dict[str, int]]
    after: dict[str, dict[str, int]]
    others: dict[str, int]
    requests: tuple[tuple[str, str, str], ...]
    left: tuple[tuple[str, str, tuple[str, ...]], ...]
    open: tuple[str, ...] = ()
    planned: tuple[Planned, ...] = ()
    verdicts: tuple[tuple[str, str, str], ...] = ()
    samples: tuple[Shown, ...] = ()
    dry_run: bool = False

    def failed(self) -> bool:
        """Tells whether a request came to no good end."""
        return any(state != RequestState.DONE.value for _, state, _ in self.requests)

    def exit_code(self) -> int:
        """0: all is right; 1: something still differs; 3: a request didn't end well, or not all could be judged."""
        return 1 if any(self.after.values()) else 3 if self.failed() or self.open else 0

    def verdict(self) -> str:
        """``repaired`` (of a dry run: ``equal``), ``different`` or ``unknown``, as the exit code says."""
        return {0: self._right(), 1: "different", 3: UNKNOWN}[self.exit_code()]

    def _right(self) -> str:
        return EQUAL if self.dry_run else REPAIRED

    def table_verdict(self, table: str) -> str:
        """The same of the keys of one table."""
        if self.after.get(table):
            return "different"
        return UNKNOWN if table in self.open or self.failed() else self._right()


def planned_lines(differing: Differing, steps: Sequence[RepairStep]) -> list[str]:
    """Lists the steps that a repair would take."""
    lines: list[str] = []
    for table in differing.tables:
        keys = [key for key in differing.keys if key.table == table.table]
        if keys:
            lines.append(f"{table.table}: {counted(Counter(key.status for key in keys))}")
            lines += [f"  {_sample(key)}" for key in keys[:_SAMPLE]]
        if table.verdict == UNKNOWN:
            lines.append(f"{table.table}: could not be judged wholly; what is listed differs for sure")
        if table.listed < table.differ:
            lines.append(
                f"  {table.differ - table.listed:,} more keys differ than the report lists: repair again"
            )
        doubles = sum(key.status == DUPLICATE for key in keys)
        if doubles:
            lines.append(
                f"  {doubles:,} keys come twice, and no repair can choose: correct the mapping, or, if the target"
                " lost its unique index, remove the spare rows there"
            )
    lines += [step_line(step) for step in planned(steps)]
    return lines or ["nothing differs: there is nothing to repair"]


def planned(steps: Sequence[RepairStep]) -> tuple[Planned, ...]:
    """The steps as a report shows them."""
    return tuple(
        Planned(
            step.target, len(step.keys), step.way.value, tuple(map(str, step.tables)), step.rows, step.why
        )
        for step in steps
    )


def step_line(step: Planned) -> str:
    """One step for a terminal."""
    if step.joined():
        return (
            f"{step.target}: {step.keys:,} rows are wrong; all its rows are {step.way}, in one transaction, as it is"
            f" joined. A dump of {', '.join(step.sources)}, about {step.rows:,} rows, begins that"
        )
    why = f" ({step.why})" if step.why else ""
    return (
        f"{step.target}: {step.keys:,} rows by {step.way}, about {step.rows:,} rows of"
        f" {', '.join(step.sources)}{why}"
    )


def key_words(key: tuple[str, ...]) -> str:
    """A key for a terminal."""
    return ", ".join(map(on_terminal, key))


def _sample(key: DifferingKey) -> str:
    does = {EXTRA: ": is removed", DUPLICATE: ""}.get(key.status, ": is dumped again")
    return f"{key.status}  {key_words(key.key)}{does}"


def outcome(
    before: Differing, steps: Sequence[RepairStep], requests: Sequence[DumpRequest], after: Differing
) -> Outcome:
    """Compares what was to be repaired with a later verification of the same tables."""
    targets = {step.target for step in steps}
    asked = [key for key in before.keys if key.table in targets]
    wanted = {(key.table, key.key) for key in asked}
    left = [key for key in after.keys if (key.table, key.key) in wanted]
    others = Counter(key.table for key in after.keys if (key.table, key.key) not in wanted)
    unsure = _unsure(after)
    first = {table.table: table.verdict for table in before.tables}
    return Outcome(
        before=_by_table(asked),
        after=_by_table(left),
        others=dict(others),
        requests=tuple((request.id, request.state.value, request.reason) for request in requests),
        left=tuple((key.table, key.status, key.key) for key in left[:_SAMPLE]),
        open=unsure,
        planned=planned(steps),
        verdicts=tuple(
            (table.table, first.get(table.table, UNKNOWN), table.verdict) for table in after.tables
        ),
        samples=_shown(before, asked, {(key.table, key.key): key for key in left}, unsure),
    )


def planned_outcome(found: Differing, steps: Sequence[RepairStep]) -> Outcome:
    """A dry run: what there is to repair, and how it would be."""
    counts = _by_table(found.keys)
    return Outcome(
        before=counts,
        after=counts,
        others={},
        requests=(),
        left=tuple((key.table, key.status, key.key) for key in found.keys[:_SAMPLE]),
        open=_unsure(found),
        planned=planned(steps),
        verdicts=tuple((table.table, table.verdict, table.verdict) for table in found.tables),
        samples=_shown(found, found.keys, {(key.table, key.key): key for key in found.keys}, ()),
        dry_run=True,
    )


def _unsure(found: Differing) -> tuple[str, ...]:
    return tuple(
        table.table for table in found.tables if table.verdict == UNKNOWN or table.listed < table.differ
    )


def _shown(
    before: Differing,
    asked: Sequence[DifferingKey],
    left: dict[tuple[str, tuple[str, ...]], DifferingKey],
    unsure: Sequence[str],
) -> tuple[Shown, ...]:
    """The first keys of each table, what is left first."""
    found: list[Shown] = []
    for table in before.tables:
        keys = [key for key in asked if key.table == table.table]
        keys.sort(key=lambda key: (key.table, key.key) not in left)
        columns = tuple(name for name, _, _ in table.columns)
        for key in keys[:_SHOWN]:
            still = left.get((key.table, key.key))
            judged = still.status if still else UNKNOWN if key.table in unsure else REPAIRED
            later = (still.mapped, still.target) if still else (None, None)
            found.append(
                Shown(key.table, key.key, columns, key.status, judged, key.mapped, key.target, *later)
            )
    return tuple(found)


def _by_table(keys: Sequence[DifferingKey]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for key in keys:
        found.setdefault(key.table, Counter())[key.status] += 1
    return {table: dict(counts) for table, counts in found.items()}


def counted(counts: dict[str, int] | Counter[str]) -> str:
    """Numbers by status in words."""
    return ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items())) or "nothing differs"
