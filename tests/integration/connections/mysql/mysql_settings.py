"""Settings of sessions on MySQL and MariaDB that our sessions leave as the server has them, each with the
reason."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pymysql

from tests.servers import Database, MariaDBServer

_GROUPS: Mapping[str, str] = {
    "Memory, buffers and threads: how fast an answer comes, not which one.": """
        aria_repair_threads aria_sort_buffer_size big_tables bulk_insert_buffer_size connection_memory_chunk_size
        histogram_generation_max_mem_size innodb_ddl_buffer_size innodb_ddl_threads innodb_parallel_read_threads
        internal_tmp_mem_storage_engine join_buffer_size join_buffer_space_limit max_heap_table_size
        max_length_for_sort_data mrr_buffer_size myisam_repair_threads myisam_sort_buffer_size net_buffer_length
        preload_buffer_size query_alloc_block_size query_prealloc_size range_alloc_block_size read_buffer_size
        read_rnd_buffer_size rowid_merge_buff_size select_into_buffer_size set_operations_buffer_size
        sql_buffer_result tcp_nodelay thread_pool_priority tmp_memory_table_size tmp_table_size
        transaction_alloc_block_size transaction_prealloc_size progress_report_time profiling profiling_history_size
        query_cache_strip_comments query_cache_wlock_invalidate innodb_tmpdir""",
    "Plans: another way to the same rows. No order is relied upon without ORDER BY; a plan that needs too much memory"
    " is given up for a plainer one with a warning.": """
        analyze_max_length analyze_sample_percentage aria_stats_method enable_secondary_engine_statistics
        eq_range_index_dive_limit expensive_subquery_limit histogram_size histogram_type
        in_predicate_conversion_threshold join_cache_level max_rowid_filter_size max_seeks_for_key
        myisam_stats_method optimizer_adjust_secondary_key_costs optimizer_extra_pruning_depth
        optimizer_join_limit_pref_ratio optimizer_max_sel_arg_weight optimizer_max_sel_args
        optimizer_max_subgraph_pairs optimizer_prune_level optimizer_scan_setup_cost optimizer_search_depth
        optimizer_selectivity_sampling_limit optimizer_switch optimizer_trace optimizer_trace_features
        optimizer_trace_limit optimizer_trace_max_mem_size optimizer_trace_offset
        optimizer_use_condition_selectivity optimizer_where_cost range_optimizer_max_mem_size
        secondary_engine_cost_threshold use_stat_tables""",
    "Bounds that end a statement or a login with an error of the server's that names them.": """
        connection_memory_limit global_connection_memory_tracking max_session_mem_used max_tmp_session_space_usage
        max_user_connections parser_max_mem_size tmp_disk_table_size max_sp_recursion_depth""",
    "Can't be set in a session. Statements are measured against it before they are sent, and a value that a server"
    " couldn't print for it comes with a warning, which is an error to us (test_mysql_packets).": """
        max_allowed_packet""",
    "What the server writes into its own logs about statements.": """
        log_disabled_statements log_queries_not_using_indexes log_slow_admin_statements log_slow_always_query_time
        log_slow_disabled_statements log_slow_filter log_slow_max_warnings log_slow_min_examined_row_limit
        log_slow_query log_slow_query_time log_slow_rate_limit log_slow_slave_statements log_slow_verbosity
        log_warnings long_query_time min_examined_row_limit slow_query_log sql_log_off""",
    "How our own writes stand in the server's binary log: preflight looks at what matters of it globally, and the log"
    " reader reads every form.": """
        binlog_alter_two_phase binlog_annotate_row_events binlog_direct_non_transactional_updates binlog_format
        binlog_row_image binlog_row_value_options binlog_rows_query_log_events binlog_transaction_compression
        binlog_transaction_compression_level_zstd gtid_domain_id server_id session_track_gtids
        transaction_write_set_extraction""",
    "What a client is told beside its answer: ours doesn't ask for it.": """
        session_track_schema session_track_state_change session_track_system_variables
        session_track_transaction_info redirect_url end_markers_in_json explain_format explain_json_format_version
        terminology_use_previous print_identified_with_as_hex show_create_table_skip_secondary_engine
        show_create_table_verbosity""",
    "Only other storage engines heed it, none of which a table of ours or of a target has.": """
        keep_files_on_create low_priority_updates max_delayed_threads max_insert_delayed_threads
        deadlock_search_depth_long deadlock_search_depth_short deadlock_timeout_long deadlock_timeout_short
        transaction_allow_batching external_table_secondary_storage_engine external_table_storage_engine""",
    "Statements that we never send: fulltext, vectors, XA, passwords, files, replication, encryption, LOCK TABLES,"
    " statistics, HANDLER, INSERT DELAYED.": """
        innodb_ft_enable_stopword innodb_ft_user_stopword_table mhnsw_default_distance mhnsw_default_m
        mhnsw_ef_search xa_detach_on_prepare generated_random_password_length old_passwords block_encryption_mode
        character_set_filesystem select_into_disk_sync select_into_disk_sync_delay innodb_table_locks
        default_master_connection max_relay_log_size max_points_in_geometry wsrep_osu_method""",
    "How a table's files are made; values are the same in all of them.": """
        alter_algorithm old_alter_table column_compression_threshold column_compression_zlib_level
        column_compression_zlib_strategy column_compression_zlib_wrap default_table_encryption
        innodb_compression_default innodb_default_encryption_key_id innodb_strict_mode""",
    "What a new table gets that doesn't say: ours say, and of a revision's the columns are looked at as they became."
    " A table is refused by name, or has a column more, which is invisible.": """
        character_set_server collation_server character_set_database collation_database enforce_storage_engine
        restrict_fk_on_non_standard_key sql_generate_invisible_primary_key sql_require_primary_key""",
    "Foreign keys of the target do nothing while we write.": "enable_cascade_triggers",
    "Warnings are counted whether or not they are kept; one that isn't kept is an error.": "max_error_count",
    "Heeded by threads of replication only.": "rbr_exec_mode sql_slave_skip_counter",
    "Can't be set for all; sessions of ours are begun anew after the login.": "sql_log_bin",
    "Only at the login; pinned afterwards as wait_timeout.": "interactive_timeout",
    "A driver of the server's own tries again; ours is told.": "net_retry_count",
    "How a cluster's nodes wait for one another: a session reads what it wrote, or it is an error.": """
        group_replication_consistency wsrep_causal_reads wsrep_on wsrep_retry_autocommit wsrep_sync_wait
        wsrep_trx_fragment_size wsrep_trx_fragment_unit""",
    "Another name of one that is pinned.": "storage_engine transaction_isolation transaction_read_only",
    "Means nothing to any server of these versions.": "new max_tmp_tables",
}
HARMLESS = {name: reason for reason, names in _GROUPS.items() for name in names.split()}
_OF_WRITES = """
    auto_increment_increment auto_increment_offset check_constraint_checks default_storage_engine
    default_tmp_storage_engine explicit_defaults_for_timestamp foreign_key_checks innodb_lock_wait_timeout
    innodb_snapshot_isolation sql_if_exists sql_quote_show_create sql_safe_updates sql_warnings
    system_versioning_alter_history system_versioning_insert_history unique_checks updatable_views_with_limit"""
WRITES_NOTHING = frozenset(_OF_WRITES.split())
"""What only concerns who writes: the judge doesn't."""
_NO_SUCH_SCOPE = (1229, 1238)


