"""The definitions D1 to D6 written down as plainly as possible: quadratic, on plain records, for small
histories."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from tests.histories.made import Key, Record, Records
from verify.history.history import DELETE, LOG, OK, PUT

UNHEARD_OF = -2
BEFORE_ALL = -(10**9)


def key_of(record: Record) -> Key:
    return record["table"], record["key"]


def cell_of(record: Record) -> tuple[Any, ...]:
    return record["session"], record["number"], record["value"]


@dataclass
class State:
    """One committed state of the target."""

    commit: int
    order: int
    epoch: int
    segment: int
    rows: dict[Key, tuple[Any, ...]]
    judged: set[Key] = field(default_factory=set)
    anew: set[str] = field(default_factory=set)
    """Tables whose dump began anew: judgement of their keys ended, even if it began again at this very state."""


class Naive:
    def __init__(self, records: Records):
        self.records = records
        self.log = records["log"]
        self.numeric = {table.name for table in records.tracked if table.numeric_key}
        self.folds = {table.name for table in records.tracked if table.fold}
        self.keys = {
            key_of(row)
            for name in ("log", "deliveries", "changes", "operations", "final_source", "final_target")
            for row in records[name]
        } | {key_of(row) for row in records["observations"] if row.get("key") is not None}
        self.states = self._states()
        self._judge()

    # -- the target ---------------------------------------------------------------------------------------------

    def _states(self) -> list[State]:
        states: list[State] = []
        rows: dict[Key, tuple[Any, ...]] = {}
        own: dict[int, list[Record]] = {}
        rogue: dict[int, list[Record]] = {}  # by the newest commit that had been seen
        newest = 0
        for change in self.records["changes"]:
            newest = max(newest, change["commit"])
            (own if change["commit"] else rogue).setdefault(newest, []).append(change)
        blank = {"commit": 0, "order": BEFORE_ALL, "epoch": -1, "segment": -1}
        for commit in [blank, *self.records["commits"]]:
            numbers = {name: commit[name] for name in blank}
            if commit["commit"]:
                self._apply(rows, own.get(commit["commit"], []))
                states.append(State(**numbers, rows=dict(rows)))
            if commit["commit"] in rogue:
                self._apply(rows, rogue[commit["commit"]])
                states.append(State(**{**numbers, "commit": 0}, rows=dict(rows)))
        return states

    @staticmethod
    def _apply(rows: dict[Key, tuple[Any, ...]], changes: list[Record]) -> None:
        for change in changes:
            if change["kind"] == PUT:
                rows[key_of(change)] = cell_of(change)
            else:
                rows.pop(key_of(change), None)

    def _judge(self) -> None:
        covered_by = {commit["commit"]: json.loads(commit["covered"]) for commit in self.records["commits"]}
        covered: dict[str, Any] = {}
        judged: set[Key] = set()
        changed = {(each["commit"], key_of(each)) for each in self.records["changes"]}
        for state in self.states:
            if state.commit:
                before, covered = covered, covered_by[state.commit]
                for table in {key[0] for key in self.keys}:
                    if self._fell(table, before.get(table), covered.get(table)):
                        state.anew.add(table)
                        judged = {key for key in judged if key[0] != table}
                delivered = {
                    key_of(row)
                    for row in self.records["deliveries"]
                    if row["origin"] == LOG and self._first_state(row["segment"]) is state
                }
                touched = {key for key in self.keys if (state.commit, key) in changed}
                judged = (
                    judged | delivered | touched | {key for key in self.keys if self._covers(covered, key)}
                )
            state.judged = set(judged)

    def _first_state(self, segment: int) -> State | None:
        return next((state for state in self.states if state.segment >= segment), None)

    def _level(self, table: str, value: Any) -> float:
        if table not in self.numeric:
            return float(value is True)
        return float("inf") if value is True else float("-inf") if value is None else int(value)

    def _fell(self, table: str, before: Any, after: Any) -> bool:
        """Whether fewer of the known keys are covered than before."""
        reach = [self._level(table, value) for value in (before, after)]
        if table not in self.numeric or float("inf") in reach:
            return reach[1] < reach[0]
        counts = [sum(int(key[1]) <= level for key in self.keys if key[0] == table) for level in reach]
        return counts[1] < counts[0]

    def _covers(self, covered: dict[str, Any], key: Key) -> bool:
        level = self._level(key[0], covered.get(key[0]))
        return level >= 1 if key[0] not in self.numeric else int(key[1]) <= level

    # -- versions -----------------------------------------------------------------------------------------------

    def reached(self, index: int) -> int:
        """Rows of the log within the highest position up to a state."""
        order = max(state.order for state in self.states[: index + 1])
        return (
            0
            if order == BEFORE_ALL
            else sum(row["order"] <= order or row["position"] == 0 for row in self.log)
        )

    def due(self, key: Key, prefix: int) -> int:
        return max((index for index in range(prefix) if key_of(self.log[index]) == key), default=-1)

    def deleted(self, key: Key, prefix: int) -> int:
        mine = (index for index in range(prefix) if key_of(self.log[index]) == key)
        return max((index for index in mine if self.log[index]["kind"] == DELETE), default=-1)

    def find(self, record: Record, prefix: int) -> int:
        found = [
            index
            for index, row in enumerate(self.log)
            if key_of(row) == key_of(record)
            and (row["session"], row["number"]) == (record["session"], record["number"])
            and row["kind"] == record["kind"]
        ]
        within = [index for index in found if index < prefix]
        return within[-1] if within else found[0] if found else UNHEARD_OF

    def seen(self, index: int, key: Key) -> int:
        prefix, rows = self.reached(index), self.states[index].rows
        if key not in rows:
            return self.deleted(key, prefix)
        session, number, _ = rows[key]
        record = {"table": key[0], "key": key[1], "session": session, "number": number, "kind": PUT}
        return self.find(record, prefix)

    def source(self, key: Key, prefix: int) -> tuple[Any, ...] | None:
        due = self.due(key, prefix)
        return cell_of(self.log[due]) if due >= 0 and self.log[due]["kind"] == PUT else None

    # -- definitions --------------------------------------------------------------------------------------------

    def violated(self) -> dict[str, bool]:
        judged = [(index, key) for index, state in enumerate(self.states) for key in sorted(state.judged)]
        seen = {pair: self.seen(*pair) for pair in judged}
        return {
            "D1": self._travels(seen) or self._delivered_late(),
            "D2": self._not_monotonic(seen),
            "D3": self._loses(seen),
            "D4": self._phantoms(seen),
            "D5": any(self._fold(index, key) for index, key in judged if key[0] in self.folds),
            "D6": bool(self.torn()) or self._falls() or self._misread(),
        }

    def _travels(self, seen: dict[tuple[int, Key], int]) -> bool:
        for key in self.keys:
            last = -1
            for index, state in enumerate(self.states):
                if key not in state.judged or key[0] in state.anew:
                    last = -1
                if key in state.judged and seen[index, key] != UNHEARD_OF:
                    if seen[index, key] < last:
                        return True
                    last = seen[index, key]
        return False

    def _delivered_late(self) -> bool:
        """No arrangement of each segment's chunk rows among its log rows puts every key's versions in order."""
        deliveries = self.records["deliveries"]
        for key in self.keys:
            mine = [
                (each, self._delivered(index)) for index, each in enumerate(deliveries) if key_of(each) == key
            ]
            mine = [(each, position) for each, position in mine if position != UNHEARD_OF]
            for index, (later, position) in enumerate(mine):
                for earlier, before in mine[:index]:
                    apart = earlier["segment"] != later["segment"]
                    both_log = earlier["origin"] == later["origin"] == LOG
                    if (apart or both_log) and position < before:
                        return True
        return False

    def _delivered(self, index: int) -> int:
        deliveries = self.records["deliveries"]
        each = deliveries[index]
        order = each.get("order")
        if each["origin"] != LOG:
            read = [
                row["order"]
                for row in deliveries
                if row["origin"] == LOG and row["segment"] <= each["segment"]
            ]
            order = max(read, default=-1)
        prefix = sum(row["order"] <= order or row["position"] == 0 for row in self.log)
        version = self.find(each, prefix)
        return version if version < 0 else self.log[version]["position"]

    def _not_monotonic(self, seen: dict[tuple[int, Key], int]) -> bool:
        writes = [index for index, row in enumerate(self.log) if row["session"] and row["kind"] == PUT]
        never = len(self.states)

        def first(write: int) -> int:
            key = key_of(self.log[write])
            shown = (
                index
                for index, state in enumerate(self.states)
                if key in state.judged and seen[index, key] >= write
            )
            return next(shown, never)

        shows = {write: first(write) for write in writes}
        for write in writes:
            key = key_of(self.log[write])
            for later in writes:
                same = self.log[later]["session"] == self.log[write]["session"]
                if same and later > write and shows[later] < never:
                    judged = [
                        index for index in range(shows[later], never) if key in self.states[index].judged
                    ]
                    began = [index for index in range(never) if key in self.states[index].judged][:1]
                    if judged and began and shows[write] > max(shows[later], began[0]):
                        return True
        return False

    def _loses(self, seen: dict[tuple[int, Key], int]) -> bool:
        for (index, key), version in seen.items():
            if version != UNHEARD_OF and version < self.due(key, self.reached(index)):
                return True
        known = {(*key_of(row), row["session"], row["number"], row["kind"]) for row in self.log}
        if any(
            (*key_of(each), each["session"], each["number"], each["kind"]) not in known
            for each in self.records["operations"]
            if each["outcome"] == OK
        ):
            return True
        return self.records.drained and self.reached(len(self.states) - 1) < len(self.log)

    def _phantoms(self, seen: dict[tuple[int, Key], int]) -> bool:
        for (index, key), version in seen.items():
            if key in self.states[index].rows:
                prefix = self.reached(index)
                due = self.due(key, prefix)
                dead = due >= 0 and self.log[due]["kind"] == DELETE
                if version == UNHEARD_OF or version >= prefix or dead:
                    return True
        return any(self._delivered(index) == UNHEARD_OF for index in range(len(self.records["deliveries"])))

    def _fold(self, index: int, key: Key) -> bool:
        here, due = self.states[index].rows.get(key), self.source(key, self.reached(index))
        return (here[2] if here else 0) != (due[2] if due else 0)

    def torn(self) -> set[int]:
        """States that differ from the source at their position."""
        return {
            index
            for index, state in enumerate(self.states)
            if any(state.rows.get(key) != self.source(key, self.reached(index)) for key in state.judged)
        }

    def _falls(self) -> bool:
        pairs = list(zip(self.states, self.states[1:], strict=False))
        return any(after.order < before.order or after.epoch < before.epoch for before, after in pairs)

    def _misread(self) -> bool:
        last: dict[str, int] = {}
        for read in self.records["observations"]:
            if read["order"] < last.get(read["observer"], BEFORE_ALL):
                return True
            last[read["observer"]] = read["order"]
            states = [index for index, state in enumerate(self.states) if state.order == read["order"]]
            if states and self._wrong(read, states):
                return True
        return False

    def _wrong(self, read: Record, states: list[int]) -> bool:
        first = self.states[states[0]]
        if read["name"].startswith("total "):
            tables = {table.name for table in self.records.tracked if f"total {table.total}" == read["name"]}
            covered = [
                json.loads(each["covered"])
                for each in self.records["commits"]
                if each["commit"] == first.commit
            ]
            if not covered or not all(covered[0].get(name) is True for name in tables):
                return False
            keys = [key for key in self.keys if key[0] in tables]
            cells = [self.source(key, self.reached(states[0])) for key in keys]
            return bool(read["value"] != sum(cell[2] for cell in cells if cell))
        if key_of(read) not in first.judged:
            return False
        wanted = cell_of(read) if read["kind"] == PUT else None
        return all(self.states[index].rows.get(key_of(read)) != wanted for index in states)
