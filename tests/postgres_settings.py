"""Settings of PostgreSQL that sessions of ours leave as they are, each with the reason why no result depends on it.

What is pinned is in ``migrator/connections/postgres/session.py``, and for the judge in
``verify/readers/postgres/pins.py``. A test walks through the server's own list: a setting that is in neither
makes it fail, so a new server version is noticed.
"""

from __future__ import annotations

_REASONS = {
    "how a query is planned and run, not what it answers: no order is relied on without ORDER BY": """
        cpu_index_tuple_cost cpu_operator_cost cpu_tuple_cost cursor_tuple_fraction debug_parallel_query
        default_statistics_target enable_async_append enable_bitmapscan enable_distinct_reordering
        enable_gathermerge enable_group_by_reordering enable_hashagg enable_hashjoin enable_incremental_sort
        enable_indexonlyscan enable_indexscan enable_material enable_memoize enable_mergejoin
        enable_nestloop enable_parallel_append enable_parallel_hash enable_partition_pruning
        enable_partitionwise_aggregate enable_partitionwise_join enable_presorted_aggregate
        enable_self_join_elimination enable_seqscan enable_sort enable_tidscan force_parallel_mode
        from_collapse_limit geqo geqo_effort geqo_generations geqo_pool_size geqo_seed geqo_selection_bias
        geqo_threshold jit jit_above_cost jit_expressions jit_inline_above_cost jit_optimize_above_cost
        jit_tuple_deforming join_collapse_limit max_parallel_maintenance_workers max_parallel_workers
        max_parallel_workers_per_gather min_parallel_index_scan_size min_parallel_table_scan_size
        parallel_leader_participation parallel_setup_cost parallel_tuple_cost plan_cache_mode
        random_page_cost recursive_worktable_factor seq_page_cost synchronize_seqscans
    """,
    "memory, buffers and input and output: costs and speed": """
        backend_flush_after debug_logical_replication_streaming effective_cache_size
        effective_io_concurrency gin_pending_list_limit hash_mem_multiplier io_combine_limit
        logical_decoding_work_mem maintenance_io_concurrency maintenance_work_mem temp_buffers
        vacuum_buffer_usage_limit vacuum_cost_delay vacuum_cost_limit vacuum_cost_page_dirty
        vacuum_cost_page_hit vacuum_cost_page_miss work_mem
    """,
    "what the server writes to its log or counts; no statement of ours holds a secret": """
        application_name backtrace_functions compute_query_id debug_pretty_print debug_print_parse
        debug_print_plan debug_print_rewritten escape_string_warning lc_messages log_connections
        log_disconnections log_duration log_error_verbosity log_executor_stats log_lock_failures
        log_lock_waits log_min_duration_sample log_min_duration_statement log_min_error_statement
        log_min_messages log_parameter_max_length log_parameter_max_length_on_error log_parser_stats
        log_planner_stats log_replication_commands log_statement log_statement_sample_rate
        log_statement_stats log_temp_files log_transaction_sample_rate md5_password_warnings
        stats_fetch_consistency trace_notify trace_sort track_cost_delay_timing track_counts track_functions
        track_io_timing track_wal_io_timing update_process_title
    """,
    "where and how rows lie on the disk, not what they are": """
        allow_in_place_tablespaces default_tablespace default_toast_compression file_copy_method
        temp_tablespaces vacuum_failsafe_age vacuum_freeze_min_age vacuum_freeze_table_age
        vacuum_max_eager_freeze_failure_rate vacuum_multixact_failsafe_age vacuum_multixact_freeze_min_age
        vacuum_multixact_freeze_table_age vacuum_truncate wal_compression wal_init_zero wal_recycle
        wal_skip_threshold
    """,
    "only for what no session of ours does": """
        allow_system_table_mods check_function_bodies composite_type_mismatch createrole_self_grant
        event_triggers icu_validation_level lo_compat_privileges password_encryption scram_iterations
    """,
    "a limit that an administrator means: what exceeds it is refused with the server's words": """
        max_stack_depth output_plugin_libraries temp_file_limit
    """,
    "when the server gives up a line: a cut line is an error, and the connection is made again": """
        client_connection_check_interval deadlock_timeout post_auth_delay tcp_keepalives_count
        tcp_keepalives_idle tcp_keepalives_interval tcp_user_timeout
    """,
    "only functions that no statement of ours calls; a trigger of the user's gets what its role has": """
        default_text_search_config lc_numeric lc_time
    """,
    "the state of one transaction: each begins with its default, which is pinned": """
        transaction_deferrable transaction_isolation transaction_read_only
    """,
    "code that an administrator loads into the server; it could do anything, whatever is set": """
        dynamic_library_path extension_control_path extension_destdir jit_debugging_support jit_dump_bitcode
        jit_profiling_support local_preload_libraries session_preload_libraries
    """,
    "a server that is slower or checks more, for its developers": """
        debug_discard_caches ignore_system_indexes wal_consistency_checking
    """,
    "when a commit is on the disk; nothing is said to be durable by it on a source": """
        commit_delay commit_siblings synchronous_commit
    """,
}
"""Reason -> settings."""

HARMLESS: dict[str, str] = {name: reason for reason, names in _REASONS.items() for name in names.split()}
"""Setting -> why it may be anything in a session of the pipeline."""
JUDGES: dict[str, str] = {
    **HARMLESS,
    "client_min_messages": "the judge acts on no notice",
    "default_table_access_method": "the judge makes no table",
    "session_replication_role": "the judge writes nothing, so no trigger and no constraint is asked",
    "track_activities": "the judge asks for no session's activity",
    "wal_sender_timeout": "the judge streams no log",
}
"""The same of the judge's sessions."""
