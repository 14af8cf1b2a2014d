"""Live progress of a run: redrawn in place on a terminal, plain lines elsewhere."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Self

import click
from rich.console import Console
from rich.live import Live

from migrator.cli.group.streams import Unwritten, drawn_on
from migrator.cli.phases import stamped
from migrator.cli.run.drawing import drawing
from migrator.cli.run.lines import Lines
from migrator.cli.run.rates import Rates
from migrator.model.observed.printable import printable
from migrator.run.failure import Stopping
from migrator.run.progress import Progress

_REDRAW_S = 0.5
_LOOK_S = 0.5
_LINE_EVERY_S = 5.0


class Display:
    """Shows a run's progress from a thread of its own until the block ends."""

    def __init__(self, progress: Progress, *, plain: bool | None = None):
        self._progress = progress
        self._console = Console(file=drawn_on())
        self._plain = (not self._console.is_terminal) if plain is None else plain
        self._stopping = Stopping()

    def __enter__(self) -> Self:
        self._thread = self._stopping.thread("display", self._lines if self._plain else self._redraw)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.request()
        self._thread.join(timeout=5)

    def _redraw(self) -> None:
        rates = Rates()
        with Live(console=self._console, auto_refresh=False, transient=False) as live:
            while True:
                stop = self._stopping.wait(_REDRAW_S)
                now = self._progress.snapshot()
                rates.note(now)
                live.update(drawing(now, rates, self._progress.lag(), self._console), refresh=True)
                if stop:
                    return

    def _lines(self) -> None:
        """Prints lines every few seconds; at once while it starts, step by step."""
        lines, waited, doing = Lines(Rates()), _LINE_EVERY_S, ""
        while True:
            stop = self._stopping.requested()
            now = self._progress.snapshot()  # the last one is of after the stop
            if stop or waited >= _LINE_EVERY_S or now.doing != doing:
                with suppress(Unwritten):  # the run goes on, and so do its lines once there is room
                    for line in lines.due(now, self._progress.lag()):
                        click.echo(stamped(printable(line)))
                waited, doing = 0.0, now.doing
            if stop:
                return
            self._stopping.wait(_LOOK_S)
            waited += _LOOK_S
