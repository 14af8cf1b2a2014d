"""The mapping as it is applied now: of two functions of a target the ledger says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import SparkSession

from migrator.config.project import Settings
from migrator.model.remaps.remap import in_force
from migrator.wiring.target import peek
from transforms import nexts
from transforms.load import load_mapping
from transforms.registry import Mapping

Load = Callable[[Path, Callable[[], SparkSession]], Mapping]


def load_applied(
    settings: Settings, path: Path, spark: Callable[[], SparkSession], load: Load = load_mapping
) -> Mapping:
    """Loads the mapping for those who judge or mend rows that are there. The target is asked only where a function is
    declared as next.

    Raises what ``load`` raises, ``ConnectionFailed``.
    """
    loaded = load(path, spark)
    if not loaded.nexts:
        return loaded
    ledger = peek(settings)
    checkpoint = None if ledger is None else ledger.checkpoint
    return nexts.in_force(loaded, in_force(() if checkpoint is None else checkpoint.remaps))
