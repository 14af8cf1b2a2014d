"""The bounds on how long the source keeps its log for us."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.model.position import Position


@dataclass(frozen=True, slots=True)
class Retention:
    """The source's answer about its log; None: it doesn't tell, or has no such bound.

    Attributes:
        end: a place at or after every transaction visible at that moment.
        kept_bytes: how much log the source has for us: what a slot holds, or what follows what is captured.
        left_bytes: how much may still be written before it gives up what we need.
        bound_bytes: how much it keeps for us at most.
        expiry_s: after how many seconds it gives up its log, needed or not.
        endangered: why what we need may be gone at any moment, or is; empty: it isn't.
        remedy: what gives more time.
    """

    end: Position
    kept_bytes: int | None = None
    left_bytes: int | None = None
    bound_bytes: int | None = None
    expiry_s: float | None = None
    endangered: str = ""
    remedy: str = ""
