"""The load of a source, as far as it tells."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Load:
    """One sample.

    Attributes:
        active_sessions: sessions of others that run a statement right now; None: can't be seen.
        replica_lag_s: how far the slowest replica is behind, in seconds; None: no replica can be seen.
        lately: whether a session of others ran a statement a moment ago, though none may now; false where the
            server
            doesn't tell.
    """

    active_sessions: int | None = None
    replica_lag_s: float | None = None
    lately: bool = False
