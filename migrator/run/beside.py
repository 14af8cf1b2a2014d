"""The tables that a mapping needs in the target beside those that it fills."""

from __future__ import annotations

from migrator.model.grants import Beside
from transforms import Mapping


def beside(mapping: Mapping) -> Beside:
    """A mirror for joined targets, key maps for surrogate keys."""
    return Beside(
        mirror=any(target.grain is not None for target in mapping.targets),
        key_maps=any(target.surrogates for target in mapping.targets),
    )
