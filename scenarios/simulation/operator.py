"""The operator: asks for further dumps, several at once, and changes its mind."""

from __future__ import annotations

from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import RequestError
from migrator.model.requests.request import WHOLE, RequestBook, RequestState, Scope
from scenarios.simulation.dice import Dice
from scenarios.simulation.tables import COUNTER, REGISTER, SCHEMAS

_MOST_OPEN = 3
_STEPS = (
    RequestBook.pause,
    RequestBook.resume,
    RequestBook.resume,
    RequestBook.cancel,
    RequestBook.restart,
)


class Operator:
    """One operator.

    Args:
        store: where it leaves its requests.
    """

    def __init__(self, store: MemoryRequests):
        self._store = store

    def act(self, dice: Dice) -> str:
        """Starts a request, or tells one that is there something else; what it did, in words."""
        book = self._store.read()
        still_open = [request for request in book.requests if request.is_open()]
        if len(still_open) < _MOST_OPEN and dice.below(2) == 0:
            return self._start(dice)
        if not book.requests:
            return "waits"
        chosen, step = dice.one_of(book.requests[-_MOST_OPEN:]), dice.one_of(_STEPS)
        try:
            self._store.update(lambda old: step(old, chosen.id))
        except RequestError as error:
            return error.what
        return f"{step.__name__} {chosen.id}"

    def finish(self) -> None:
        """Lets every request that is open go on."""
        for request in self._store.read().requests:
            if request.state is RequestState.PAUSED:
                self._store.update(lambda old, paused=request.id: old.resume(paused))  # type: ignore[misc]

    def _start(self, dice: Dice) -> str:
        low, high = 1 + dice.below(4), 3 + dice.below(5)
        listed = tuple((str(key),) for key in dice.some_of(range(1, 8), 1 + dice.below(5)))
        tables, scope = dice.one_of(
            (
                (tuple(SCHEMAS), WHOLE),
                ((REGISTER.id, COUNTER.id), WHOLE),
                ((REGISTER.id,), WHOLE),
                ((REGISTER.id,), Scope(low=(str(low),), high=(str(high),))),
                ((REGISTER.id,), Scope(low=(str(low),))),
                ((REGISTER.id,), Scope(keys=listed)),
            )
        )
        self._store.update(lambda old: old.start(tables, scope))
        return f"asks for {', '.join(table.name for table in tables)}, {scope.text()}"
