"""Two lanes: what both see is one, and the failure of one ends the other."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from migrator.errors import VerifyError
from verify.chunk_keys import INTEGER, KeyColumn, KeyRange, Piece
from verify.chunk_reader import SourceChunks, TargetChunks
from verify.chunk_sweep import Sweep
from verify.lanes import ROWS_MIN, middle, unequal
from verify.pairing import Stopped


class Lane:
    """A sweep that fails, or goes on until it is stopped."""

    def __init__(self, fails: bool):
        self._fails, self._stopped = fails, threading.Event()

    def unequal(self, within: KeyRange) -> list[Piece]:
        if self._fails:
            raise VerifyError("the server is gone")
        assert self._stopped.wait(30), "nobody stopped it"
        raise Stopped

    def stop(self) -> None:
        self._stopped.set()


@pytest.mark.parametrize("first", [True, False])
def test_one_lane_s_failure_ends_the_other(first: bool) -> None:
    own, other = cast(Sweep, Lane(first)), cast(Sweep, Lane(not first))
    with pytest.raises(VerifyError, match="the server is gone"):
        unequal(own, other, ("5",))


class Ends:
    def __init__(self, ends: tuple[str, str] | None):
        self._ends = ends

    def ends(self, _: KeyColumn) -> tuple[str, str] | None:
        return self._ends


class Rows:
    def __init__(self, rows: int):
        self._rows = rows

    def count(self, upto: int) -> int:
        return min(self._rows, upto)


@pytest.mark.parametrize(
    ("ends", "kind", "rows", "wanted"),
    [
        (("1", "100"), INTEGER, ROWS_MIN, ("50",)),
        (("-9223372036854775808", "9223372036854775807"), INTEGER, ROWS_MIN, ("-1",)),
        (("1", "100"), INTEGER, ROWS_MIN - 1, None),
        (("1", "100"), "date", ROWS_MIN, None),
        (("7", "7"), INTEGER, ROWS_MIN, None),
        (("1", "NaN"), INTEGER, ROWS_MIN, None),
        (None, INTEGER, ROWS_MIN, None),
    ],
)
def test_a_large_table_is_cut_in_the_middle_of_its_keys(
    ends: tuple[str, str] | None, kind: str, rows: int, wanted: tuple[str] | None
) -> None:
    source, target = cast(SourceChunks, Ends(ends)), cast(TargetChunks, Rows(rows))
    assert middle(source, [KeyColumn("id", "id", kind)], target) == wanted
