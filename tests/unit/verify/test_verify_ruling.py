"""What one round of a verification under live writes may conclude."""

from __future__ import annotations

from dataclasses import replace
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


def test_a_round_in_which_a_row_was_corrected_between_two_reads_proves_nothing() -> None:
    """Left out of the older source, a row that the target lacks by mistake would be on neither side."""
    table = TableProgress(TargetMapping("t", ("k",), None, lambda old: old, ("old",)))
    row, grain = (BadRow("t", ("k",), ("1",), "p", 1, "r", "x", grain=one) for one in (False, True))
    others = (replace(row, key=("2",)), replace(row, target="u"))
    table.names_aside((row, grain, *others))
    table.names_aside((row, *others))
    assert table.set_aside(still=False) is None, "a row of the same key isn't the grain"
    assert table.open
    assert table.set_aside(still=True) == (row, others[0])
    table.names_aside((replace(row, position="q"), *others))
    assert table.set_aside(still=False) == (replace(row, position="q"), others[0]), "it was refused again"
