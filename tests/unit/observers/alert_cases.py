"""Synthetic series for each alert: those in which it must fire, and those, much like them, in which it must not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Series = Mapping[str, str]
"""Values by series, as promtool writes both: one value each 30 s."""


@dataclass(frozen=True)
class Case:
    """An alert, and series of twenty minutes. ``trouble``: which of the ten seeded troubles it tells of, if any."""

    alert: str
    fires: Series
    quiet: tuple[Series, ...]
    trouble: str = ""


ALL = "0x40"
ONE = "1x40"


def of(name: str, **labels: str) -> str:
    """A series of one process, with further labels."""
    every = {"job": "migrator", "instance": "a:9464", "migration": "shop", **labels}
    worded = ",".join(f'{label}="{value}"' for label, value in every.items())
    return f"{name}{{{worded}}}"


UP, LEADING = of("up"), of("migrator_leading")
LAG, AT_MOST = of("migrator_lag_seconds"), of("migrator_lag_at_most_seconds")
UNCAPTURED = of("migrator_capture_lag_at_most_seconds")
STREAMING = of("migrator_phase", phase="streaming")
HOT = {
    of("migrator_captured_changes_total", table="public.hot", operation="update"): "0+9000x40",
    of("migrator_captured_changes_total", table="public.cold", operation="update"): "0+100x40",
}
EVEN = {
    of("migrator_captured_changes_total", table="public.hot", operation="update"): "0+900x40",
    of("migrator_captured_changes_total", table="public.cold", operation="update"): "0+900x40",
}
STANDS = {of("migrator_backlog_age_seconds"): "0+30x40", of("migrator_target_up"): ONE, AT_MOST: "0+30x40"}
BATCHES = of("migrator_batches_total", phase="stream")

CASES = (
    Case("MigratorDown", {UP: ALL}, ({UP: ONE}, {UP: "1x36 0 1 1 1"}), "mapping error, without a restart"),
    Case(
        "MigratorNobodyLeads",
        {LEADING: ALL, of("migrator_leader_known"): ALL},
        ({LEADING: ALL, of("migrator_leader_known"): ONE}, {LEADING: ONE, of("migrator_leader_known"): ONE}),
    ),
    Case(
        "MigratorTargetDown",
        {of("migrator_target_up"): "1x10 0x30", of("migrator_target_since_timestamp_seconds"): "330x40"},
        ({of("migrator_target_up"): ONE}, {of("migrator_target_up"): "0x10 1x30"}),
        "target down",
    ),
    Case(
        "MigratorSourceDown",
        {of("migrator_source_up"): "1x10 0x30", of("migrator_source_since_timestamp_seconds"): "330x40"},
        ({of("migrator_source_up"): ONE},),
        "source down",
    ),
    Case(
        "MigratorLagUnknown",
        {of("migrator_lag_known"): ALL, of("migrator_source_up"): ONE, LEADING: ONE},
        (
            {of("migrator_lag_known"): ONE, of("migrator_source_up"): ONE, LEADING: ONE},
            {of("migrator_lag_known"): ALL, of("migrator_source_up"): ALL, LEADING: ONE},
        ),
    ),
    Case(
        "MigratorLag",
        {LAG: "0+30x40", LEADING: ONE, STREAMING: ONE},
        (
            {LAG: "0+30x9 0x31", LEADING: ONE, STREAMING: ONE},
            {LAG: "0+30x40", LEADING: ONE, STREAMING: ALL},
            {LAG: "0+30x40", LEADING: ALL, STREAMING: ONE},
        ),
    ),
    Case(
        "MigratorSourceLogAlmostLost",
        {of("migrator_source_log_left_bytes"): "100x40", of("migrator_source_log_bound_bytes"): "1000x40"},
        (
            {
                of("migrator_source_log_left_bytes"): "600x40",
                of("migrator_source_log_bound_bytes"): "1000x40",
            },
            {of("migrator_source_log_endangered"): ALL},
            {UNCAPTURED: "3600x40", of("migrator_source_log_expiry_seconds"): "86400x40"},
            {  # a target that is down: all of it is captured
                UNCAPTURED: "9x40",
                AT_MOST: "50000x40",
                of("migrator_source_log_expiry_seconds"): "86400x40",
            },
        ),
        "slot about to be lost",
    ),
    Case(
        "MigratorSourceLogAlmostLost",
        {UNCAPTURED: "50000x40", of("migrator_source_log_expiry_seconds"): "86400x40"},
        (),
        "binlog about to be lost",
    ),
    Case("MigratorSourceLogAlmostLost", {of("migrator_source_log_endangered"): ONE}, (), "slot being lost"),
    Case(
        "MigratorSourceKeepsMuchLog",
        {of("migrator_source_log_kept_bytes"): "30000000000x40", UNCAPTURED: "9x40"},
        (
            {of("migrator_source_log_kept_bytes"): "1000x40"},
            {
                of("migrator_source_log_kept_bytes"): "30000000000x40",
                of("migrator_source_log_bound_bytes"): "90000000000x40",
            },
            {
                of("migrator_source_log_kept_bytes"): "30000000000x40",
                of("migrator_source_log_expiry_seconds"): "86400x40",
            },
        ),
    ),
    Case(
        "MigratorDiskFilling",
        {of("migrator_disk_free_bytes"): "20000000000-100000000x40"},
        (
            {of("migrator_disk_free_bytes"): "20000000000x40"},
            {of("migrator_disk_free_bytes"): "20000000000-10000x40"},
        ),
        "disk filling",
    ),
    Case(
        "MigratorHotTable",
        {**HOT, LAG: "90x40", AT_MOST: "90x40"},
        ({**HOT, LAG: "2x40"}, {**EVEN, LAG: "90x40"}),
        "one hot table",
    ),
    Case(
        "MigratorInsertsFellOff",
        {of("migrator_inserts_fell_off", table="public.orders"): "_x30 1x10"},
        ({of("migrator_inserts_fell_off", table="public.orders"): "1x10 _x30"}, {LEADING: ONE}),
    ),
    Case(
        "MigratorDifferent",
        {
            of("migrator_verify_verdict", table="person", verdict="different"): ONE,
            of("migrator_verify_timestamp_seconds", table="person"): "60x40",
        },
        ({of("migrator_verify_verdict", table="person", verdict="equal"): ONE},),
        "verify different",
    ),
    Case(
        "MigratorDualReadWrong",
        {of("migrator_dual_reads", verdict="wrong"): "3x40"},
        (
            {
                of("migrator_dual_reads", verdict="wrong"): ALL,
                of("migrator_dual_reads", verdict="lag"): "9x40",
            },
        ),
    ),
    Case(
        "MigratorTookOver",
        {LEADING: "0x30 1x10", of("migrator_phase", phase="standing by"): "1x30 0x10"},
        (
            {LEADING: "0x30 1x10", of("migrator_phase", phase="standing by"): ALL},
            {LEADING: ALL, of("migrator_phase", phase="standing by"): ONE},
        ),
        "standby took over",
    ),
    Case(
        "MigratorNoStandby",
        {LEADING: ONE, of("migrator_standbys"): "1x5 0x35"},
        ({LEADING: ONE, of("migrator_standbys"): ALL}, {LEADING: ONE, of("migrator_standbys"): ONE}),
    ),
    Case(
        "MigratorEndedByError",
        {of("migrator_last_end_timestamp_seconds", error="MappingError"): "30x40"},
        ({of("migrator_last_end_timestamp_seconds", error="none"): "30x40"},),
        "mapping error",
    ),
    Case(
        "MigratorNothingApplied",
        {**STANDS, BATCHES: "7x40"},
        (
            {**STANDS, BATCHES: "0+9x40"},
            {**STANDS, of("migrator_target_up"): ALL, BATCHES: "7x40"},
            {of("migrator_backlog_age_seconds"): "2x40", of("migrator_target_up"): ONE, BATCHES: "7x40"},
        ),
        "stalled Spark",
    ),
    Case(
        "MigratorNetworkSlow",
        {of("migrator_source_answer_seconds"): "0.9x40"},
        ({of("migrator_source_answer_seconds"): "0.002x40", of("migrator_target_answer_seconds"): "0.6x40"},),
        "network slow",
    ),
    Case("MigratorNetworkSlow", {of("migrator_target_answer_seconds"): "1.5x40"}, (), "network slow"),
    Case(
        "MigratorErrorsRepeat",
        {of("migrator_errors_total", error="ConnectionFailed"): "0+1x40"},
        (
            {of("migrator_errors_total", error="ConnectionFailed"): "2x40"},
            {
                of("migrator_errors_total", error="ConnectionFailed"): "0x25 0+8x5 40x8",
                of("migrator_target_up"): "1x25 0x4 1x9",
            },
        ),
    ),
    Case(
        "MigratorErrorsRepeat",  # of a server that comes and goes, nothing else tells
        {
            of("migrator_errors_total", error="ConnectionFailed"): "0+2x40",
            of(
                "migrator_target_up"
            ): "1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1 1 0 1 1",
        },
        (),
    ),
    Case(
        "MigratorWarned",
        {of("migrator_warning", about="mirror"): "_x20 1x20"},
        ({}, {of("migrator_warning", about="mirror"): "1x30 stale"}),
    ),
)
