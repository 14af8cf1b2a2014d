"""The users of the old application: one transaction at a time each, every row stamped with session and number."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from migrator.model.table import TableId
from scenarios.simulation.dice import Dice
from scenarios.simulation.source import Entry, Rows, Source, Write
from scenarios.simulation.tables import CHECKING, COUNTER, REGISTER, SAVINGS, Stored
from verify.history.history import DELETE, FAILED, OK, PUT, UNKNOWN

REGISTER_KEYS = range(1, 8)
ACCOUNTS = range(1, 4)
COUNTERS = range(1, 3)
_ASIDE = 100
"""The highest ordinary key. A swap puts a row aside under a higher key for a moment."""
_OPENING_BALANCE = 100


def initial_rows() -> Rows:
    """Returns the contents of the tables before the run: session 0."""
    return {
        REGISTER.id: {key: Stored(0, key, 0) for key in REGISTER_KEYS if key % 2},
        CHECKING.id: {key: Stored(0, key, _OPENING_BALANCE) for key in ACCOUNTS},
        SAVINGS.id: {key: Stored(0, key, _OPENING_BALANCE) for key in ACCOUNTS},
        COUNTER.id: {key: Stored(0, key, 0) for key in COUNTERS},
    }


@dataclass(frozen=True, slots=True)
class Tried:
    """One row that a client tried to write, for the history's OPERATIONS; provenance as there."""

    session: int
    number: int
    transaction: int
    table: str
    key: int
    kind: int
    value: int
    invoked_us: int


