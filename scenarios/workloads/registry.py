"""All workloads by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from migrator.errors import MigratorError
from scenarios.workloads.bank.writers import Bank
from scenarios.workloads.base import Workload
from scenarios.workloads.bulk.writers import Bulk
from scenarios.workloads.churn.writers import Churn
from scenarios.workloads.counters.writers import Counters
from scenarios.workloads.moves.writers import Moves
from scenarios.workloads.order_entry.writers import OrderEntry
from scenarios.workloads.pgbench.writers import Pgbench
from scenarios.workloads.registers.writers import Registers
from scenarios.workloads.scripted.writers import Scripted
from scenarios.workloads.swaps.writers import Swaps
from scenarios.workloads.sysbench.writers import Sysbench

_HOT_PERCENT = 60

WORKLOADS: Mapping[str, Callable[[], Workload]] = {
    "registers": Registers,
    "hot": lambda: Registers("hot", _HOT_PERCENT),
    "bank": Bank,
    "counters": Counters,
    "churn": Churn,
    "swaps": Swaps,
    "moves": Moves,
    "scripted": Scripted,
    "order_entry": OrderEntry,
    "bulk": Bulk,
    "pgbench": Pgbench,
    "sysbench": Sysbench,
}


def workload(name: str) -> Workload:
    """The workload of that name. Raises ``MigratorError`` for an unknown one, naming those there are."""
    if name not in WORKLOADS:
        raise MigratorError(
            f"there is no workload {name!r}",
            where="workload: name",
            remedy=f"name one of {', '.join(WORKLOADS)}",
        )
    return WORKLOADS[name]()
