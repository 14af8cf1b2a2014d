"""The bounds beyond which a live page says that something is wrong; ``[observe]`` of ``migration.toml`` sets them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a project, each named as its setting.

    Attributes:
        max_lag_s: the lag, in seconds.
        stalled_s: how long captured changes may wait while no batch is applied.
        slow_source_s, slow_target_s: how long a small question may take, as a mean of two minutes.
        least_disk_bytes: what must be free on the disk of the state folder.
        most_log_bytes: how much log a source without any bound may keep for the migration.
        log_left_share: how much of a source's own bound must be left.
        log_age_share: how much of the time for which a source keeps its log the target may be behind.
        hot_share: share of all changes that one table may have while the target falls behind.
    """

    max_lag_s: float = 60.0
    stalled_s: float = 60.0
    slow_source_s: float = 0.5
    slow_target_s: float = 1.0
    least_disk_bytes: int = 1_000_000_000
    most_log_bytes: int = 20_000_000_000
    log_left_share: float = 0.25
    log_age_share: float = 0.5
    hot_share: float = 0.8


SHARES = ("log_left_share", "log_age_share", "hot_share")
"""Bounds that are shares, from 0 to 1."""
