"""Transactions of a query log, and the order in which several clients may do them again. Pure but for its lock."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_LOOK_AGAIN_S = 0.2


@dataclass(frozen=True, slots=True)
class Step:
    """One statement with ``%s`` for each of its values, which are texts, or None for NULL."""

    text: str
    values: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """One transaction that a log tells.

    Attributes:
        session: whose it was.
        begins: place of its first statement in the log, from 0.
        ends: place of its end in the log; that of its last statement where each is a transaction of its own.
        settings: statements that had set something for the session by then.
        steps: its statements that write, in order.
        undone: whether its client rolled it back in the end.
    """

    session: str
    begins: int
    ends: int
    settings: tuple[Step, ...]
    steps: tuple[Step, ...]
    undone: bool = False

    def line(self) -> str:
        """The transaction as one line of JSON."""
        steps = [{"statement": one.text, "values": list(one.values)} for one in self.steps]
        found = {"name": f"session {self.session}", "statements": steps, "undone": self.undone}
        return json.dumps(found, ensure_ascii=True)


class Schedule:
    """Hands transactions out to clients that work side by side.

    A transaction begins only after all those that had ended in the log before it began: what it relied on is there
    again. Those that overlapped in the log may overlap again.

    Args:
        transactions: in any order.
    """

    def __init__(self, transactions: Sequence[Recorded]):
        self._waiting = sorted(transactions, key=lambda one: (one.begins, one.ends))
        self._waiting.reverse()  # the next one is the last of the list
        self._under_way: list[Recorded] = []
        self._changed = threading.Condition()
        self.number = len(transactions)

    @property
    def left(self) -> int:
        """The number of transactions that nobody has begun yet."""
        return len(self._waiting)

    def startable(self) -> Recorded | None:
        """The next transaction, if it may begin now; it is under way from then on."""
        with self._changed:
            if not self._waiting or any(one.ends < self._waiting[-1].begins for one in self._under_way):
                return None
            found = self._waiting.pop()
            self._under_way.append(found)
            return found

    def take(self, stopped: Callable[[], bool]) -> Recorded | None:
        """Waits for the next transaction that may begin; None once all are over, or ``stopped`` says so."""
        while not stopped():
            found = self.startable()
            if found is not None or not (self._waiting or self._under_way):
                return found
            with self._changed:
                self._changed.wait(_LOOK_AGAIN_S)
        return None

    def ended(self, transaction: Recorded) -> None:
        """Says that a transaction is over, however it ended."""
        with self._changed:
            self._under_way.remove(transaction)
            self._changed.notify_all()
