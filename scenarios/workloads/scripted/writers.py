"""The old table ``register`` and its writers; only the mapping is another."""

from __future__ import annotations

from pathlib import Path

from scenarios.workloads.registers.writers import Registers


class Scripted(Registers):
    """Values that only rise, mapped by a function in Python."""

    project = Path(__file__).parent

    def __init__(self) -> None:
        super().__init__("scripted")
