"""The way from old tables to new ones: the user's mapping as PySpark functions, and everything that runs it.

Reading order: ``registry`` (what a user writes) -> ``load`` (from Python and SQL files) -> ``session`` (the
one Spark session) -> ``plan`` (what a function does, read from its analysed plan) -> ``pipeline`` (run it
over rows).
``columns`` is the column library for mapping authors and ``testing`` runs a mapping in their unit tests.
"""

from __future__ import annotations

from transforms.load import load_mapping
from transforms.registry import Mapping, TargetMapping

__all__ = ["Mapping", "TargetMapping", "load_mapping"]
