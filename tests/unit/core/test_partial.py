"""What is left of a part of a transaction, against the plain rule: the list of its changes from a place on."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from migrator.columnar.text_codec import TextCodec
from migrator.core.partial import rest_of
from migrator.model.event import ChangeRun, TransactionPart
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema

SCHEMA = TableSchema(TableId("s", "t"), (Column("k", "string", False, "text"),), ("k",))
CODEC = TextCodec(SCHEMA)


def items_of(part: TransactionPart) -> list[object]:
    return [item for run in part.runs for item in run.items]


@given(
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(0, 5),
    st.integers(0, 20),
    st.booleans(),
)
def test_the_rest_is_the_changes_from_a_place_on(
    lengths: list[int], first: int, index: int, last: bool
) -> None:
    numbers = iter(range(100))
    runs = tuple(ChangeRun(CODEC, tuple(next(numbers) for _ in range(length)), length) for length in lengths)
    part = TransactionPart((7,), Position(7, "7"), 0, first, runs, last)
    rest = rest_of(part, index)
    known = min(max(0, index - first), sum(lengths))
    assert items_of(rest) == items_of(part)[known:]
    assert all(run.items for run in rest.runs), "a run without a change is none"
    assert rest.first_index == first + known, "its place is that of its first change, whatever was cut off"
    assert rest.first_index + rest.size() == first + part.size()
    assert rest.last == last
