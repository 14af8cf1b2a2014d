"""All (key, state) pairs at which anything can change for a key under judgement, with both sides' versions there.

A point is where the target changed the key, where the ledger's position came to include a write of it, or where its
judgement began. Between two points of a key neither side moves, so what holds at all points holds at all states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from verify.history.commits import Steps
from verify.history.coverage import Spans
from verify.history.rows import Array, Rows
from verify.history.target import Target, present, taken_or_absent
from verify.history.versions import SourceLog


@dataclass(frozen=True, slots=True)
class Points:
    """Points sorted by key, then step.

    Attributes:
        key: of the point.
        step: the committed state.
        span: index of the judgement it belongs to.
        target: index of the target's net change that stands there, -1 if there has been none.
        source: index into ``SourceLog.by_key`` of the last write within the position, -1 if there is none.
        here: whether the target has a row.
        seen: version that the target shows; of an absent key its newest delete within the position.
        due: version that the source had.
    """

    key: Array
    step: Array
    span: Array
    target: Array
    source: Array
    here: Array
    seen: Array
    due: Array

    def __len__(self) -> int:
        return len(self.key)

    def target_rows(self, target: Target, index: Array | slice = slice(None)) -> Rows:
        """Returns the rows that the target holds at some points."""
        return taken_or_absent(target.rows, self.target[index])

    def source_rows(self, log: SourceLog, index: Array | slice = slice(None)) -> Rows:
        """Returns the rows that the source held at the position of some points."""
        return taken_or_absent(log.rows, log.version_of(self.source[index]))


def read_points(log: SourceLog, steps: Steps, target: Target, spans: Spans) -> Points:
    """Every point of every key under judgement."""
    size = len(steps) + 1
    shown_at = steps.first_showing(np.arange(len(log.rows)))
    shown = shown_at < len(steps)
    code = np.concatenate(
        [
            target.rows.key.astype(np.int64) * size + target.step,
            log.rows.key[shown].astype(np.int64) * size + shown_at[shown],
            spans.key.astype(np.int64) * size + spans.start,
        ]
    )
    code.sort()
    distinct = np.ones(len(code), bool)
    distinct[1:] = code[1:] != code[:-1]
    code = code[distinct]
    key, step = code // size, code % size
    span = spans.at(key, step)
    judged = span >= 0
    key, step, span = key[judged], step[judged], span[judged]
    held = target.at(key, step)
    prefix = steps.reached[step] if len(steps) else step
    source = log.last_write(key, prefix)
    here = present(taken_or_absent(target.rows, held))
    return Points(
        key,
        step,
        span,
        held,
        source,
        here,
        _seen(log, target, held, here, prefix, source),
        log.version_of(source),
    )


def _seen(log: SourceLog, target: Target, held: Array, here: Array, prefix: Array, source: Array) -> Array:
    """Versions that the target shows."""
    seen = log.newest_delete_of(source)
    rows = target.rows.take(held[here])
    first, count = log.puts.find(log.identities.of(rows))
    seen[here] = log.puts.newest(first, count, prefix[here])
    return seen
