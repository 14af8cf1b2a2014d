"""The target's sequences, made ready for the application: beyond what the rows hold and what the source gave
out."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.model.sequence import Advance, advance
from migrator.ports.sequences import SourceNumbers, TargetNumbers
from migrator.run.migration import plans
from migrator.run.parts import Parts
from transforms.analysis.lineage import unchanged

Copies = Mapping[tuple[str, str], frozenset[tuple[str, str]]]
"""(source table, column) of which a target (table, column) is a copy."""


def copied_columns(parts: Parts) -> Copies:
    """Returns the target columns that are unchanged source columns, with these. Starts Spark; runs no job. Raises
    what ``plans`` raises."""
    _, _, found = plans(parts)
    return {
        (name, column): origins
        for name, plan in found.items()
        for column, origins in unchanged(parts.spark(), plan).items()
        if origins
    }


def advances(
    parts: Parts,
    target: TargetNumbers,
    source: SourceNumbers | None,
    margin: int = 0,
    known: Copies | None = None,
) -> list[Advance]:
    """Returns the step to take with every sequence that fills a column of a target table.

    Args:
        parts: of the migration.
        target: its sequences.
        source: the source's; None: only what the target holds counts.
        margin: further values to leave out.
        known: what ``copied_columns`` found; it is asked where this is None.

    Raises what reading either side raises.
    """
    found = target.find([one.name for one in parts.mapping.targets])
    if source is None or not found:
        return [advance(sequence, (), margin) for sequence in found]
    copies = copied_columns(parts) if known is None else known
    wanted = {
        origin for sequence in found for column in sequence.columns for origin in copies.get(column, ())
    }
    handed_out = source(sorted(wanted))
    return [
        advance(
            sequence,
            tuple(
                handed_out[origin]
                for column in sequence.columns
                for origin in sorted(copies.get(column, ()))
                if origin in handed_out
            ),
            margin,
        )
        for sequence in found
    ]
