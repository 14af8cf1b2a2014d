"""The gate of reads: what a dual read must have shown before reads go to the new side. Pure: no I/O, no clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from migrator.model.cutover.reads import ReadShape, ReadsLimits

_SLOW_MS_MIN = 1.0
"""Below it a p99 is noise, whatever the other side's is."""


def merged(kept: Sequence[ReadShape], run: Sequence[ReadShape]) -> tuple[ReadShape, ...]:
    """Returns what is kept behind a run of one file.

    Args:
        kept: what was kept before, of any files.
        run: every pair of the file, also those that weren't compared in this run: they keep what was found before,
            if their queries are the same. A pair that the file has no more is dropped.
    """
    file = {shape.file for shape in run}
    before = {shape.name: shape for shape in kept if shape.file in file}
    others = [shape for shape in kept if shape.file not in file]
    return (*others, *(_known(before.get(shape.name), shape) for shape in run))


def _known(before: ReadShape | None, shape: ReadShape) -> ReadShape:
    if shape.at_s or before is None or before.queries != shape.queries:
        return shape
    return replace(before, content=shape.content)


def problems(
    shape: ReadShape, limits: ReadsLimits, mapping: str, contents: Mapping[str, str]
) -> tuple[str, ...]:
    """Returns why a pair of queries keeps reads on the old side; empty where it doesn't.

    Args:
        shape: its last result.
        limits: of the gate.
        mapping: fingerprint of the mapping in force.
        contents: by file, its SHA-256 now; a file that is gone has none.
    """
    found = []
    if shape.content != contents.get(shape.file):
        found.append("its file has changed since, or is gone")
    if shape.at_s and shape.mapping != mapping:
        found.append("the mapping has changed since")
    if shape.wrong:
        found.append(f"{shape.wrong:,} wrong")
    if shape.unknown:
        found.append(f"{shape.unknown:,} unknown: each may be wrong")
    if shape.settled < limits.comparisons:
        found.append(f"{shape.settled:,} of {limits.comparisons:,} comparisons")
    if shape.new_p99_ms > max(limits.slower * shape.old_p99_ms, _SLOW_MS_MIN):
        found.append(
            f"p99 {shape.new_p99_ms:.1f} ms against {shape.old_p99_ms:.1f} ms: more than {limits.slower:g} times"
        )
    return tuple(found)


def gate(shapes: Sequence[ReadShape], limits: ReadsLimits, mapping: str, contents: Mapping[str, str]) -> str:
    """Returns why reads stay on the old side; empty where the gate is met. Arguments as ``problems`` has them."""
    if not shapes:
        return "no dual read was kept: `migrator dual-read run` has to compare the application's queries"
    found = [
        f"{shape.name}: {', '.join(why)}"
        for shape in shapes
        if (why := problems(shape, limits, mapping, contents))
    ]
    return "; ".join(found)
