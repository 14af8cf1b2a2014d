"""An act of a fence in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from migrator.errors import CutoverError


class Acting(threading.Thread):
    """Runs the act at once, and keeps its error."""

    def __init__(self, act: Callable[[], Any]):
        super().__init__(daemon=True)
        self._act = act
        self.error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._act()
        except CutoverError as error:
            self.error = error