def settable(connection: Any) -> tuple[set[str], set[str]]:
    """Names of all settings that a session can have of its own; and of those that no server can have for all."""
    cursor = connection.cursor()
    cursor.execute("SHOW SESSION VARIABLES")
    names = [str(name).lower() for name, _ in cursor.fetchall()]
    own = {name for name in names if _takes(cursor, f"SET SESSION {name} = @@SESSION.{name}")}
    return own, {name for name in own if not _takes(cursor, f"SELECT @@GLOBAL.{name}")}


def _takes(cursor: Any, statement: str) -> bool:
    """Whether there is such a setting; a value that it doesn't take is one of it all the same."""
    try:
        cursor.execute(statement)
    except pymysql.err.MySQLError as error:
        return error.args[0] not in _NO_SUCH_SCOPE
    return True


def left_over(connection: Any, pinned: frozenset[str]) -> list[str]:
    """Settings of a session that are neither pinned nor harmless."""
    own, anew = settable(connection)
    return sorted(own - anew - pinned - HARMLESS.keys())


HOSTILE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "both": {
        "sql_select_limit": ("1", "0", "3"),
        "autocommit": ("0",),
        "completion_type": ("'RELEASE'", "'CHAIN'"),
        "time_zone": ("'-11:30'", "'+13:00'"),
        "character_set_client": ("'latin1'", "'cp1251'"),
        "character_set_results": ("'latin1'", "'binary'"),
        "character_set_connection": ("'latin1'",),
        "collation_connection": ("'latin1_swedish_ci'", "'utf8mb4_bin'"),
        "foreign_key_checks": ("0",),
        "unique_checks": ("0",),
        "group_concat_max_len": ("4", "64"),
        "max_sort_length": ("64",),
        "max_join_size": ("1",),
        "sql_safe_updates": ("1",),
        "sql_auto_is_null": ("1",),
        "sql_notes": ("0",),
        "sql_warnings": ("1",),
        "div_precision_increment": ("0", "30"),
        "default_week_format": ("3",),
        "lc_time_names": ("'de_DE'",),
        "lc_messages": ("'de_DE'",),
        "wait_timeout": ("1",),
        "net_read_timeout": ("1",),
        "net_write_timeout": ("1",),
        "lock_wait_timeout": ("1",),
        "innodb_lock_wait_timeout": ("1",),
        "default_storage_engine": ("'MyISAM'",),
        "auto_increment_increment": ("7",),
        "auto_increment_offset": ("3",),
        "sql_quote_show_create": ("0",),
        "updatable_views_with_limit": ("'NO'",),
        "max_error_count": ("0",),
        "optimizer_switch": ("'derived_merge=off,index_condition_pushdown=off,semijoin=off'",),
        "sort_buffer_size": ("32768",),
        "big_tables": ("1",),
    },
    "mariadb": {
        "sql_mode": (
            "'ORACLE'",
            "'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES'",
            "'MSSQL,EMPTY_STRING_IS_NULL,HIGH_NOT_PRECEDENCE'",
            "'PIPES_AS_CONCAT,NO_UNSIGNED_SUBTRACTION,TIME_ROUND_FRACTIONAL,SIMULTANEOUS_ASSIGNMENT'",
            "''",
        ),
        "old_mode": ("'ZERO_DATE_TIME_CAST,NO_DUP_KEY_WARNINGS_WITH_IGNORE'", "''"),
        "tx_isolation": ("'READ-UNCOMMITTED'", "'SERIALIZABLE'"),
        "tx_read_only": ("1",),
        "check_constraint_checks": ("0",),
        "max_statement_time": ("0.5",),
        "idle_transaction_timeout": ("1",),
        "max_recursive_iterations": ("2",),
        "default_regex_flags": ("'DOTALL,EXTENDED'",),
        "sql_if_exists": ("1",),
        "note_verbosity": ("'all'",),
    },
    "mysql": {
        "sql_mode": (
            "'ANSI,PAD_CHAR_TO_FULL_LENGTH,NO_BACKSLASH_ESCAPES'",
            "'PIPES_AS_CONCAT,NO_UNSIGNED_SUBTRACTION,TIME_TRUNCATE_FRACTIONAL,HIGH_NOT_PRECEDENCE'",
            "'REAL_AS_FLOAT,NO_DIR_IN_CREATE,IGNORE_SPACE,ALLOW_INVALID_DATES'",
            "''",
        ),
        "transaction_isolation": ("'READ-UNCOMMITTED'", "'SERIALIZABLE'"),
        "transaction_read_only": ("1",),
        "cte_max_recursion_depth": ("2",),
        "max_execution_time": ("500",),
        "show_gipk_in_create_table_and_information_schema": ("0",),
        "sql_require_primary_key": ("1",),
        "sql_generate_invisible_primary_key": ("1",),
        "windowing_use_high_precision": ("0",),
        "information_schema_stats_expiry": ("86400",),
    },
}
"""What an administrator may have set for all, where it would change what we read or write."""


