"""Requests from the live page, carried out as the commands of `migrator dump` carry them out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from migrator.errors import MigratorError, RequestError
from migrator.model.requests.asked import CANCEL, PACE, PAUSE, RESTART, RESUME, START, Asked, Done
from migrator.model.requests.request import RequestBook, new_token
from migrator.model.requests.words import pace_line, request_line
from migrator.ports.requests import RequestStore
from migrator.run.request_check import pace_problem

Start = Callable[[tuple[str, ...]], RequestBook]
"""Checks names of source tables against mapping and source, and files a request for them as the book's last one."""
Keep = Callable[[str, str, str], None]
"""Keeps an act, a reason and a detail in the migration's history. Raises ``MigratorError`` where it can't."""
_STEPS: dict[str, Callable[[RequestBook, str], RequestBook]] = {
    PAUSE: RequestBook.pause,
    RESUME: RequestBook.resume,
    CANCEL: RequestBook.cancel,
    RESTART: lambda book, request: book.restart(request, new_token()),
}


class Desk:
    """Files what is asked for where the leader looks, and keeps it in the history.

    Args:
        store: the dump requests, made for each request: another thread uses it.
        start: files a new one.
        keep: keeps acts.
    """

    def __init__(self, store: Callable[[], RequestStore], start: Start, keep: Keep):
        self._store, self._start, self._keep = store, start, keep

    def __call__(self, asked: Asked) -> Done:
        """Carries it out. Raises ``RequestError`` for what is refused, and what store and source raise."""
        words = self._filed(asked)
        try:
            self._keep(f"dump {asked.act}", asked.reason, f"{words} (on the live page, {asked.by})")
        except MigratorError as error:
            return Done(words, f"the history lacks this: {error}")
        return Done(words)

    def _filed(self, asked: Asked) -> str:
        if asked.act == START:
            return f"started {request_line(self._start(asked.tables).requests[-1])}"
        store = self._store()
        if asked.act == PACE:
            return pace_line(store.update(lambda book: _paced(book, asked)))
        step = _STEPS[asked.act]
        return request_line(store.update(lambda book: step(book, asked.request)).request(asked.request))


def _paced(book: RequestBook, asked: Asked) -> RequestBook:
    pace = replace(book.pace, **dict(asked.pace))  # type: ignore[arg-type]
    if problem := pace_problem(pace):
        raise RequestError(
            "the pace is refused",
            where=", ".join(name for name, _ in asked.pace),
            cause=problem,
            remedy="see docs/how-to/pace.md",
        )
    return replace(book, pace=pace)
