"""Results of dual reads, as they are kept for the gate of reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadsLimits:
    """The limits of the gate of reads.

    Attributes:
        comparisons: settled comparisons that each pair of queries needs.
        slower: the new side's p99 may be so many times the old one's.
    """

    comparisons: int = 100
    slower: float = 2.0


@dataclass(frozen=True, slots=True)
class ReadShape:
    """The last result of one pair of queries.

    Attributes:
        file: the file of the pair, as an absolute path.
        content: SHA-256 of that file when the pair was last found in it.
        name: of the pair.
        queries: SHA-256 of its two queries and of the rules by which answers are compared.
        mapping: fingerprint of the mapping that was in force.
        at_s: when it was compared, seconds since 1970; 0: never.
        settled: comparisons that proved both sides equal: matches, lag, and differences for accepted causes.
        lag: those of them that were equal only once the target had passed the old read.
        wrong: bugs, and differences for causes that nobody accepted.
        unknown: comparisons that proved nothing.
        old_p50_ms: median latency of the old side.
        old_p99_ms: its 99th percentile.
        new_p50_ms: of the new side.
        new_p99_ms: likewise.
    """

    file: str
    content: str
    name: str
    queries: str
    mapping: str = ""
    at_s: float = 0.0
    settled: int = 0
    lag: int = 0
    wrong: int = 0
    unknown: int = 0
    old_p50_ms: float = 0.0
    old_p99_ms: float = 0.0
    new_p50_ms: float = 0.0
    new_p99_ms: float = 0.0
