"""The keys that are under judgement at each committed state.

A key is under judgement from the first commit on whose dump progress covers it, or that applied a change of it.
Where a table's progress falls (its dump began anew), judgement ends for its keys and begins again by the same rule.
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from migrator.errors import VerifyError
from verify.history.commits import Steps
from verify.history.history import LOG, History, TrackedTable
from verify.history.rows import Array, Keys, Rows, integers


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of steps during which a key is under judgement, sorted by key, then by start.

    Attributes:
        key: one per span; a key has more than one only if its dump began anew.
        start: first step.
        end: step after the last.
        steps: the number of all steps.
        first: per key of the history its first span's start, ``steps`` without one.
        until: per key of the history its last span's end, 0 without one.
        done: per table the steps at which all of it is covered.
    """

    key: Array
    start: Array
    end: Array
    steps: int
    first: Array
    until: Array
    done: Mapping[str, Array]

    def at(self, key: Array, step: Array) -> Array:
        """Index of the span around each (key, step), -1 if there is none."""
        if not len(self.key):
            return np.full(len(key), -1, np.int64)
        starts = self.key.astype(np.int64) * (self.steps + 1) + self.start
        span = np.searchsorted(starts, key.astype(np.int64) * (self.steps + 1) + step, "right") - 1
        inside = (span >= 0) & (self.key[span] == key) & (step < self.end[span])
        return np.where(inside, span, -1)


def read_spans(history: History, rows: Mapping[str, Rows], keys: Keys, steps: Steps) -> Spans:
    """Judgement of every key. Raises ``VerifyError`` for dump progress that can't be read."""
    described = {table.name: table for table in history.description.tables}
    progress = _progress(history)
    applied_key, applied_step = _applied(history, rows, steps)
    parts: list[tuple[Array, Array, Array]] = []
    done: dict[str, Array] = {}
    for name in keys.tables:
        of_table = keys.of_table(name)
        table = described.get(name, TrackedTable(name, numeric_key=False))
        rank, levels, done[name] = _levels(table, keys, of_table, [covered.get(name) for covered in progress])
        level = np.append(levels, 0)[steps.recorded] if len(steps) else levels
        fallen = np.flatnonzero(level[1:] < level[:-1]) + 1
        bounds = [0, *fallen.tolist(), len(steps)]
        done[name] = np.append(done[name], False)[steps.recorded] if len(steps) else done[name]
        for begin, end in pairwise(bounds):
            start = begin + np.searchsorted(level[begin:end], rank + 1, "left")
            within = (applied_step >= begin) & (applied_step < end)
            earliest = np.full(len(keys), end, np.int64)
            np.minimum.at(earliest, applied_key[within], applied_step[within])
            start = np.minimum(start, earliest[of_table])
            judged = start < end
            parts.append((of_table[judged], start[judged], np.full(int(judged.sum()), end)))
    return _spans(parts, len(keys), len(steps), done)


def _spans(
    parts: Sequence[tuple[Array, Array, Array]], keys: int, steps: int, done: Mapping[str, Array]
) -> Spans:
    empty = np.empty(0, np.int64)
    key, start, end = (
        (np.concatenate([empty, *arrays]) for arrays in zip(*parts, strict=True)) if parts else [empty] * 3
    )
    order = np.lexsort((start, key))
    first = np.full(keys, steps, np.int64)
    np.minimum.at(first, key, start)
    until = np.zeros(keys, np.int64)
    np.maximum.at(until, key, end)
    return Spans(key[order], start[order], end[order], steps, first, until, done)


def _applied(history: History, rows: Mapping[str, Rows], steps: Steps) -> tuple[Array, Array]:
    """(key, step) of everything that a commit has applied: events delivered from the log, and rows it changed."""
    own = steps.commit[steps.of_change] != 0 if len(steps) else np.empty(0, bool)
    changed, at = rows["changes"].key[own], steps.of_change[own]
    from_log = is_origin(history, LOG)
    segment = integers(history.deliveries["segment"])[from_log]
    delivered_at = steps.of_segment(segment)
    arrived = delivered_at < len(steps)
    delivered = rows["deliveries"].key[from_log]
    return np.concatenate([changed, delivered[arrived]]), np.concatenate([at, delivered_at[arrived]])


def is_origin(history: History, origin: str) -> Array:
    """Marks the deliveries of one origin: from the log, or from chunks."""
    column = history.deliveries["origin"]
    encoded = column.dictionary_encode().unify_dictionaries().chunks
    found = [
        np.asarray(chunk.dictionary.to_pylist() or [""], dtype=object)[chunk.indices.to_numpy()] == origin
        for chunk in encoded
    ]
    return np.concatenate([np.empty(0, bool), *found])


def _progress(history: History) -> list[Mapping[str, Any]]:
    read: dict[str, Mapping[str, Any]] = {}
    return [_parsed(text, read) for text in history.commits["covered"].to_pylist()]


def _parsed(text: str | None, read: dict[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    if text is None:
        return {}
    if text not in read:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise VerifyError("a commit's dump progress is no JSON", where=text, cause=str(error)) from error
        if not isinstance(found, dict):
            raise VerifyError("a commit's dump progress is no JSON object", where=text)
        read[text] = found
    return read[text]


def _levels(
    table: TrackedTable, keys: Keys, of_table: Array, said: Iterable[Any]
) -> tuple[Array, Array, Array]:
    """Returns each key's rank, and for each commit the number of ranks it covers (one more when the dump is done) and
    whether the dump is done."""
    values = list(said)
    done = np.array([value is True for value in values], bool)
    if not table.numeric_key:
        return np.zeros(len(of_table), np.int64), done.astype(np.int64), done
    integer = keys.integers(of_table)
    order = np.argsort(integer, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    in_order = integer[order].tolist()
    levels = [
        len(in_order) + 1
        if value is True
        else 0
        if value in (None, False)
        else _level(table, in_order, value)
        for value in values
    ]
    return rank, np.array(levels, np.int64), done


def _level(table: TrackedTable, in_order: Sequence[int], last: Any) -> int:
    try:
        return bisect.bisect_right(in_order, int(last))
    except (TypeError, ValueError) as error:
        raise VerifyError(
            f"the last dumped key of {table.name} is no integer", where=repr(last), cause=str(error)
        ) from error
