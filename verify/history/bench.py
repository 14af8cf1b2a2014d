"""Benchmark of the judge: makes a large valid history and judges it (``python -m verify.history.bench``).

The history is what a correct run records: every event is written by a client, logged, delivered and applied; chunk
rows bring the rows that existed before, in key order, while the clients write. One row of the log, the deliveries,
the changes or the operations is one event.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import time
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from verify.history.history import (
    CHUNK,
    LOG,
    OK,
    PUT,
    SCHEMAS,
    Description,
    History,
    TrackedTable,
    table_of,
)
from verify.history.judge import ALL, judge
from verify.history.result import CheckResult
from verify.history.rows import Array

_TABLE = "counter"
_SESSIONS = 64
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class Measured:
    """Measurements of one benchmark.

    Attributes:
        events: rows of the log, deliveries, changes and operations.
        commits: target commits.
        keys: distinct keys.
        elapsed_s: of judging.
        peak_bytes: largest resident set of the process, the making of the history included.
        results: the verdicts.
    """

    events: int
    commits: int
    keys: int
    elapsed_s: float
    peak_bytes: int
    results: tuple[CheckResult, ...]


def bench(events: int, keys: int | None = None, commits: int | None = None, seed: int = 1) -> Measured:
    """Judges a history of about ``events`` events, with a key for every ten and a commit for every 200 by default."""
    keys = keys or max(events // 10, 1)
    commits = commits or max(events // 200, 1)
    writes = max((events - 3 * keys) // 4, 1)
    history = make_history(keys, writes, commits, seed)
    began = time.monotonic()
    results = judge(history)
    elapsed_s = time.monotonic() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    counted = sum(getattr(history, name).num_rows for name in ("log", "deliveries", "changes", "operations"))
    return Measured(counted, history.commits.num_rows, keys, elapsed_s, peak, results)


def make_history(keys: int, writes: int, commits: int, seed: int) -> History:
    """A valid history: ``keys`` rows from before the run, dumped in key order during the first half of ``writes``
    single-row transactions that 64 sessions commit, applied by ``commits`` commits of one segment each."""
    rng = np.random.default_rng(seed)
    names = pa.array(np.arange(keys)).cast(pa.string())
    hot = rng.integers(0, max(keys // 100, 1), writes)
    key = np.where(rng.random(writes) < 0.2, hot, rng.integers(0, keys, writes))
    session = rng.integers(1, _SESSIONS + 1, writes).astype(np.int32)
    number = _running_count(session)
    step = rng.integers(1, 100, writes)
    value = _running_sum(key, step)
    segment = np.minimum(np.arange(writes) * commits // writes, commits - 1) + 1
    dumped_in = np.minimum(np.arange(keys) * (commits // 2) // keys, commits - 1) + 1  # segment per key
    first_touch = np.full(keys, commits + 1)
    np.minimum.at(first_touch, key, segment)
    kept = np.flatnonzero(first_touch > dumped_in)  # the chunk rows that no event overtook
    rows: dict[str, Array] = {"key": key, "session": session, "number": number, "value": value}
    initial: dict[str, Array] = {
        "key": np.arange(keys),
        "session": np.zeros(keys, np.int32),
        "number": np.arange(keys, dtype=np.int32),
        "value": np.zeros(keys, np.int64),
    }
    both = {name: np.concatenate([initial[name], rows[name]]) for name in rows}
    position = np.concatenate([np.zeros(keys, np.int64), np.arange(1, writes + 1)])
    final = _final(both)
    no_rows = {name: table_of(name, {}) for name in ("observations", "faults")}
    return History(
        Description("bench", "simulation", seed, (TrackedTable(_TABLE, fold=True),), drained=True),
        operations=_rows("operations", names, rows, outcome=_text(OK, writes)),
        log=_rows("log", names, both, position=position, order=position * 8, index=np.zeros(len(position))),
        deliveries=_deliveries(names, initial, rows, kept, dumped_in, segment),
        changes=_changes(names, initial, rows, kept, dumped_in, segment),
        commits=_commits(commits, segment, dumped_in),
        final_source=_rows("final_source", names, final),
        final_target=_rows("final_target", names, final),
        **no_rows,
    )


def _running_count(group: Array) -> Array:
    return _running_sum(group, np.ones(len(group), np.int64)).astype(np.int32)


def _running_sum(group: Array, step: Array) -> Array:
    order = np.argsort(group, kind="stable")
    total = np.cumsum(step[order])
    first = np.append(True, group[order][1:] != group[order][:-1])
    begins = np.flatnonzero(first)
    before = (total - step[order])[begins]
    sums = np.empty(len(group), np.int64)
    sums[order] = total - before[np.cumsum(first) - 1]
    return sums


def _final(rows: dict[str, Array]) -> dict[str, Array]:
    order = np.argsort(rows["key"], kind="stable")
    last = order[np.append(np.diff(rows["key"][order]) != 0, True)]
    return {name: column[last] for name, column in rows.items()}


def _changes(
    names: pa.Array,
    initial: dict[str, Array],
    rows: dict[str, Array],
    kept: Array,
    dumped_in: Array,
    segment: Array,
) -> pa.Table:
    """The net changes of each commit: of each key its last write in the segment, else its chunk row."""
    code = rows["key"].astype(np.int64) * (int(segment[-1]) + 1) + segment
    order = np.argsort(code, kind="stable")
    last = np.sort(order[np.append(np.diff(code[order]) != 0, True)])
    both = {name: np.concatenate([initial[name][kept], rows[name][last]]) for name in rows}
    commit = np.concatenate([dumped_in[kept], segment[last]])
    by_commit = np.argsort(commit, kind="stable")
    return _rows(
        "changes", names, {name: column[by_commit] for name, column in both.items()}, commit=commit[by_commit]
    )


def _deliveries(
    names: pa.Array,
    initial: dict[str, Array],
    rows: dict[str, Array],
    kept: Array,
    dumped_in: Array,
    segment: Array,
) -> pa.Table:
    both = {name: np.concatenate([initial[name][kept], rows[name]]) for name in rows}
    at = np.concatenate([dumped_in[kept], segment])
    by_segment = np.argsort(at, kind="stable")
    is_chunk = by_segment < len(kept)
    order = np.concatenate([np.zeros(len(kept), np.int64), np.arange(1, len(segment) + 1) * 8])[by_segment]
    return _rows(
        "deliveries",
        names,
        {name: column[by_segment] for name, column in both.items()},
        segment=at[by_segment],
        origin=pc.if_else(pa.array(is_chunk), CHUNK, LOG),
        order=pa.array(order, mask=is_chunk),
    )


def _commits(commits: int, segment: Array, dumped_in: Array) -> pa.Table:
    number = np.arange(1, commits + 1)
    order = np.searchsorted(segment, number, "right") * 8
    dumped = np.searchsorted(dumped_in, number, "right")
    covered = [
        json.dumps({_TABLE: True if count == len(dumped_in) else str(count - 1) if count else None})
        for count in dumped.tolist()
    ]
    columns = {"commit": number, "segment": number, "order": order, "covered": covered}
    return table_of("commits", {**columns, "epoch": np.ones(commits), "committed_at_us": number})


def _rows(table: str, names: pa.Array, rows: dict[str, Array], **more: object) -> pa.Table:
    count = len(rows["key"])
    columns = {
        **rows,
        **more,
        "key": names.take(pa.array(rows["key"])),
        "table": _text(_TABLE, count),
        "kind": np.full(count, PUT),
    }
    schema = SCHEMAS[table]
    arrays = [
        pa.array(columns[field.name]).cast(field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _text(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([text])).cast(pa.string())


def main() -> None:
    """Prints what was measured, as lines or JSON; exit code 1 if a verdict on the valid history is not *holds*."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=10_000_000)
    parser.add_argument("--keys", type=int, default=None)
    parser.add_argument("--commits", type=int, default=None)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="numbers only, as one JSON object")
    options = parser.parse_args()
    found = bench(options.events, options.keys, options.commits, options.seed)
    if options.json:
        numbers = {name: getattr(found, name) for name in ("events", "elapsed_s", "peak_bytes")}
        print(
            json.dumps({**numbers, "held": sum(result.outcome.value == "holds" for result in found.results)})
        )
    else:
        _tell(found)
    sys.exit(
        any(result.outcome.value != "holds" for result in found.results) or len(found.results) < len(ALL)
    )


def _tell(found: Measured) -> None:
    print(
        f"{found.events:,} events, {found.keys:,} keys, {found.commits:,} commits: judged in "
        f"{found.elapsed_s:.1f} s, {found.events / found.elapsed_s:,.0f} events/s, "
        f"peak {found.peak_bytes / _MIB:,.0f} MiB"
    )
    for result in found.results:
        print(f"{result.code} {result.outcome.value:9} {result.checked:>12,} {result.unit} {result.reason}")


if __name__ == "__main__":
    main()
