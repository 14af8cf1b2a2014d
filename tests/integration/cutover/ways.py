"""Tests that try the thirteen ways in which cut-overs broke elsewhere (docs/explanation/cut-over-ways.md)."""

from __future__ import annotations

from collections.abc import Mapping

_MACHINE = "unit/run/cutover/test_conductor.py::"
_LIVE = "integration/cutover/test_cutover.py::"
_TRIED = "integration/cutover/test_ways.py::"
_UNLED = "integration/cutover/test_unled.py::"
_KILLED = "integration/cutover/test_cutover_killed.py::"
_HISTORIES = (
    "unit/run/cutover/test_histories.py::test_whatever_happens_one_side_is_writable_and_nothing_is_lost"
)
WAYS: Mapping[int, tuple[str, ...]] = {
    1: (_LIVE + "test_there_and_back_and_there_again_loses_nothing_that_was_acknowledged", _HISTORIES),
    2: (
        _LIVE + "test_an_open_transaction_is_waited_for_and_the_switch_undone_in_time",
        "integration/fences/test_postgres_fence_ways.py::test_a_prepared_transaction_is_named_and_can_be_ended",
        "integration/fences/test_postgres_fence_ways.py::test_a_transaction_whose_beginning_is_hidden_counts_as_open",
        "integration/fences/test_mysql_fence_ways.py::test_hidden_transactions_and_sessions_are_never_taken_for_none",
    ),
    3: (_LIVE + "test_a_way_back_that_loses_something_is_refused_unless_it_was_accepted_by_name",),
    4: (
        _MACHINE + "test_killed_at_any_point_there_and_back_the_next_leader_brings_it_to_its_end",
        _MACHINE + "test_a_side_that_cannot_be_reached_at_a_step_leaves_one_side_open",
        _MACHINE + "test_a_hook_that_fails_both_ways_leaves_the_old_side_open",
        _KILLED + "test_killed_at_every_step_one_side_is_open_in_the_end",
        _UNLED + "test_a_run_that_cannot_start_again_opens_the_side_that_was_open",
        _UNLED + "test_past_the_limit_the_old_side_opens_though_the_new_one_is_lost",
    ),
    5: (_KILLED + "test_killed_while_it_finishes_the_new_side_stays_open",),
    6: (_MACHINE + "test_rows_that_differ_undo_a_switch_and_nothing_else_was_opened", _HISTORIES),
    7: (
        "unit/run/cutover/test_reads.py::test_reads_go_back_to_the_old_side_at_any_step",
        "integration/cutover/test_reads_first.py::"
        "test_reads_go_first_once_the_gate_is_met_and_come_back_at_any_time",
    ),
    8: (
        _MACHINE + "test_a_side_opened_by_hand_is_never_joined_by_a_second_one",
        _TRIED + "test_the_sql_that_the_plan_prints_opens_a_side_and_the_tool_goes_by_it",
    ),
    9: (_TRIED + "test_sequences_are_ahead_on_either_side",),
    10: (
        _KILLED + "test_killed_at_every_step_one_side_is_open_in_the_end",
        "integration/cutover/test_record.py::test_a_leader_that_looked_before_sees_a_plan_that_is_accepted",
    ),
    11: (
        _TRIED + "test_a_column_renamed_on_the_new_side_is_said_at_once",
        _UNLED + "test_a_column_renamed_on_the_old_side_while_it_is_fenced_undoes_the_switch_by_name",
    ),
    12: (
        "contract/fences/fence_contract.py::test_everybody_else_is_refused_and_afterwards_all_is_as_before",
        "contract/fences/fence_contract.py::test_late_writers_are_counted",
        "integration/cutover/test_hook_pgbouncer.py::test_a_cut_over_through_pgbouncer_loses_nothing_and_ends_no_session",
    ),
    13: (
        "integration/fences/test_postgres_fence_ways.py::"
        "test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone",
        "integration/fences/test_mysql_fence_ways.py::"
        "test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone",
    ),
}
