"""Every metric, declared once: its name, kind, meaning and labels, and how it is read from an observation.

The text that is scraped, the page of the documents, and the tests of alerts and dashboard come from this table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from migrator.model.observed.observation import PHASES, Observation

GAUGE, COUNTER = "gauge", "counter"
PREFIX = "migrator_"
_YES = {True: "yes", False: "no"}
Samples = Iterable[tuple[tuple[str, ...], float]]
"""Values, each with the values of the labels."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric.

    Attributes:
        name: without ``PREFIX``; that of a counter ends in ``_total``.
        kind: ``gauge`` or ``counter``.
        meaning: what it says, and when it is missing.
        read: its samples; none: nothing is known, and the metric is missing.
        labels: beside ``migration``, which every metric has.
    """

    name: str
    kind: str
    meaning: str
    read: Callable[[Observation], Samples]
    labels: tuple[str, ...] = ()

    @property
    def full_name(self) -> str:
        """Returns the name as it is scraped."""
        return f"{PREFIX}{self.name}"


def _one(value: float | None) -> Samples:
    """A metric without labels of its own; missing where the value isn't known."""
    return () if value is None else (((), float(value)),)


def _positions(seen: Observation) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, position in (("source", seen.end), ("captured", seen.captured), ("applied", seen.applied)):
        if position is not None:
            yield (name, seen.unit), float(position.order)


def _backlog_age(seen: Observation) -> Samples:
    if seen.lag.age_s is None or seen.capture_lag.age_s is None:
        return ()
    return _one(max(0.0, seen.lag.age_s - seen.capture_lag.age_s))


def _retention(name: str) -> Callable[[Observation], Samples]:
    return lambda seen: _one(None if seen.retention is None else getattr(seen.retention, name))


def _seconds(at_us: int) -> float:
    return at_us / 1e6


