"""A whole run whose first staging task dies right after it has staged its rows: ``python -m ... CONFIG FLAG``.

A process of its own, because Spark must retry tasks here, which a local master does only when told to.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from migrator.config import project as configuration
from migrator.model.target import TargetTable
from migrator.ports.target import Stage, Stager
from migrator.run.caught_up import caught_up
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.wiring import parts as wiring

RETRYING = "local[2,4]"


@dataclass(frozen=True)
class DiesOnce:
    """Stages, and kills its own process the first time: the receipt never reaches the driver."""

    stage: Stage
    flag: str

    def __call__(self, batches: Iterator[Any]) -> str | None:
        receipt = self.stage(batches)
        if receipt is not None:
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                return receipt
            os.kill(os.getpid(), signal.SIGKILL)
        return receipt


@dataclass(frozen=True)
class KillingStager:
    """A stager whose first task dies."""

    stager: Stager
    flag: str

    def staging(self, table: TargetTable, segment: int) -> Stage | None:
        stage = self.stager.staging(table, segment)
        return None if stage is None else DiesOnce(stage, self.flag)


def main() -> None:
    """Runs until caught up."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
    parts = wiring.parts(configuration.load(Path(sys.argv[1])), master=RETRYING)
    assert parts.stager is not None
    killing = replace(parts, stager=KillingStager(parts.stager, sys.argv[2]))
    Migration(killing).run(Stopping(), caught_up(parts.catalog.position))


if __name__ == "__main__":
    main()
