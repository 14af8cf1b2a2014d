"""What one round of a verification under live writes may conclude."""

from __future__ import annotations

from itertools import product

from migrator.model.progress import BadRow
from transforms.registry import TargetMapping
from verify.tables.rounds.progress import TableProgress, ruling


def test_only_a_round_in_which_nothing_moved_settles_everything() -> None:
    for reached, one_view in product((True, False), repeat=2):
        assert ruling(reached, True, one_view).all
        assert not ruling(reached, False, one_view).all


def test_a_round_counts_only_if_the_target_had_reached_what_the_source_showed() -> None:
    """Before that a difference is lag: ten such rounds in a row would call every slow target different."""
    assert ruling(True, False, True).counts
    assert not ruling(False, False, True).counts


def test_a_duplicate_counts_at_once_only_within_one_view() -> None:
    """Of two views one may show a row under its old key, and the other the same row under its new one."""
    assert ruling(True, False, True).duplicates
    assert not ruling(True, False, False).duplicates
    assert not ruling(False, False, False).duplicates


def test_rows_corrected_between_two_reads_are_left_out_of_a_round_that_moved_alone() -> None:
    """They fail in the view of the source that is older than the ledger. For good, they would hide their rows."""
    table = TableProgress(TargetMapping("t", ("k",), None, lambda old: old, ("old",)))
    bad = [
        BadRow(name, ("k",), (key,), "p", 1, "r", "x") for name, key in (("t", "1"), ("t", "2"), ("u", "3"))
    ]
    table.names_aside(bad)
    table.names_aside(bad[1:])
    assert {one.key for one in table.set_aside(still=False)} == {("1",), ("2",)}
    assert table.set_aside(still=True) == (bad[1],)
    table.names_aside(bad[1:])
    assert {one.key for one in table.set_aside(still=False)} == {("2",)}
