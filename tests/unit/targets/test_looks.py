"""The statements by which PostgreSQL is asked which targets have rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from migrator.adapters.targets.postgres.looks import Looks

KEYS = {"a": ("k",), "b": ()}
SEARCHED = (
    '(SELECT 0, ctid::text FROM "s"."a" ORDER BY "k" DESC LIMIT 1)'
    ' UNION ALL (SELECT 1, ctid::text FROM "s"."b" LIMIT 1)'
)
SEEN = (
    '(SELECT 0 FROM "s"."a" WHERE ctid >= $1::text::tid AND ctid < $2::text::tid LIMIT 1)'
    ' UNION ALL (SELECT 1 FROM "s"."b" WHERE ctid >= $3::text::tid AND ctid < $4::text::tid LIMIT 1)'
)


class Server:
    """Answers in their order, and what was asked."""

    def __init__(self, *answers: Sequence[tuple[Any, ...]]) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, list[object]]] = []

    def __call__(self, statement: str, parameters: Sequence[object]) -> Sequence[tuple[Any, ...]]:
        self.asked.append((statement, [*parameters]))
        return self._answers.pop(0)


@pytest.mark.parametrize("page", ["(70,3)", b"(70,3)"])
def test_it_asks_for_the_pages_where_rows_were_seen_and_searches_behind_them(page: object) -> None:
    server = Server([(0, page), (1, "(0,1)")], [(0,), (1,)], [(1,)], [(0, "(9,1)")], [(0,)])
    there = Looks("s").rows_there(server, KEYS)
    assert there(["a", "b"]) == {"a", "b"}
    assert there(["a", "b"]) == {"a", "b"}
    assert there(["a", "b"]) == {"a", "b"}, "the page of the first has none any more"
    assert there(["a"]) == {"a"}
    pages = ["(70,0)", "(71,0)", "(0,0)", "(1,0)"]
    assert server.asked[:3] == [(SEARCHED, []), (SEEN, pages), (SEEN, pages)]
    assert server.asked[3] == (SEARCHED.partition(" UNION")[0], [])
    assert server.asked[4] == (SEEN.partition(" UNION")[0], ["(9,0)", "(10,0)"])


def test_a_table_without_rows_is_searched_each_time() -> None:
    server = Server([], [], [(0, "(3,1)")])
    there = Looks("s").rows_there(server, KEYS)
    assert [there(["b"]), there(["b"]), there(["b"]), there([])] == [set(), set(), {"b"}, set()]
    assert len(server.asked) == 3
