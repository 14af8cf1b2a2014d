"""Pieces that are handed out: together all keys, each once, and none with more rows than was asked for."""

from __future__ import annotations

import bisect
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from verify.readers.chunk_keys import DATE, INTEGER, Key, KeyRange
from verify.tables.sweeps.cuts import Cuts

ROWS = 10


class Table:
    """Whole-number keys in order, and how often a piece's end was looked for."""

    def __init__(self, keys: Sequence[int]):
        self._keys = keys
        self.walks = 0

    def end(self, within: KeyRange, rows: int) -> Key | None:
        assert within.upto is None
        self.walks += 1
        place = self._place(within.after) + rows - 1
        return (str(self._keys[place]),) if place < len(self._keys) else None

    def rows(self, piece: KeyRange) -> int:
        upto = len(self._keys) if piece.upto is None else self._place(piece.upto)
        return upto - self._place(piece.after)

    def swept(self, cuts: Cuts, rows: int = ROWS) -> list[KeyRange]:
        found = []
        while (piece := cuts.next(rows, self.end)) is not None:
            cuts.found(piece, self.rows(piece))
            found.append(piece)
        return found

    def _place(self, key: Key | None) -> int:
        return 0 if key is None else bisect.bisect_right(self._keys, int(key[0]))


def assert_all_keys_once(pieces: Sequence[KeyRange]) -> None:
    assert pieces[0].after is None
    assert pieces[-1].upto is None
    assert [piece.after for piece in pieces[1:]] == [piece.upto for piece in pieces[:-1]]
    assert None not in [piece.upto for piece in pieces[:-1]]


HOLES = [*range(1, 500), *range(10**6, 10**6 + 300, 7), *range(10**9, 10**9 + 500), 2**63 - 1]


@pytest.mark.parametrize(
    "keys",
    [
        range(1, 1001),
        range(-500, 500, 2),
        range(0, 10**6, 1000),
        HOLES,
        range(2**63 - 505, 2**63 + 500),
        range(2**63 - 505, 2**63),
        [7],
        [],
    ],
    ids=["dense", "every other", "sparse", "holes", "beyond 64 bits", "the last numbers", "one", "none"],
)
@pytest.mark.parametrize("kind", [INTEGER, DATE])
def test_pieces_are_all_keys_and_none_is_too_large(keys: Sequence[int], kind: str) -> None:
    table = Table(keys)
    pieces = table.swept(Cuts([kind]))
    assert_all_keys_once(pieces)
    assert max(map(table.rows, pieces)) <= ROWS
    assert len(pieces) <= len(keys) / ROWS * 2 + 10
    reckoned = [int(piece.upto[0]) for piece in pieces if piece.upto is not None]
    assert all(upto in keys or upto < 2**63 for upto in reckoned), "a server would take it for another type"


def test_ends_of_close_keys_are_reckoned() -> None:
    table = Table(range(1, 1001))
    pieces = table.swept(Cuts([INTEGER]))
    assert table.walks <= 4
    assert pieces[50] == KeyRange((str(ROWS * 50),), (str(ROWS * 51),))


@pytest.mark.parametrize("kinds", [[DATE], [INTEGER, INTEGER]])
def test_ends_of_other_keys_are_looked_for(kinds: Sequence[str]) -> None:
    table = Table(range(1, 1001))
    cuts = Cuts(kinds)
    pieces = table.swept(cuts)
    assert table.walks == len(pieces) == 101


def test_ends_of_keys_far_from_one_another_are_looked_for() -> None:
    table = Table(range(0, 3000, 3))
    assert table.walks == 0
    pieces = table.swept(Cuts([INTEGER]))
    assert table.walks == len(pieces) == 101


def test_no_number_is_reckoned_from_one_that_is_none() -> None:
    ends = iter([("NaN",), None])
    cuts = Cuts([INTEGER])
    assert cuts.next(5, lambda *_: next(ends)) == KeyRange(None, ("NaN",))
    assert cuts.next(5, lambda *_: next(ends)) == KeyRange(("NaN",), None)
    assert cuts.next(5, lambda *_: next(ends)) is None


def test_sweeps_at_once_share_all_keys() -> None:
    chance = random.Random(5)
    keys = [*sorted(chance.sample(range(100_000), 30_000)), *range(200_000, 230_000)]
    cuts, tables = Cuts([INTEGER]), [Table(keys) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda table: table.swept(cuts), tables)
    pieces = [piece for each in found for piece in each]
    pieces.sort(key=lambda piece: int(piece.after[0]) if piece.after else -1)
    assert_all_keys_once(pieces)
