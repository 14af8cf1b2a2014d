"""The kinds of remedies, told apart by their texts, and the tests that follow one of each kind to the letter.

A remedy is of the first kind whose pattern is found in it. What a test follows it takes from what was printed: a
statement is run as it stands there, a command is started with the words that are named.
"""

from __future__ import annotations

from tests.remedies.kind import Kind

LIVE, ALONE = "integration/", "unit/"
DUMP = r"migrator dump start|dump (of|these) |rows (of a row-wise target come|read)|^restart the dump"
KINDS = (
    Kind(
        "put back what was changed",
        r"put source\.text_columns back|put the row back|Or put back what was changed|put the other one back",
        (
            LIVE + "runs/changed/test_put_back.py::test_a_mapping_that_is_put_back_goes_on",
            LIVE + "runs/changed/test_put_back.py::test_the_ledgers_row_that_is_put_back_goes_on",
            LIVE + "sources/postgres/test_postgres_values.py::"
            "test_another_choice_of_text_columns_stops_a_migration_that_has_begun",
            LIVE + "sources/postgres/tables/test_postgres_identity.py::"
            "test_a_table_without_its_name_stops_and_once_it_has_it_again_no_change_is_lost",
        ),
    ),
    Kind(
        "give a table of the target its name back, or have it filled",
        r"the next start says how it gets all rows",
        (
            LIVE + "runs/changed/test_replaced_targets.py::test_one_that_gets_its_name_back_goes_on",
            LIVE + "runs/changed/test_replaced_targets.py::"
            "test_one_that_is_made_again_while_we_run_gets_no_row_until_it_gets_all",
        ),
    ),
    Kind(
        "name a value",
        r"name the value with values=",
        (
            LIVE + "runs/changed/test_put_back.py::"
            "test_a_value_that_is_named_with_values_or_a_lambda_is_taken",
        ),
    ),
    Kind(
        "give a table of the target a key",
        r"ADD PRIMARY KEY \(\.\.\.\)(:| or|, or)|add a primary key, or a unique index on NOT NULL columns",
        (LIVE + "runs/changed/test_put_back.py::test_a_table_without_a_key_is_written_once_it_has_one",),
    ),
    Kind(
        "ask the live page otherwise",
        r"Authorization: Bearer|control_token|live-page\.md|127\.0\.0\.1 or localhost|^see docs/how-to/pace\.md$",
        (
            ALONE + "observers/test_live_page.py::test_a_request_needs_the_token_that_permits_it",
            ALONE
            + "observers/test_live_page.py::test_a_browser_that_was_led_here_by_a_foreign_name_learns_nothing",
        ),
    ),
    Kind(
        "look how a cut-over stands, plan it, or leave the tool behind",
        r"migrator cutover|accept it first|as `Removing everything` in",
        (LIVE + "cutover/test_cutover.py::test_what_cannot_be_done_now_is_refused_by_name",),
    ),
    Kind(
        "mend the hook",
        r"^mend it, then start again$",
        (LIVE + "cutover/test_cutover.py::test_a_hook_that_fails_undoes_the_switch",),
    ),
    Kind(
        "report a defect",
        r"report it|please report|call (start|open)\(\)|recorder is at fault|report this",
        (),
    ),
    Kind(
        "finish a reset, or repeat it",
        r"migrator reset",
        (
            LIVE + "commands/test_reset.py::"
            "test_killed_between_any_two_steps_no_run_goes_on_and_a_reset_finishes",
            LIVE + "commands/test_reset.py::"
            "test_rows_of_others_that_point_at_ours_refuse_and_the_remedy_works",
        ),
    ),
    Kind(
        "ask for the rows again",
        DUMP,
        (
            LIVE + "sources/postgres/tables/test_postgres_identity.py::"
            "test_another_table_stops_until_all_of_its_rows_are_asked_for_and_then_no_row_of_the_first_is_left",
            LIVE
            + "runs/changed/test_late_targets.py::test_a_late_target_gets_all_rows_once_old_ones_are_gone",
            LIVE + "sources/postgres/tables/test_postgres_rewritten.py::"
            "test_what_was_done_while_nobody_read_stops_until_rows_are_asked_for",
        ),
    ),
    Kind(
        "prove by hand that the log is the same",
        r"--unproven-log",
        (
            LIVE + "sources/binlog/place/test_binlog_restored.py::"
            "test_a_purged_proof_is_told_from_a_purged_log_and_its_remedy_goes_on",
        ),
    ),
    Kind(
        "edit a publication, or set the placement back",
        r"ALTER PUBLICATION|placement (back|=)",
        (
            LIVE + "sources/postgres/test_placement_edited.py::"
            "test_a_watermark_that_the_publication_lacks_is_told_and_the_remedy_works",
            LIVE + "sources/postgres/test_publication_mended.py::"
            "test_a_publication_that_lacks_something_is_mended_by_the_remedy_to_the_letter",
            LIVE + "sources/postgres/test_publication_mended.py::"
            "test_a_table_that_may_not_join_a_publication_joins_by_the_remedy",
            LIVE + "sources/postgres/test_placement_edited.py::test_the_placement_set_back_works_too",
        ),
    ),
    Kind(
        "build indexes anew, for another version of a collation",
        r"REINDEX",
        (
            LIVE + "sources/postgres/tables/test_postgres_collations.py::"
            "test_a_collation_that_is_another_one_under_its_indexes_is_refused",
        ),
    ),
    Kind(
        "start the migration anew",
        r"[Ss]tart (the migration )?anew|start a migration of another name",
        (LIVE + "runs/ddl/test_ddl_way_out.py::test_a_renamed_column_and_the_adapted_mapping",),
    ),
    Kind(
        "grant a right",
        r"GRANT|\bgrants?\b(?! --print --dual)|BYPASSRLS|AUTHORIZATION|SUPERUSER|with the (user"
        r"|role) that the migration"
        r"|ALTER ROLE .*(REPLICATION|LOGIN)|as (its|the database's|the) owner|owner of the tables"
        r"|administrator: \{\}"
        r"|^check that the login may|^\{\}( SCHEMA|; SELECT)|^drop it as|^create it with the control"
        r"|create the user",
        (
            LIVE + "sources/postgres/test_postgres_remedies.py::"
            "test_the_statements_that_preflight_prints_mend_what_it_finds",
            LIVE
            + "targets/postgres/test_target_preflight.py::test_the_remedies_are_all_that_a_poor_role_needs",
            LIVE + "targets/mysql/test_mysql_target_session.py::"
            "test_the_remedies_of_preflight_are_all_that_a_poor_user_needs",
            LIVE + "sources/binlog/test_binlog_preflight.py::test_each_right_on_the_watermark_is_asked_for",
            LIVE + "sources/postgres/change_tables/test_change_tables_disturbed.py::"
            "test_each_missing_grant_is_named_with_the_statement_that_mends_it",
        ),
    ),
    Kind(
        "set a setting of a role",
        r"ALTER ROLE|search_path",
        (
            LIVE + "connections/postgres/test_postgres_sessions.py::"
            "test_what_the_login_may_not_set_back_is_refused_and_the_remedy_helps",
            LIVE + "targets/postgres/test_target_preflight.py::"
            "test_a_trigger_that_finds_nothing_in_our_sessions_is_named_and_the_remedy_helps",
        ),
    ),
    Kind(
        "let the server take writes, or statements, again",
        r"SET GLOBAL (read_only|offline_mode)|ALTER SCHEMA `\{\}`|READ ONLY = 0|pg_promote|server again without"
        r"|ALLOW_CONNECTIONS|port for readers|^\{\}; then do it again$",
        (
            LIVE + "targets/test_refusing_states.py::"
            "test_a_server_that_becomes_read_only_is_named_wherever_it_is_met",
            LIVE + "targets/test_refusing_states.py::"
            "test_a_schema_that_was_set_read_only_is_named_and_the_remedy_works",
            LIVE + "targets/test_refusing_states.py::"
            "test_an_engine_that_is_read_only_is_named_and_the_remedy_works",
            LIVE + "targets/test_refusing_states.py::test_a_server_in_offline_mode_is_named_and_may_pass",
            LIVE + "targets/test_refusing_states.py::test_a_standby_is_named_and_writes_once_it_is_promoted",
            LIVE + "fences/test_read_only_servers.py::"
            "test_a_server_that_became_read_only_is_named_and_the_remedy_works",
        ),
    ),
    Kind(
        "change a setting of the server",
        r"SET GLOBAL|ALTER SYSTEM|^turn |^raise (max_|binlog|the user's|the limit with)|log_bin"
        r"|server's configuration"
        r"|gtid_mode|init_connect|FLUSH HOSTS|^name the real standbys|pg_hba\.conf|\{\}, then reconnect",
        (
            LIVE + "sources/binlog/test_binlog_preflight.py::"
            "test_a_small_packet_is_told_with_the_columns_whose_values_may_not_fit",
            LIVE + "sources/postgres/test_postgres_remedies.py::"
            "test_the_statements_that_preflight_prints_mend_what_it_finds",
        ),
    ),
    Kind(
        "move what shadows out of the way",
        r"ALTER (OPERATOR )?\{\} SET SCHEMA",
        (
            LIVE + "connections/postgres/test_postgres_surroundings.py::"
            "test_what_shadows_beside_such_operators_is_refused_and_the_remedy_helps",
        ),
    ),
    Kind(
        "drop a slot",
        r"pg_drop_replication_slot",
        (
            LIVE + "sources/postgres/test_postgres_remedies.py::"
            "test_the_statements_that_preflight_prints_mend_what_it_finds",
        ),
    ),
    Kind(
        "end a transaction that was prepared",
        r"(COMMIT|ROLLBACK) PREPARED|XA (COMMIT|ROLLBACK)",
        (
            LIVE + "sources/binlog/test_binlog_xa.py::"
            "test_a_first_start_waits_by_name_for_what_was_prepared_before",
            LIVE + "sources/postgres/test_postgres_remedies.py::"
            "test_the_statements_that_preflight_prints_mend_what_it_finds",
        ),
    ),
    Kind(
        "look after rows that are set aside",
        r"migrator rows|bad_rows|rows be set aside",
        (
            LIVE + "runs/test_bad_rows.py::test_bad_rows_from_the_first_dump_to_the_hand_over",
            LIVE + "runs/test_bad_rows.py::test_more_than_may_be_stops_and_the_remedy_goes_on",
            LIVE + "runs/changed/test_children_aside.py::test_children_go_with_their_parent_and_come_back",
        ),
    ),
    Kind(
        "make, alter or empty a table, or what is on it",
        r"ALTER (TABLE|SEQUENCE)|CREATE (DATABASE|SCHEMA|TRIGGER)|DROP (TABLE|TRIGGER|RULE|VIEW)|TRUNCATE"
        r"|DELETE FROM|primary key"
        r"|changetables|CREATE TABLE|^drop (it|\{\})|^empty the table|partitioned table|unique index",
        (
            LIVE + "sources/postgres/test_postgres_remedies.py::"
            "test_the_statements_that_preflight_prints_mend_what_it_finds",
            LIVE + "sources/postgres/tables/test_postgres_rewritten.py::"
            "test_a_table_that_inherits_from_a_captured_one_stops_by_name",
            LIVE
            + "targets/postgres/test_target_preflight.py::test_the_remedies_are_all_that_a_poor_role_needs",
            LIVE
            + "sources/mariadb/test_mariadb_preflight.py::test_all_obstacles_of_tables_are_found_at_once",
        ),
    ),
    Kind(
        "set a sequence by hand",
        r"set (it|that sequence) by hand|setval",
        (LIVE + "commands/test_sequences_command.py::test_reports_prints_and_sets",),
    ),
    Kind(
        "unset what the environment asks for",
        r"^unset|JAVA_TOOL_OPTIONS|LC_ALL=|locale",
        (
            LIVE
            + "connections/test_server_language.py::test_a_setting_that_the_environment_asks_for_is_told",
            LIVE + "connections/postgres/test_postgres_sessions.py::"
            "test_a_variable_that_the_server_refuses_is_named_with_what_to_unset",
        ),
    ),
    Kind(
        "correct the login",
        r"password|keyring|check (host|user|`tls`|\[target\]|the \[target\])|tls = "
        r"|correct (source\.|\{section\}|the URL)"
        r"|`database`|ALTER USER|auth, user|choose another `tls`",
        (
            LIVE + "runs/test_run_passwords.py::test_a_wrong_password_is_named_and_the_right_one_goes_on",
            LIVE + "targets/test_refusing_states.py::test_an_account_that_is_locked_is_a_refused_login",
            LIVE + "targets/test_refusing_states.py::test_a_limit_of_the_user_is_named_and_may_pass",
        ),
    ),
    Kind(
        "give room, memory or open files",
        r"free space|quota|ulimit|make room|room on|more memory|larger disk|open files|fs\.file-max"
        r"|what the server lacks"
        r"|check the disk|more cores|kernel's log|ask for less|fewer steps",
        (
            ALONE + "event_log/test_files_damage.py::test_a_full_disk_leaves_nothing_and_the_writer_goes_on",
            ALONE + "run/capture/test_room_gate.py::"
            "test_capture_waits_at_the_bound_and_goes_on_once_segments_were_removed",
        ),
    ),
    Kind(
        "give access to files, or another folder",
        r"write access|writable|hard links|same folder|may be written to|folder first"
        r"|in the way of a folder|it is a folder",
    ),
    Kind(
        "put back, restore or remove a file of ours",
        r"somebody edited|restore|put (the file|a sound copy) |eventlog away|move its directory away|remove the file",
        (
            ALONE + "run/lead/test_recapture.py::"
            "test_damage_beyond_the_ledger_is_set_aside_and_the_log_goes_on_there",
            ALONE + "run/lead/test_lineage.py::"
            "test_a_restored_target_goes_on_from_what_the_log_still_holds_or_is_told_what_is_gone",
        ),
    ),
    Kind(
        "begin an output anew, or write elsewhere",
        r"--forget|this output anew|--from-segment|--output|leave --tables|give --tables|--format"
        r"|start both again",
        (ALONE + "cli/test_events_command.py::test_released_segments_are_an_error_and_never_a_silent_gap",),
    ),
    Kind(
        "stop another process of the migration",
        r"stop (that|this) (one|process)|other migrator|no other process|--ha",
        (LIVE + "lead/test_ha.py::test_without_ha_a_second_process_is_refused_by_name",),
    ),
    Kind(
        "run another version of the tool",
        r"version (of (the )?(migrator|tool)|that (made|recorded|wrote))|with this version|upgrade the control",
        (
            LIVE + "targets/mysql/test_mysql_target_session.py::"
            "test_a_ledger_of_a_newer_version_or_another_epoch_is_refused_by_name",
        ),
    ),
    Kind(
        "upgrade, or use another server or encoding",
        r"upgrade the source|or newer|at the primary|the primary\b|the (same|right) server|ENCODING"
        r"|another server"
        r"|lead to one server|another source|captured so far|use PostgreSQL|was the log reset|use \{\} \{\}",
        (
            LIVE + "sources/postgres/log/test_postgres_failover.py::"
            "test_reading_goes_on_at_a_promoted_standby_and_never_behind_what_it_lost",
        ),
    ),
    Kind(
        "bring the target to its newest revision, or alter its columns in one",
        r"alembic|migrator schema|[Aa]lembic revision|revision of the target|head revision|target's schema"
        r"|correct the revision|wider type"
        r"|change the key in",
        (
            LIVE
            + "runs/changed/test_late_targets.py::test_a_late_target_gets_all_rows_once_old_ones_are_gone",
            LIVE + "commands/test_schema_command.py::"
            "test_a_revision_that_fails_says_what_stays_and_goes_on_once_mended",
            LIVE + "commands/test_schema_command.py::test_what_cant_be_run_is_refused_by_name",
        ),
    ),
    Kind(
        "undo the change of the source",
        r"^undo|^let the name lead|put (it|the other one) back|change them back|^rename one|rename the column"
        r"|make it STORED|drop it and add|store the number"
        r"|convert the column|change the column's type|while it runs, |while the migration runs"
        r"|binlog_format|DELETE instead",
        (
            LIVE + "sources/postgres/tables/test_postgres_identity.py::"
            "test_a_table_without_its_name_stops_and_once_it_has_it_again_no_change_is_lost",
        ),
    ),
    Kind(
        "correct a row in the source or target",
        r"correct the (value|row)|(rows?|row) in the source|row to be repaired|foreign row",
        (
            LIVE + "runs/test_run_refusals.py::"
            "test_a_row_that_was_corrected_at_the_source_no_longer_stops_the_next_run",
        ),
    ),
    Kind(
        "wait: it goes on by itself",
        r"by itself|goes on (once|from the last)|^nothing: |^wait|starting up|the connection was lost: "
        r"|lock on the table",
        (LIVE + "runs/test_run_start.py::test_a_run_that_goes_on_waits_for_its_target",),
    ),
    Kind(
        "repair, or verify again",
        r"[Vv]erify|repair|rows still differ|--wait",
        (
            LIVE + "commands/repair/test_repair.py::"
            "test_a_range_and_then_everything_is_repaired_while_writers_hit_the_same_keys",
        ),
    ),
    Kind(
        "have two keys that the target takes for one differ, or remove one of the two",
        r"tells the two apart",
        (
            LIVE + "runs/test_same_key.py::test_a_key_that_tells_the_two_apart_lets_the_run_go_on",
            LIVE + "runs/test_same_key.py::"
            "test_a_row_of_another_writer_is_removed_or_the_mapping_makes_their_keys_differ",
            LIVE + "runs/test_same_key.py::"
            "test_what_only_the_target_has_is_deleted_there_and_what_the_source_no_longer_has_in_one_batch",
        ),
    ),
    Kind(
        "declare a grain, a link or a key",
        r"grain|links?=|roles=|key=|values=|surrogates=|key maps?|key's column|own key",
        (
            LIVE + "joined/test_grain_proof.py::test_the_remedy_followed_passes",
            ALONE + "transforms/test_link_equality.py::"
            "test_a_wider_key_is_refused_with_what_to_declare_and_goes_once_it_is",
        ),
    ),
    Kind(
        "install what is missing, or find Java",
        r"JAVA_HOME|a Java|[Ii]nstall|pip |py_files|--py-files|pyarrow must|same minor version|the wheel",
        (LIVE + "spark/test_transforms_session.py::test_a_java_that_does_not_work_is_explained",),
    ),
    Kind(
        "have a column travel as text",
        r"text_columns|travel as text",
        (
            LIVE + "runs/test_text_columns_run.py::"
            "test_what_no_native_type_holds_arrives_by_dump_stream_and_mirror",
        ),
    ),
    Kind(
        "ask for a next mapping, or give it up",
        r"migrator remap|@mapping\.next|another one can be next",
        (
            LIVE + "runs/changed/test_next_mappings.py::test_a_next_function_is_given_up_and_asked_for_again",
            LIVE + "runs/changed/test_next_mappings.py::test_what_cannot_come_into_force_is_refused_by_name",
        ),
    ),
    Kind(
        "edit the mapping",
        r"numeric_key|session made by|mapping|[Cc]orrect the (line|function)|unit test|leave the table"
        r"|cast the column|map the|[Cc]ompute|column",
        (
            ALONE
            + "transforms/test_transforms_registry.py::test_every_mistake_names_file_line_cause_and_remedy",
            ALONE + "model/test_between.py::test_between_transactions_a_table_may_be_taken_out",
        ),
    ),
    Kind(
        "edit the mapping, by what its code says",
        r".",
        (
            ALONE
            + "transforms/test_transforms_registry.py::test_every_mistake_names_file_line_cause_and_remedy",
        ),
        "transforms/",
    ),
    Kind(
        "correct a file of query pairs",
        r".",
        where="verify/dual_read/",
    ),
    Kind(
        "edit the configuration",
        r"\[(source|target|coordination|spark|migration|observe)\]|source\.|setting|correct path|fields named"
        r"|kind = |allowed: |use \{\}$"
        r"|state` directory|correct the name",
        (LIVE + "sources/postgres/test_placement_edited.py::test_the_placement_set_back_works_too",),
    ),
    Kind(
        "give a command other words, or options",
        r"--|^(choose|name|give|write|list|start a request|start several|ask for)\b|dump (list|restart)"
        r"|migrator (run|status)"
        r"|correct the key|terminal|at most|SQL expression|compare the table's own|create the new schema first",
        (ALONE + "cli/test_cli.py::test_a_wrong_dump_request_is_refused_with_place_and_remedy",),
    ),
    Kind(
        "look at a log, a sample or a server",
        r"see the |look (at|for)|if the rows are right|check (that the server|network|\[coord)|log may"
        r"|the message then says|check that",
    ),
    Kind(
        "correct an output's options, or what takes its events",
        r"correct these options|correct the API|the API (give|take)|put the state folder back|^stop one of them",
        (
            ALONE + "cli/test_events_outputs.py::test_a_moved_api_goes_on_by_its_former_name",
            ALONE + "cli/test_events_outputs.py::test_a_batch_that_is_too_large_goes_with_smaller_bounds",
        ),
    ),
    Kind(
        "start again, or try again",
        r"start(s)? again|[Tt]ry again|start the migration again|bring the cluster back|start it again",
        (
            LIVE + "targets/mysql/test_mysql_target_session.py::"
            "test_a_commit_that_never_arrived_is_reported_and_can_be_tried_again",
        ),
    ),
    Kind(
        "plan, raise or open a fence otherwise",
        r"fence|owns the tables",
        (
            LIVE + "fences/test_postgres_fence_ways.py::"
            "test_what_a_fenced_role_granted_to_another_is_refused_by_name",
            LIVE + "fences/test_postgres_fence_ways.py::"
            "test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone",
        ),
    ),
)
