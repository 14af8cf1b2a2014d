"""Small random histories of a correct pipeline, as plain records that tests then corrupt."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from verify.history.history import (
    CHUNK,
    DELETE,
    LOG,
    OK,
    PUT,
    SCHEMAS,
    Description,
    History,
    TrackedTable,
    table_of,
)
from verify.history.judge import judge
from verify.history.result import Outcome

Record = dict[str, Any]
Cell = tuple[int, int, int | None]
"""Session, number, value."""
TABLES = (
    TrackedTable("register"),
    TrackedTable("counter", fold=True),
    TrackedTable("account", total="bank"),
    TrackedTable("note", numeric_key=False),
)
KEYS = {
    "register": [str(key) for key in range(7, 13)],  # 10 sorts before 9 as a text
    "counter": ["1", "2"],
    "account": ["1", "2", "3"],
    "note": ["a", "B,1", "ü"],
}


@dataclass
class Records:
    """A history as lists of records."""

    tables: dict[str, list[Record]] = field(default_factory=lambda: {name: [] for name in SCHEMAS})
    tracked: tuple[TrackedTable, ...] = TABLES
    drained: bool = True
    halted: str = ""

    def __getitem__(self, name: str) -> list[Record]:
        return self.tables[name]

    def history(self) -> History:
        made = {
            name: table_of(
                name, {column: [row.get(column) for row in rows] for column in SCHEMAS[name].names}
            )
            for name, rows in self.tables.items()
        }
        description = Description(
            "made", "simulation", 0, self.tracked, drained=self.drained, halted=self.halted
        )
        return History(description, **made)


def row(table: str, key: str, cell: Cell, kind: int = PUT) -> Record:
    return {
        "table": table,
        "key": key,
        "session": cell[0],
        "number": cell[1],
        "kind": kind,
        "value": cell[2],
    }


Key = tuple[str, str]


class Maker:
    """One seed's correct run: clients, a log reader, a chunk reader and an applier take turns."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.out = Records()
        self.source: dict[Key, Cell] = {}
        self.target: dict[Key, Cell] = {}
        self.transactions: list[list[Record]] = []  # what the log holds; index + 1 is the position
        self.states: list[dict[Key, Cell]] = []  # the source after each position
        self.numbers = dict.fromkeys(range(1, 4), 0)
        self.read = 0
        self.segments: list[Record] = []
        self.applied = 0
        self.dump = {table.name: [False, ""] for table in TABLES}  # done, last key
        self.open: Record = self._segment()
        for table, keys in KEYS.items():
            for number, key in enumerate(keys):
                if table not in ("register", "note") or self.rng.random() < 0.8:
                    self.source[table, key] = (0, number, 100 if table == "account" else 0)
        self.states.append(dict(self.source))
        self.out["log"].extend(
            {"position": 0, "order": 0, "index": index, **row(table, key, cell)}
            for index, ((table, key), cell) in enumerate(self.source.items())
        )

    def _segment(self) -> Record:
        return {"log": [], "chunk": [], "read": self.read}

    def go(self, steps: int = 60) -> Records:
        actions = [self.write, self.write, self.deliver, self.deliver, self.chunk, self.flush, self.apply]
        for _ in range(steps):
            self.rng.choice(actions)()
        while self.read < len(self.transactions):
            self.deliver()
        while not all(done for done, _ in self.dump.values()):
            self.chunk()
        self.flush()
        while self.applied < len(self.segments):
            self.apply()
        self.out["final_source"].extend(row(*key, cell) for key, cell in self.source.items())
        self.out["final_target"].extend(row(*key, cell) for key, cell in self.target.items())
        self.out["faults"].append(
            {"name": "kill_pipeline", "point": "", "fired": True, "fired_us": 5, "healed_us": 6}
        )
        return self.out

    # -- clients ------------------------------------------------------------------------------------------------

    def write(self) -> None:
        session = self.rng.choice(list(self.numbers))
        changes: list[Record] = []
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self.rng.choice((self._put, self._put, self._delete, self._move, self._count, self._transfer))(
                session, changes
            )
        if not changes:
            return
        self.transactions.append(changes)
        self.states.append(dict(self.source))
        position = len(self.transactions)
        for index, change in enumerate(changes):
            record = {"position": position, "order": order_of(position), "index": index, **change}
            self.out["log"].append({**record, "committed_at_us": position})
            self.out["operations"].append({**change, "transaction": position, "outcome": OK})

    def _cell(self, session: int, value: int | None = None) -> Cell:
        self.numbers[session] += 1
        return session, self.numbers[session], value

    def _set(self, key: Key, cell: Cell, changes: list[Record]) -> None:
        self.source[key] = cell
        changes.append(row(*key, cell))

    def _drop(self, key: Key, changes: list[Record]) -> Cell:
        cell = self.source.pop(key)
        changes.append(row(*key, cell, DELETE))
        return cell

    def _any(self) -> Key:
        table = self.rng.choice(("register", "note"))
        return table, self.rng.choice(KEYS[table])

    def _put(self, session: int, changes: list[Record]) -> None:
        self._set(self._any(), self._cell(session), changes)

    def _delete(self, _: int, changes: list[Record]) -> None:
        key = self._any()
        if key in self.source:
            self._drop(key, changes)

    def _move(self, _: int, changes: list[Record]) -> None:
        """The row keeps its provenance, so the same one can come to stand in the log twice."""
        old, new = self._any(), self._any()
        if old in self.source and new not in self.source and old[0] == new[0]:
            self._set(new, self._drop(old, changes), changes)

    def _count(self, session: int, changes: list[Record]) -> None:
        key = ("counter", self.rng.choice(KEYS["counter"]))
        self._set(key, self._cell(session, (self.source[key][2] or 0) + self.rng.randint(1, 9)), changes)

    def _transfer(self, session: int, changes: list[Record]) -> None:
        first, second = self.rng.sample(KEYS["account"], 2)
        amount = self.rng.randint(1, 9)
        for key, moved in ((first, -amount), (second, amount)):
            value = (self.source["account", key][2] or 0) + moved
            self._set(("account", key), self._cell(session, value), changes)

    # -- capture ------------------------------------------------------------------------------------------------

    def deliver(self) -> None:
        if self.read < len(self.transactions):
            self.read += 1
            self.open["log"] += [
                {"order": order_of(self.read), "index": index, **change}
                for index, change in enumerate(self.transactions[self.read - 1])
            ]
            self.open["read"] = self.read

    def chunk(self) -> None:
        """Reads two rows at a position that the log reader has passed; rows touched since are dropped."""
        waiting = [table for table in TABLES if not self.dump[table.name][0]]
        if not waiting:
            return
        table = self.rng.choice(waiting)
        seen = self.rng.randint(max(0, self.read - 4), self.read)
        state = self.states[seen]
        sort: Callable[[str], Any] = int if table.numeric_key else str
        last = str(self.dump[table.name][1])
        keys = sorted((key for name, key in state if name == table.name), key=sort)
        keys = [key for key in keys if last == "" or sort(key) > sort(last)][:2]
        touched = {
            (each["table"], each["key"])
            for changes in self.transactions[seen : self.read]
            for each in changes
        }
        for key in keys:
            self.dump[table.name][1] = key
            if (table.name, key) not in touched:
                self.open["chunk"].append(row(table.name, key, state[table.name, key]))
        if len(keys) < 2:
            self.dump[table.name][0] = True

    def flush(self) -> None:
        segment = self.open
        segment["covered"] = {
            name: True if done else last or None for name, (done, last) in self.dump.items()
        }
        self.segments.append(segment)
        number = len(self.segments)
        log = [{"segment": number, "origin": LOG, **each} for each in segment["log"]]
        chunk = [{"segment": number, "origin": CHUNK, **each} for each in segment["chunk"]]
        self.out["deliveries"].extend(log + chunk if self.rng.random() < 0.5 else chunk + log)
        self.open = self._segment()

    # -- apply --------------------------------------------------------------------------------------------------

    def apply(self) -> None:
        """One target transaction of a few segments: their chunk rows first, then the log."""
        taken = self.segments[self.applied : self.applied + self.rng.randint(1, 3)]
        if not taken:
            return
        self.applied += len(taken)
        before = dict(self.target)
        for each in [each for segment in taken for each in segment["chunk"]]:
            self.target[each["table"], each["key"]] = (each["session"], each["number"], each["value"])
        for each in [each for segment in taken for each in segment["log"]]:
            key = each["table"], each["key"]
            if each["kind"] == PUT:
                self.target[key] = (each["session"], each["number"], each["value"])
            else:
                self.target.pop(key, None)
        commit = len(self.out["commits"]) + 1
        at_least = self.out["commits"][-1]["order"] if self.out["commits"] else 0
        order = max(at_least, order_of(taken[-1]["read"]) + self.rng.choice((0, 0, 1)))
        self.out["commits"].append(
            {
                "commit": commit,
                "epoch": 1 + commit // 4,
                "segment": self.applied,
                "order": order,
                "covered": json.dumps(taken[-1]["covered"]),
                "committed_at_us": commit,
            }
        )
        for key in {**before, **self.target}:
            if self.target.get(key) != before.get(key):
                cell, kind = (self.target[key], PUT) if key in self.target else (before[key], DELETE)
                self.out["changes"].append({"commit": commit, **row(*key, cell, kind)})
        self._observe(order, commit)

    def _observe(self, order: int, commit: int) -> None:
        read = {"at_us": commit, "observer": "reader", "snapshot": commit, "order": order}
        if self.rng.random() < 0.7:
            total = sum(cell[2] or 0 for key, cell in self.target.items() if key[0] == "account")
            self.out["observations"].append({**read, "name": "total bank", "value": total, "kind": PUT})
        key = self._any()
        seen = row(*key, self.target[key]) if key in self.target else row(*key, (0, 0, None), DELETE)
        self.out["observations"].append({**read, "name": f"row {key[0]}", **seen})


def order_of(position: int) -> int:
    """With gaps, and not from 0."""
    return 100 + 3 * position if position else 0


def make(seed: int, steps: int = 60) -> Records:
    return Maker(seed).go(steps)


def busy_seed() -> int:
    """The first seed whose history has everything that must have happened."""
    return next(
        seed for seed in range(100) if judge(make(seed).history(), ["D8"])[0].outcome is Outcome.HOLDS
    )
