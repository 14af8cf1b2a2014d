"""The gate of reads, as the project has it: kept results, the mapping in force, the files of queries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from migrator.adapters.event_log.files.read_results import ReadResults
from migrator.config.project import Settings
from migrator.core import reads_gate as rules
from migrator.model.cutover.reads import ReadShape, ReadsLimits
from migrator.wiring.target import peek
from verify.dual_read.queries import QueryPair
from verify.dual_read.result import PairResult


@dataclass(frozen=True, slots=True)
class ReadsGate:
    """The kept results, and what the gate makes of them.

    Attributes:
        shapes: each pair of queries, and why it keeps reads on the old side.
        limits: of the gate.
        why_not: why reads stay on the old side; empty where the gate is met.
    """

    shapes: tuple[tuple[ReadShape, tuple[str, ...]], ...]
    limits: ReadsLimits
    why_not: str


def reads_gate(settings: Settings) -> ReadsGate:
    """Judges what was kept. Raises ``ConnectionFailed`` where the target can't be asked what is in force."""
    shapes = ReadResults(settings.state).read()
    limits = settings.cutover.reads if settings.cutover is not None else ReadsLimits()
    mapping = _in_force(settings)
    contents = {shape.file: _content(Path(shape.file)) for shape in shapes}
    judged = tuple((shape, rules.problems(shape, limits, mapping, contents)) for shape in shapes)
    return ReadsGate(judged, limits, rules.gate(shapes, limits, mapping, contents))


def keep_reads(
    settings: Settings, file: Path, pairs: Sequence[QueryPair], found: Sequence[PairResult], at_s: float
) -> None:
    """Keeps the results of a dual read of a file that began at ``at_s``, seconds since 1970."""
    mapping, content = _in_force(settings), _content(file)
    results = {one.name: one for one in found}
    run = [
        _shape(str(file.resolve()), content, pair, results.get(pair.name), mapping, at_s) for pair in pairs
    ]
    ReadResults(settings.state).change(
        lambda kept: rules.merged([one for one in kept if Path(one.file).exists()], run)
    )


def _shape(
    file: str, content: str, pair: QueryPair, found: PairResult | None, mapping: str, at_s: float
) -> ReadShape:
    queries = _digest(repr((pair.old, pair.new, pair.rules)).encode())
    if found is None or not found.compared:
        return ReadShape(file, content, pair.name, queries)
    return ReadShape(
        file,
        content,
        pair.name,
        queries,
        mapping,
        at_s,
        settled=found.match + found.lag + found.accepted,
        lag=found.lag,
        wrong=found.bug + found.semantic,
        unknown=found.unknown,
        old_p50_ms=found.old_latency.p50_ms,
        old_p99_ms=found.old_latency.p99_ms,
        new_p50_ms=found.new_latency.p50_ms,
        new_p99_ms=found.new_latency.p99_ms,
    )


def _in_force(settings: Settings) -> str:
    """Returns a fingerprint of the mapping by which the target's rows were last written."""
    ledger = peek(settings)
    checkpoint = None if ledger is None else ledger.checkpoint
    mapped = (checkpoint.mapped if checkpoint is not None else None) or ()
    parts = sorted((one.target, one.schema, one.shape, one.columns, one.content) for one in mapped)
    return _digest(repr(parts).encode())


def _content(file: Path) -> str:
    try:
        return _digest(file.read_bytes())
    except OSError:
        return ""


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