@dataclass(slots=True)
class Client:
    """One session. It waits for its commit to become visible before it goes on, unless its connection breaks.

    Attributes:
        session: from 1.
        source: where it writes.
        truncates: whether it sometimes empties the register by TRUNCATE.
        most_puts: rows of the register that one transaction writes at most.
        tried: every row write, with the log entry that it became (None: rolled back).
        answered: of every transaction, its outcome and when the client learnt it.
    """

    session: int
    source: Source
    truncates: bool = False
    most_puts: int = 3
    tried: list[Tried] = field(default_factory=list)
    answered: dict[int, tuple[str, int]] = field(default_factory=dict)
    _number: int = 0
    _transaction: int = 0
    _waiting: Entry | None = None

    def act(self, dice: Dice) -> None:
        """Learns the outcome of its commit, or tries the next transaction."""
        if self._waiting is not None:
            if self._waiting not in self.source.hidden:
                self._answer(OK)
            elif dice.below(8) == 7:
                self._answer(UNKNOWN)  # the connection broke: the client goes on in a new one
            return
        action = dice.one_of((*_ACTIONS, Client.empty) if self.truncates else _ACTIONS)
        self._invoke(action(self, dice), rolled_back=dice.below(16) == 15)

    def finish(self) -> None:
        """Ends the client's transactions: it learns the last outcome."""
        if self._waiting is not None:
            self._answer(OK if self._waiting not in self.source.hidden else UNKNOWN)

    def _answer(self, outcome: str) -> None:
        self.answered[self._transaction] = (outcome, self.source.clock_us)
        self._waiting = None

    def _invoke(self, writes: list[Write], rolled_back: bool) -> None:
        if not writes:
            return
        self._transaction += 1
        now_us, transaction = self.source.clock_us, self._transaction
        for write in writes:
            self.tried += [
                Tried(row.session, row.number, transaction, write.table.name, key, kind, row.value, now_us)
                for key, kind, row in row_writes(write)
            ]
        if rolled_back:
            self._answer(FAILED)
        else:
            self._waiting = self.source.commit(self.session, writes)

    # -- rows ---------------------------------------------------------------------------------------------------

    def _stored(self, value: int | None = None) -> Stored:
        self._number += 1
        return Stored(self.session, self._number, self._number if value is None else value)

    def _present(self, table: TableId) -> list[int]:
        """Keys of present rows without a lock."""
        locked = self.source.locked
        return [key for key in sorted(self.source.logged[table]) if (table, key) not in locked]

    def _absent(self) -> list[int]:
        table, locked = REGISTER.id, self.source.locked
        rows = self.source.logged[table]
        return [key for key in REGISTER_KEYS if key not in rows and (table, key) not in locked]

    def _image(self, table: TableId, key: int) -> tuple[int, Stored] | None:
        row = self.source.logged[table].get(key)
        return None if row is None else (key, row)

    def _put(self, key: int) -> Write:
        return Write(REGISTER.id, self._image(REGISTER.id, key), (key, self._stored()))

    # -- transactions -------------------------------------------------------------------------------------------

    def put(self, dice: Dice) -> list[Write]:
        """Inserts or updates a few rows of the register."""
        free = [*self._present(REGISTER.id), *self._absent()]
        return [self._put(key) for key in dice.some_of(free, 1 + dice.below(self.most_puts))]

    def delete(self, dice: Dice) -> list[Write]:
        """Deletes rows of the register; other clients may insert them again."""
        chosen = dice.some_of(self._present(REGISTER.id), 1 + dice.below(2))
        return [Write(REGISTER.id, self._image(REGISTER.id, key), None) for key in chosen]

    def empty(self, dice: Dice) -> list[Write]:
        """Every row of the register vanishes at once, while nobody else has a lock on it; some come back with
        it."""
        table, free = REGISTER.id, self._present(REGISTER.id)
        if len(free) != len(self.source.logged[table]) or any(
            name == table for name, _ in self.source.locked
        ):
            return []
        gone = [Write(table, self._image(table, key), None, truncates=True) for key in free]
        back = dice.some_of(REGISTER_KEYS, dice.below(3))
        return gone + [Write(table, None, (key, self._stored())) for key in back if gone]

    def move(self, dice: Dice) -> list[Write]:
        """Gives a row another key."""
        present, absent = self._present(REGISTER.id), self._absent()
        if not present or not absent:
            return []
        old, new = dice.one_of(present), dice.one_of(absent)
        return [Write(REGISTER.id, self._image(REGISTER.id, old), (new, self._stored()))]

    def swap(self, dice: Dice) -> list[Write]:
        """Exchanges the keys of two rows; the first row is put aside for a moment."""
        chosen = dice.some_of(self._present(REGISTER.id), 2)
        if len(chosen) < 2:
            return []
        (one, two), aside = chosen, _ASIDE + self.session
        parked, moved, back = self._stored(), self._stored(), self._stored()
        return [
            Write(REGISTER.id, self._image(REGISTER.id, one), (aside, parked)),
            Write(REGISTER.id, self._image(REGISTER.id, two), (one, moved)),
            Write(REGISTER.id, (aside, parked), (two, back)),
        ]

    def rewrite(self, dice: Dice) -> list[Write]:
        """A large transaction: every free row of the register, some of them twice."""
        writes: dict[int, Stored] = {}
        changes = []
        free = self._present(REGISTER.id)
        for key in [*free, *dice.some_of(free, 2)]:
            before = (key, writes[key]) if key in writes else self._image(REGISTER.id, key)
            writes[key] = self._stored()
            changes.append(Write(REGISTER.id, before, (key, writes[key])))
        return changes

    def transfer(self, dice: Dice) -> list[Write]:
        """Money between two accounts, mostly of different tables; the total stays. Sometimes with a note of it."""
        accounts = [(table.id, key) for table in (CHECKING, SAVINGS) for key in self._present(table.id)]
        chosen = dice.some_of(accounts, 2)
        if len(chosen) < 2:
            return []
        amount = 1 + dice.below(9)
        writes = []
        for (table, key), change in zip(chosen, (-amount, amount), strict=True):
            row = self.source.logged[table][key]
            writes.append(Write(table, (key, row), (key, self._stored(row.value + change))))
        noted = self._present(REGISTER.id) if dice.below(4) == 3 else []
        return writes + [self._put(key) for key in dice.some_of(noted, 1)]

    def count(self, dice: Dice) -> list[Write]:
        """Increments that are not idempotent; a counter may be hit twice in one transaction."""
        free = self._present(COUNTER.id)
        rows = {key: self.source.logged[COUNTER.id][key] for key in free}
        writes = []
        for key in dice.some_of([*free, *free], 1 + dice.below(2)):
            before = rows[key]
            rows[key] = self._stored(before.value + 1 + dice.below(5))
            writes.append(Write(COUNTER.id, (key, before), (key, rows[key])))
        return writes


def row_writes(write: Write) -> list[tuple[int, int, Stored]]:
    """(key, kind, row) as the history has them: a row that changes its key is a DELETE and a PUT."""
    found = []
    if write.before is not None and (write.after is None or write.before[0] != write.after[0]):
        found.append((write.before[0], DELETE, write.before[1]))
    if write.after is not None:
        found.append((write.after[0], PUT, write.after[1]))
    return found


_ACTIONS: tuple[Callable[[Client, Dice], list[Write]], ...] = (
    Client.put,
    Client.put,
    Client.put,
    Client.delete,
    Client.delete,
    Client.move,
    Client.swap,
    Client.rewrite,
    Client.transfer,
    Client.transfer,
    Client.transfer,
    Client.count,
    Client.count,
)