@contextmanager
def hostile(server: MariaDBServer, settings: Mapping[str, str], init_connect: str = "") -> Iterator[None]:
    """A server whose settings for all are these while the block runs."""
    with server.admin.connect() as admin, admin.cursor() as cursor:
        wanted = {**settings, "init_connect": repr(init_connect)}
        before = {}
        for name in wanted:
            cursor.execute(f"SELECT @@GLOBAL.{name}")
            [(value,)] = cursor.fetchall()
            before[name] = value
        try:
            for name, value in wanted.items():
                cursor.execute(f"SET GLOBAL {name} = {value}")
            yield
        finally:
            for name, value in reversed(before.items()):
                cursor.execute(f"SET GLOBAL {name} = %s", (value,))


def drawn(kind: str, chance: random.Random, share: float = 1.0) -> dict[str, str]:
    """Settings with a hostile value each, as many as the share says."""
    choices = {**HOSTILE["both"], **HOSTILE[kind]}
    return {name: chance.choice(values) for name, values in choices.items() if chance.random() < share}


@contextmanager
def plain_user(database: Database) -> Iterator[Database]:
    """A user with the rights of a migration, for whom ``init_connect`` runs."""
    name = f"plain_{database.database[-8:]}"
    database.execute(
        f"CREATE USER '{name}'@'%' IDENTIFIED BY ''",
        f"GRANT ALL ON `{database.database}`.* TO '{name}'@'%'",
        f"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '{name}'@'%'",
    )
    try:
        yield Database(database.host, database.port, database.database, name, "", database.kind)
    finally:
        database.execute(f"DROP USER '{name}'@'%'")
