"""A repair in words, and what it found before and after as one document.

``repair.json`` (``format`` 1): the fields of ``Outcome``; ``verdict`` beside them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from migrator.model.request import DumpRequest, RequestState
from migrator.run.repair import RepairStep
from verify.compare import DUPLICATE, EXTRA
from verify.differing import Differing, DifferingKey

REPAIR_FORMAT = 1
_SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Outcome:
    """Before and after.

    Attributes:
        before: per table, keys to be repaired by status.
        after: the same keys that still differ, by status.
        others: per table, keys that differ now and weren't to be repaired.
        requests: id, what became of it, and the reason.
        left: some of the keys that still differ: table, status, key.
        open: tables of which some keys couldn't be judged afterwards, because they change all the time.
    """

    before: dict[str, dict[str, int]]
    after: dict[str, dict[str, int]]
    others: dict[str, int]
    requests: tuple[tuple[str, str, str], ...]
    left: tuple[tuple[str, str, tuple[str, ...]], ...]
    open: tuple[str, ...] = ()

    def failed(self) -> bool:
        """Whether a request came to no good end."""
        return any(state != RequestState.DONE.value for _, state, _ in self.requests)

    def exit_code(self) -> int:
        """0: all is right; 1: something still differs; 3: a request didn't end well, or not all could be judged."""
        return 1 if any(self.after.values()) else 3 if self.failed() or self.open else 0

    def lines(self) -> list[str]:
        """For a terminal."""
        lines = [f"request {name}  {state}  {reason}".rstrip() for name, state, reason in self.requests]
        for table, before in self.before.items():
            after = self.after.get(table, {})
            lines.append(f"{table}: before {_counted(before)}; after {_counted(after)}")
        lines += [f"still {status} in {table}: {', '.join(key)}" for table, status, key in self.left]
        lines += [f"{table}: not every key settled: verify again when less is written" for table in self.open]
        lines += [
            f"{table}: {number:,} other keys differ, which weren't to be repaired"
            for table, number in self.others.items()
        ]
        return lines


def planned_lines(differing: Differing, steps: Sequence[RepairStep]) -> list[str]:
    """What would be done."""
    lines: list[str] = []
    for table in differing.tables:
        keys = [key for key in differing.keys if key.table == table.table]
        if keys:
            lines.append(f"{table.table}: {_counted(Counter(key.status for key in keys))}")
            lines += [f"  {_sample(key)}" for key in keys[:_SAMPLE]]
        if table.verdict == "unknown":
            lines.append(f"{table.table}: could not be judged wholly; what is listed differs for sure")
        if table.listed < table.differ:
            lines.append(
                f"  {table.differ - table.listed:,} more keys differ than the report lists: repair again"
            )
        doubles = sum(key.status == DUPLICATE for key in keys)
        if doubles:
            lines.append(
                f"  {doubles:,} keys the mapping makes twice: correct the mapping, no repair can choose"
            )
    for step in steps:
        read = ", ".join(f"{each}" for each in step.tables)
        lines.append(
            f"{step.target}: {len(step.keys):,} rows by {step.way.value}, about {step.rows:,} rows of {read}"
            + (f" ({step.why})" if step.why else "")
        )
    return lines or ["nothing differs: there is nothing to repair"]


def _sample(key: DifferingKey) -> str:
    does = "is removed" if key.status == EXTRA else "is dumped again"
    return (
        f"{key.status}  {', '.join(key.key)}: {does}" if key.status != DUPLICATE else f"duplicate  {key.key}"
    )


def outcome(
    before: Differing, steps: Sequence[RepairStep], requests: Sequence[DumpRequest], after: Differing
) -> Outcome:
    """Compares what was to be repaired with a later verification of the same tables."""
    targets = {step.target for step in steps}
    wanted = {(key.table, key.key) for key in before.keys if key.table in targets}
    left = [key for key in after.keys if (key.table, key.key) in wanted]
    others = Counter(key.table for key in after.keys if (key.table, key.key) not in wanted)
    return Outcome(
        before=_by_table([key for key in before.keys if key.table in targets]),
        after=_by_table(left),
        others=dict(others),
        requests=tuple((each.id, each.state.value, each.reason) for each in requests),
        left=tuple((key.table, key.status, key.key) for key in left[:_SAMPLE]),
        open=tuple(table.table for table in after.tables if table.verdict == "unknown"),
    )


def write_outcome(done: Outcome, directory: Path) -> Path:
    """Writes ``repair.json``, for this user only."""
    path = directory / "repair.json"
    path.touch(mode=0o600)
    path.chmod(0o600)
    verdict = {0: "repaired", 1: "different", 3: "unknown"}[done.exit_code()]
    document = {"format": REPAIR_FORMAT, "verdict": verdict, **asdict(done)}
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _by_table(keys: Sequence[DifferingKey]) -> dict[str, dict[str, int]]:
    found: dict[str, Counter[str]] = {}
    for key in keys:
        found.setdefault(key.table, Counter())[key.status] += 1
    return {table: dict(counts) for table, counts in found.items()}


def _counted(counts: dict[str, int] | Counter[str]) -> str:
    return ", ".join(f"{number:,} {status}" for status, number in sorted(counts.items())) or "nothing differs"