METRICS: tuple[Metric, ...] = (
    # -- who -----------------------------------------------------------------------------------------------------
    Metric(
        "leading",
        GAUGE,
        "1 in the process that leads, 0 in one that stands by",
        lambda s: _one(s.role == "leader"),
    ),
    Metric(
        "leader_known",
        GAUGE,
        "1 while this process knows of one that leads, itself included",
        lambda s: _one(bool(s.leader) or s.role == "leader"),
    ),
    Metric(
        "standbys",
        GAUGE,
        "processes that stand by; missing where that isn't known",
        lambda s: _one(s.standbys),
    ),
    Metric(
        "epoch",
        GAUGE,
        "number of the lease; rises when another process takes over",
        lambda s: _one(s.epoch or None),
    ),
    Metric(
        "phase",
        GAUGE,
        "1 for the phase that this process is in, 0 for all others",
        lambda s: (((phase,), float(phase == s.phase)) for phase in PHASES),
        ("phase",),
    ),
    Metric(
        "start_timestamp_seconds", GAUGE, "when this process began", lambda s: _one(_seconds(s.started_us))
    ),
    Metric(
        "last_end_timestamp_seconds",
        GAUGE,
        "when the run before this one ended; `error`: the name of the error that ended it, `none` for a clean stop",
        lambda s: () if s.ended is None else (((s.ended.error or "none",), _seconds(s.ended.at_us)),),
        ("error",),
    ),
    # -- lag -----------------------------------------------------------------------------------------------------
    Metric(
        "lag_known",
        GAUGE,
        "1 while the lag is known, 0 while the source can't be asked",
        lambda s: _one(s.lag.age_s is not None),
    ),
    Metric(
        "lag_seconds",
        GAUGE,
        "at most how old the oldest change is that isn't applied; 0: caught up. Missing while it isn't known",
        lambda s: _one(s.lag.age_s),
    ),
    Metric(
        "lag_at_most_seconds",
        GAUGE,
        "how long ago the target was last known to have everything; rises also while the source can't be asked",
        lambda s: _one(s.lag.at_most_s),
    ),
    Metric(
        "lag_distance",
        GAUGE,
        "distance of the target from the source's position, in the unit of the source's log",
        lambda s: () if s.lag.behind is None else (((s.unit,), float(s.lag.behind)),),
        ("unit",),
    ),
    Metric(
        "capture_lag_seconds",
        GAUGE,
        "the same age for what is captured; the rest of the lag waits to be applied",
        lambda s: _one(s.capture_lag.age_s),
    ),
    Metric(
        "capture_lag_at_most_seconds",
        GAUGE,
        "how long ago everything was last captured, at most; rises also while the source can't be asked",
        lambda s: _one(s.uncaptured_s()),
    ),
    Metric(
        "position",
        GAUGE,
        "order of a position: of the `source`'s end, of what is `captured`, of what is `applied`",
        _positions,
        ("of", "unit"),
    ),
    # -- servers -------------------------------------------------------------------------------------------------
    Metric("source_up", GAUGE, "1 while the source answers", lambda s: _one(not s.source.problem)),
    Metric(
        "source_answer_seconds",
        GAUGE,
        "time of its last answer to a small question",
        lambda s: _one(s.source.answer_s),
    ),
    Metric("target_up", GAUGE, "1 while the target answers", lambda s: _one(not s.target.problem)),
    Metric(
        "source_since_timestamp_seconds",
        GAUGE,
        "since when the source answers, or doesn't",
        lambda s: _one(_seconds(s.source.since_us) or None),
    ),
    Metric(
        "target_since_timestamp_seconds",
        GAUGE,
        "since when the target answers, or doesn't",
        lambda s: _one(_seconds(s.target.since_us) or None),
    ),
    Metric(
        "target_answer_seconds",
        GAUGE,
        "time of its last answer to a small question",
        lambda s: _one(s.target.answer_s),
    ),
    Metric(
        "source_log_kept_bytes",
        GAUGE,
        "log that the source has for this migration: what its slot holds (PostgreSQL), or what follows the captured"
        " position (MySQL, MariaDB; needs REPLICATION CLIENT or BINLOG MONITOR)",
        _retention("kept_bytes"),
    ),
    Metric(
        "source_log_left_bytes",
        GAUGE,
        "log that may be written before the source gives up what is needed",
        _retention("left_bytes"),
    ),
    Metric(
        "source_log_bound_bytes",
        GAUGE,
        "log that the source keeps at most (`max_slot_wal_keep_size`, `max_binlog_total_size`)",
        _retention("bound_bytes"),
    ),
    Metric(
        "source_log_expiry_seconds",
        GAUGE,
        "after which time the source gives up its log, needed or not",
        _retention("expiry_s"),
    ),
    Metric(
        "source_log_endangered",
        GAUGE,
        "1 where log that is needed may be lost at any moment, or is lost",
        lambda s: _one(None if s.retention is None else bool(s.retention.endangered)),
    ),
    # -- what waits ----------------------------------------------------------------------------------------------
    Metric(
        "backlog_segments",
        GAUGE,
        "segments of the event log that aren't applied",
        lambda s: _one(s.room.segments),
    ),
    Metric("backlog_age_seconds", GAUGE, "the part of the lag that waits in the event log", _backlog_age),
    Metric(
        "event_log_bytes",
        GAUGE,
        "size of the event log on this machine",
        lambda s: _one(s.room.event_log_bytes),
    ),
    Metric(
        "disk_free_bytes",
        GAUGE,
        "free on the disk of the state folder",
        lambda s: _one(s.room.disk_free_bytes),
    ),
    # -- dumps ---------------------------------------------------------------------------------------------------
    Metric(
        "dump_rows",
        GAUGE,
        "rows of a source table that its first dump has read",
        lambda s: (((str(d.table),), float(d.rows + d.dropped_rows)) for d in s.dumps),
        ("table",),
    ),
    Metric(
        "dump_estimated_rows",
        GAUGE,
        "rows that the source expected when the dump began",
        lambda s: (((str(d.table),), float(d.estimated_rows)) for d in s.dumps),
        ("table",),
    ),
    Metric(
        "dump_done",
        GAUGE,
        "1 once the table's first dump is done",
        lambda s: (((str(d.table),), float(d.done)) for d in s.dumps),
        ("table",),
    ),
    Metric(
        "filling_rows",
        GAUGE,
        "rows of its grain's tables that a joined target under way covers",
        lambda s: (((f.target,), float(f.rows)) for f in s.filling),
        ("target",),
    ),
    Metric(
        "filling_estimated_rows",
        GAUGE,
        "rows that these tables had when filling began",
        lambda s: (((f.target,), float(f.of_rows)) for f in s.filling),
        ("target",),
    ),
    Metric("dump_requests_running", GAUGE, "dump requests that run", lambda s: _one(s.requests_left)),
    # -- work ----------------------------------------------------------------------------------------------------
    Metric(
        "batches_total",
        COUNTER,
        "target transactions by phase: `dump`, `stream`, `fill`",
        lambda s: s.work.batches,
        ("phase",),
    ),
    Metric(
        "batch_seconds_total",
        COUNTER,
        "time of batches by step: `map` on Spark, `commit` in the target",
        lambda s: s.work.batch_seconds,
        ("step",),
    ),
    Metric(
        "captured_changes_total",
        COUNTER,
        "row changes read from the source's log, by table and operation",
        lambda s: s.work.changes,
        ("table", "operation"),
    ),
    Metric(
        "inserts_fell_off",
        GAUGE,
        "1 for a table that had, over five minutes, less than a quarter of the inserts that were usual in the hour"
        " before; missing for all others",
        lambda s: (((one.table,), 1.0) for one in s.fallen),
        ("table",),
    ),
    Metric("applied_changes_total", COUNTER, "row changes applied", lambda s: _one(s.work.applied_changes)),
    Metric(
        "applied_dump_rows_total", COUNTER, "dump rows applied", lambda s: _one(s.work.applied_chunk_rows)
    ),
    Metric(
        "applied_transactions_total",
        COUNTER,
        "source transactions applied",
        lambda s: _one(s.work.applied_transactions),
    ),
    Metric(
        "reconnects_total",
        COUNTER,
        "connections to the source's log that were made again",
        lambda s: _one(s.work.reconnects),
    ),
    Metric(
        "set_aside",
        GAUGE,
        "rows and grains that are set aside, so that the target lacks them, by `kind` (`row`, `grain`), and by"
        " whether somebody `dropped` them (`yes`, `no`); missing where there are none",
        lambda s: (((one.target, one.kind, _YES[one.dropped]), float(one.number)) for one in s.aside),
        ("target", "kind", "dropped"),
    ),
    Metric(
        "errors_total",
        COUNTER,
        "errors met, by name, those that were got over included",
        lambda s: s.work.errors,
        ("error",),
    ),
    Metric(
        "warning",
        GAUGE,
        "1 for each thing that the run warns of",
        lambda s: (((about,), 1.0) for about in dict.fromkeys(a for a, _ in s.warnings)),
        ("about",),
    ),
    # -- verdicts ------------------------------------------------------------------------------------------------
    Metric(
        "verify_verdict",
        GAUGE,
        "1 for the verdict of a table's last verification: `equal`, `different`, `unknown`",
        lambda s: (((t.table, t.verdict), 1.0) for t in s.judged.verified if t.verdict),
        ("table", "verdict"),
    ),
    Metric(
        "verify_timestamp_seconds",
        GAUGE,
        "when a table's last verification ended",
        lambda s: (((t.table,), _seconds(t.at_us)) for t in s.judged.verified if t.at_us),
        ("table",),
    ),
    Metric(
        "verify_key_share",
        GAUGE,
        "share of a table's keys that were compared and settled, 0 to 1",
        lambda s: (((t.table,), t.key_share) for t in s.judged.verified),
        ("table",),
    ),
    Metric(
        "verify_column_share",
        GAUGE,
        "share of its columns",
        lambda s: (((t.table,), t.column_share) for t in s.judged.verified),
        ("table",),
    ),
    Metric(
        "verify_differing_keys",
        GAUGE,
        "keys that differ",
        lambda s: (((t.table,), float(t.differing)) for t in s.judged.verified),
        ("table",),
    ),
    Metric(
        "dual_reads",
        GAUGE,
        "comparisons of the last dual read of each query, by verdict: `settled`, `lag`, `wrong`, `unknown`",
        lambda s: (((name,), float(n)) for name, n in s.judged.reads),
        ("verdict",),
    ),
    # -- processes -----------------------------------------------------------------------------------------------
    Metric(
        "memory_bytes",
        GAUGE,
        "resident memory, by process: `python`, `jvm`",
        lambda s: (((name,), float(n)) for name, n in s.memory),
        ("process",),
    ),
    Metric(
        "jvm_heap_bytes",
        GAUGE,
        "the heap of Spark's JVM: `used` (what awaits collection included), `committed`, and its `limit`; missing"
        " while it gives no answer",
        lambda s: (((of,), float(n)) for of, n in s.heap),
        ("of",),
    ),
)
"""The metrics in the order of the documents."""
