"""The table of metrics, from the declarations that the exposition is written from."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.adapters.observers.declared import METRICS
from tests.reference.blocks import table

PAGE = "how-to/observe/metrics.md"


def lines() -> Iterator[str]:
    """A row for each metric."""
    yield from table(
        ("Metric", "Kind", "Labels beside `migration`", "Meaning"),
        (
            (f"`{one.full_name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels), one.meaning)
            for one in METRICS
        ),
    )
