"""The account of a rehearsal: what each step took and whether it held, and what the real run will need."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from migrator.errors import MigratorError

FORMAT = 1
HOLDS, FAILED, UNKNOWN = "holds", "failed", "unknown"
CODES = {HOLDS: 0, FAILED: 1, UNKNOWN: 3}


@dataclass
class Step:
    """One step: how it ended, seconds, and what is to be said of it."""

    name: str
    outcome: str = HOLDS
    took_s: float = 0.0
    lines: list[str] = field(default_factory=list)

    def failed(self, *lines: str) -> None:
        """Notes that the step didn't hold, and the lines that say why."""
        self.outcome = FAILED
        self.lines += lines

    def unknown(self, *lines: str) -> None:
        """Notes that too little was checked to say that it holds, unless something failed."""
        self.outcome = FAILED if self.outcome == FAILED else UNKNOWN
        self.lines += lines


@dataclass
class Account:
    """All steps in order; ``needs``: by heading what the real run will need; ``named``: what wasn't rehearsed."""

    steps: list[Step] = field(default_factory=list)
    needs: dict[str, list[str]] = field(default_factory=dict)
    named: list[str] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """A step that is under way. An error that ends it is kept, and goes on."""
        one = Step(name)
        self.steps.append(one)
        began = time.monotonic()
        try:
            yield one
        except MigratorError as error:
            one.failed(*error.lines())
            raise
        finally:
            one.took_s = time.monotonic() - began

    def outcome(self) -> str:
        """The worst of all steps."""
        found = {one.outcome for one in self.steps}
        return FAILED if FAILED in found or not found else UNKNOWN if UNKNOWN in found else HOLDS

    def document(self) -> dict[str, Any]:
        """The document of `migrator rehearse --json` (docs/schemas/rehearsal.schema.json)."""
        return {"format": FORMAT, "outcome": self.outcome(), **asdict(self)}
