"""The values with which one leader's capture begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from migrator.model.limits import CaptureLimits
from migrator.model.progress import Checkpoint
from migrator.model.table import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class Attempt:
    """One process's attempt to capture: which tables, from where on, within which bounds.

    Attributes:
        schemas: the captured tables as they are now.
        checkpoint: where to go on from; None starts at the log's present end with a dump of every table.
        limits: the user's bounds.
        run_token: distinguishes this process's watermarks from an earlier attempt's.
        estimates: the source's row estimates, for a dump that begins now.
        max_keys: bound of keys remembered per transaction or window (see ``Capture``).
        applied: whether somebody applies what is captured: a halt waits until that is done.
        replaced: names that other tables are known to have by now: all of their rows are read again.
    """

    schemas: Mapping[TableId, TableSchema]
    checkpoint: Checkpoint | None
    limits: CaptureLimits
    run_token: str
    estimates: Mapping[TableId, int] = field(default_factory=dict)
    max_keys: int = 20_000
    applied: bool = False
    replaced: frozenset[TableId] = frozenset()
