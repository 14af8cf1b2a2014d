"""Histories written down by hand, row for row: the smallest that a checker must object to, or must not."""

from __future__ import annotations

import json
from typing import Any

from tests.histories.made import Record, Records, order_of, row
from verify.history.history import CHUNK, LOG, OK, PUT, TrackedTable
from verify.history.judge import ALL, judge
from verify.history.result import CheckResult, Outcome

REGISTER = (TrackedTable("register"),)


class Tiny:
    """A history written down by hand: one table, all keys covered from the first commit on."""

    def __init__(self, table: TrackedTable = REGISTER[0], /, **initial: int | None):
        self.records = Records(tracked=(table,))
        self.table = table.name
        self.position = 0
        self.segment = 0
        self.commits = 0
        for number, (key, value) in enumerate(initial.items()):
            cell = row(self.table, key.lstrip("k"), (0, number, value))
            self.records["log"].append({"position": 0, "order": 0, "index": number, **cell})
            self.records["final_source"].append(cell)

    def row(self, key: str, session: int, number: int, value: int | None = None, kind: int = PUT) -> Record:
        return row(self.table, key, (session, number, value), kind)

    def write(self, *changes: Record, outcome: str = OK) -> None:
        self.position += 1
        for index, change in enumerate(changes):
            at = {"position": self.position, "order": order_of(self.position), "index": index}
            self.records["log"].append({**at, **change})
            self.records["operations"].append({**change, "outcome": outcome})

    def deliver(
        self, origin: str, *changes: Record, segment: int | None = None, position: int | None = None
    ) -> None:
        self.segment = segment or self.segment + 1
        order = order_of(position or self.position) if origin == LOG else None
        self.records["deliveries"].extend(
            {"segment": self.segment, "origin": origin, "order": order, "index": 0, **change}
            for change in changes
        )

    def commit(
        self, *changes: Record, position: int | None = None, covered: Any = True, epoch: int = 1
    ) -> None:
        self.commits += 1
        self.records["commits"].append(
            {
                "commit": self.commits,
                "epoch": epoch,
                "segment": self.segment,
                "order": order_of(self.position if position is None else position),
                "covered": json.dumps({self.table: covered}),
            }
        )
        self.records["changes"].extend({"commit": self.commits, **change} for change in changes)

    def rogue(self, change: Record) -> None:
        self.records["changes"].append({"commit": 0, **change})

    def judged(self, code: str) -> CheckResult:
        return judge(self.records.history(), [code])[0]

    def violated(self) -> set[str]:
        codes = [code for code in ALL if code not in ("D7", "D8")]
        return {
            each.code for each in judge(self.records.history(), codes) if each.outcome is Outcome.VIOLATED
        }


def started(**initial: int | None) -> Tiny:
    """Its initial rows dumped and committed at position 0."""
    tiny = Tiny(**initial)
    rows = [{name: each[name] for name in row("", "", (0, 0, 0))} for each in tiny.records["log"]]
    tiny.deliver(CHUNK, *rows)
    tiny.commit(*rows, position=0)
    return tiny


def two_versions() -> tuple[Tiny, Record, Record, Record]:
    tiny = started(k17=None)
    old, first, second = tiny.row("17", 0, 0), tiny.row("17", 1, 1), tiny.row("17", 1, 2)
    tiny.write(first)
    tiny.write(second)
    return tiny, old, first, second
