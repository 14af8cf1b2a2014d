"""What one round of a verification under live writes may conclude."""

from __future__ import annotations

from itertools import product

from verify.tables.rounds.progress import ruling


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
