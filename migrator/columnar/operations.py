"""The operations in a table of row images, counted."""

from __future__ import annotations

import pyarrow as pa

from migrator.columnar.types import INDEX, POSITION, SIGN


def operations(images: pa.Table) -> dict[str, int]:
    """Counts inserts, updates, deletes and truncates. Images of one change stand side by side.

    An update whose image before isn't there counts as an insert.
    """
    places, indexes, signs = (images[name].to_numpy() for name in (POSITION, INDEX, SIGN))
    pairs = int(((places[1:] == places[:-1]) & (indexes[1:] == indexes[:-1])).sum()) if len(places) else 0
    after, before = int((signs > 0).sum()), int((signs < 0).sum())
    emptied = len(signs) - after - before
    counted = {"insert": after - pairs, "update": pairs, "delete": before - pairs, "truncate": emptied}
    return {kind: number for kind, number in counted.items() if number > 0}
