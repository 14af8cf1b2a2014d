"""The visibility rule, also across the 32-bit wrap of transaction numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.postgres.chunks.witness import SnapshotWitness
from migrator.errors import SourceError

_HALF = 2**31


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[SnapshotWitness, int]:
    """A snapshot and a 64-bit xid that can occur beside it: nearer than 2^31 to its xmax."""
    xmax = draw(st.one_of(st.integers(2**31, 2**45), st.integers(2**32 - 50, 2**32 + 50)))
    xmin = xmax - draw(st.integers(0, 40))
    running = draw(st.frozensets(st.integers(0, 39))) if xmin < xmax else frozenset()
    xip = frozenset(xmin + offset for offset in running if xmin + offset < xmax)
    distance = draw(st.one_of(st.integers(-60, 60), st.integers(-_HALF, _HALF - 1)))
    return SnapshotWitness(xmin, xmax, xip), xmax + distance


@given(snapshots())
def test_contains_what_the_64_bit_rule_says(case: tuple[SnapshotWitness, int]) -> None:
    witness, xid = case
    visible = xid < witness.xmin or (xid < witness.xmax and xid not in witness.xip)
    assert witness.contains((xid % 2**32,)) == visible


@given(snapshots(), st.integers(0, 50))
def test_a_later_snapshot_contains_what_an_earlier_one_does(
    case: tuple[SnapshotWitness, int], more: int
) -> None:
    earlier, xid = case
    later = SnapshotWitness(earlier.xmin, earlier.xmax + more, earlier.xip)
    if abs(xid - earlier.xmax) < _HALF - 100 and earlier.contains((xid % 2**32,)):
        assert later.contains((xid % 2**32,))


def test_last_xid_before_the_wrap_seen_from_beyond_it() -> None:
    last = 2**32 - 1
    beyond = SnapshotWitness(last, 2**32 + 5, frozenset({last}))
    assert not beyond.contains((last,))
    assert beyond.contains((last - 1,))
    assert beyond.contains((3,))
    assert not beyond.contains((5,))


def test_parses_the_servers_text() -> None:
    assert SnapshotWitness.parse("752:752:") == SnapshotWitness(752, 752, frozenset())
    assert SnapshotWitness.parse("10:20:10,14,15") == SnapshotWitness(10, 20, frozenset({10, 14, 15}))


@pytest.mark.parametrize("text", ["", "1:2", "a:b:c", "1:2:x"])
def test_refuses_other_text(text: str) -> None:
    with pytest.raises(SourceError, match="is not a snapshot"):
        SnapshotWitness.parse(text)
