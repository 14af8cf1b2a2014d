"""Bounds that the user may set, with the defaults."""

from __future__ import annotations

from dataclasses import dataclass

MOST_CHUNK_ROWS = 1_000_000
LONGEST_PAUSE_S = 3600.0
"""The most that may be asked for while a run goes on, rows of a chunk and seconds between two: more is a slip or an
attack."""
MOST_WORKERS = 16
"""Workers of a dump at most: each is a thread and a connection."""


STOP, SET_ASIDE = "stop", "set_aside"
"""Values of ``bad_rows``: the run ends where the target refuses a row for what it holds, or goes on without it."""


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Bounds of capture.

    Attributes:
        chunk_rows: rows of the first chunk; later ones adapt to ``chunk_target_s``.
        chunk_rows_min, chunk_rows_max: bounds of the adaptation.
        chunk_target_s: how long one chunk SELECT should take, which bounds how long a read view is held.
        chunk_bytes: how large one chunk should be at most in memory, by the rows that the table had so far. About
            ``dump_workers`` + 2 chunks are held.
        dump_workers: how many chunks are read at the same time, each over a connection of its own. 1: as
            DBLog does,
            one after the other, without looking for the end of a chunk first.
        chunk_reading: who reads chunks: ``driver``, or ``executors``, each chunk by one task.
        dump_share: for which share of the time chunks may be read while others work on the source; 1: all the time.
        max_active_sessions: while more sessions of others are active on the source, chunks are read ever more
            slowly;
            0: no such bound.
        max_replica_lag_s: while a replica is further behind, the same; 0: no such bound.
        table_silence_s: a table that had changes, and has had none for so long while others had, is warned of;
            0: nobody is.
        segment_rows: a segment is written at the latest when it holds this many rows.
        linger_s: a segment is written at the latest this long after its first row; up to four times as long while
            earlier ones weren't read yet.
        heartbeat_s: how often the position moves on while there is nothing to write.
        backlog_bytes: chunks wait while the event log holds more than this.
        event_log_bytes: changes wait as well while it would hold more than this; 0: no such bound.
        event_log_free_bytes: everything waits while less than this would be free on its disk; 0: a fiftieth of the
            disk, but 256 MiB at most.
        keep_applied_bytes: how much of what the target holds already stays in it, for incidents; 0: nothing.
    """

    chunk_rows: int = 20_000
    chunk_rows_min: int = 500
    chunk_rows_max: int = 100_000
    chunk_target_s: float = 0.4
    chunk_bytes: int = 32 << 20
    dump_workers: int = 2
    chunk_reading: str = "driver"
    dump_share: float = 0.1
    max_active_sessions: int = 0
    max_replica_lag_s: float = 0.0
    table_silence_s: float = 0.0
    segment_rows: int = 100_000
    linger_s: float = 0.03
    heartbeat_s: float = 0.5
    backlog_bytes: int = 1 << 30
    event_log_bytes: int = 0
    event_log_free_bytes: int = 0
    keep_applied_bytes: int = 0


@dataclass(frozen=True, slots=True)
class ApplyLimits:
    """Bounds of apply.

    Attributes:
        batch_rows: rows mapped and applied in one target transaction (a larger source transaction is still applied
            whole).
        interval_s: least time from the start of one batch to the start of the next. Every batch costs one Spark job
            and a few statements for each target table it touches, whatever it holds: on few cores a longer interval
            leaves more of the machine to others and lets lag grow by as much.
        staging: who loads the dump rows of large batches: ``driver``, over the connection that merges them;
            ``executors``, in parallel into staging tables; ``auto``: executors, unless Spark is one local process.
        staging_rows: from how many dump rows on a batch is large.
        slice_grains: how many grains of a joined target are read and mapped at a time, where one change
            reaches more.
        bad_rows: ``STOP`` or ``SET_ASIDE``.
        bad_rows_per_table: how many rows of one target table may be set aside at a time.
        bad_rows_per_run: how many may be set aside, of all tables, by one process while it leads.
        upkeep: whether the target is to look at a table (``VACUUM (ANALYZE)``) once a dump has filled it.
    """

    batch_rows: int = 200_000
    interval_s: float = 0.05
    staging: str = "auto"
    staging_rows: int = 20_000
    slice_grains: int = 20_000
    bad_rows: str = STOP
    bad_rows_per_table: int = 100
    bad_rows_per_run: int = 1000
    upkeep: bool = True
