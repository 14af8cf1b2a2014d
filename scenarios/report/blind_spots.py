"""The limits of a passing report. Every report prints them, so that nobody takes it for more."""

from __future__ import annotations

BLIND_SPOTS: tuple[tuple[str, str], ...] = (
    (
        "interleavings that did not happen",
        "A pass says that nothing went wrong in these runs. 0 failures of n seeds bound the true rate per seed by 3/n"
        " (95%), for faults and workloads like these.",
    ),
    (
        "columns without provenance",
        "D1 to D6 follow a row by session, number and value. A wrong value in another column is found at the end only"
        " (D7 compares what is tracked; migrator verify compares every cell).",
    ),
    (
        "the meaning of your mapping",
        "The workloads' mappings rename and retype, rows stay rows. Whether a mapping does what its author meant is"
        " for its own tests and for migrator verify.",
    ),
    (
        "keys that the dump has not reached",
        "A key is under judgement from the commit on that covers it, or that applied a change of it.",
    ),
    (
        "what never reaches the source's log",
        "The recorder reads the server's log with other code than the pipeline's, but the same log: a session with"
        " sql_log_bin=0, or a server that logs something else than it stores, deceives both. D7 sees the end state.",
    ),
    (
        "a power cut",
        "SIGKILL keeps what the kernel has cached. That fsync is called is tested; that the disk obeys is believed.",
    ),
    (
        "packets",
        "Network faults are made by a proxy in user space: delays, cuts, resets, slices, flipped bytes of a stream."
        " Not lost, doubled or reordered packets, which TCP hides until it gives up.",
    ),
    (
        "several machines",
        "Everything runs on one machine, on its clock. Cuts between a leader and ZooKeeper are made by a proxy.",
    ),
    (
        "lag, exactly",
        "Lag compares two servers' clocks, and MariaDB's log counts whole seconds: there it is up to a second too"
        " long. No verdict uses a clock.",
    ),
)
"""Pairs: a fault that the report can't see, and the reason with the test that sees it instead."""
