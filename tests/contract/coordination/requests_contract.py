"""What every store of dump requests must do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.errors import RequestError
from migrator.model.requests.request import WHOLE, Pace, RequestBook, RequestState, Scope
from migrator.model.table import TableId
from migrator.ports.requests import RequestStore

TABLE = TableId("public", "orders")
SCOPES = (
    WHOLE,
    Scope(low=("a", b"\x00\xff"), high=None),
    Scope(keys=(("1",), ("nul-free \ud800",))),
    Scope(predicate="name = 'ü' -- ok"),
)

Stores = Callable[[], RequestStore]
"""Another process's view of one and the same store."""


class RequestsContract:
    """Subclass it and implement ``stores``."""

    def stores(self, directory: Path) -> Stores:
        raise AssertionError("a subclass says which store")

    def test_a_new_store_holds_an_empty_book(self, tmp_path: Path) -> None:
        assert self.stores(tmp_path)().read() == RequestBook()

    def test_what_one_wrote_others_read_whole(self, tmp_path: Path) -> None:
        stores = self.stores(tmp_path)
        book = RequestBook()
        for scope in SCOPES:
            book = stores().update(lambda old, new=scope: old.start((TABLE,), new))  # type: ignore[misc]
        book = stores().update(lambda old: replace(old, pace=Pace(7, 0.25, 1.5)).cancel("r2"))
        book = stores().update(lambda old: old.close("r3.1", RequestState.FAILED, "why\nnot"))
        assert stores().read() == book
        assert [request.scope for request in book.requests] == list(SCOPES)
        assert [request.id for request in book.requests] == ["r1", "r2", "r3", "r4"]

    def test_a_refused_change_changes_nothing(self, tmp_path: Path) -> None:
        stores = self.stores(tmp_path)
        book = stores().update(lambda old: old.start((TABLE,), WHOLE))
        with pytest.raises(RequestError, match="no dump request 'r9'"):
            stores().update(lambda old: old.pause("r9"))
        assert stores().read() == book

    def test_no_update_is_lost(self, tmp_path: Path) -> None:
        stores, each, writers = self.stores(tmp_path), 20, 4
        seen: list[RequestBook] = []

        def write() -> None:
            store = stores()
            for _ in range(each):
                seen.append(store.update(lambda old: old.start((TABLE,), WHOLE)))

        threads = [threading.Thread(target=write) for _ in range(writers)]
        for thread in threads:
            thread.start()
        reader = stores()
        while any(thread.is_alive() for thread in threads):
            book = reader.read()
            assert book.started == len(book.requests), "a reader sees whole books only"
        for thread in threads:
            thread.join()
        assert sorted(book.started for book in seen) == list(range(1, each * writers + 1))
        assert [request.id for request in stores().read().requests] == [
            f"r{number}" for number in range(1, each * writers + 1)
        ]
