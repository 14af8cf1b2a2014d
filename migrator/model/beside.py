"""What a run makes for itself in the target, beside ledger and tables: its login needs rights on it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beside:
    """What a mapping needs beside the tables that it fills.

    Attributes:
        mirror: copies of source tables, for joined mappings.
        key_maps: which new key an old one has, for surrogate keys.
    """

    mirror: bool = False
    key_maps: bool = False


NOTHING_BESIDE = Beside()
