"""The tables that a run makes in the target beside ledger and target tables: its login needs rights on them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Beside:
    """Kinds of tables that a mapping needs beside those that it fills.

    Attributes:
        mirror: copies of source tables, for joined mappings.
        key_maps: which new key an old one has, for surrogate keys.
    """

    mirror: bool = False
    key_maps: bool = False


NOTHING_BESIDE = Beside()
