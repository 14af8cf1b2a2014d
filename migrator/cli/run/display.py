"""Live progress of a run: redrawn in place on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Self

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from migrator.model.observed.observation import Lag
from migrator.model.progress import TableDump
from migrator.run.failure import Stopping
from migrator.run.progress import Progress, Snapshot

_REDRAW_S = 0.5
_LINE_EVERY_S = 5.0
_RATE_WINDOW_S = 5.0


class Display:
    """Shows a run's progress from a thread of its own until the block ends."""

    def __init__(self, progress: Progress, *, plain: bool | None = None):
        self._progress = progress
        self._console = Console()
        self._plain = (not self._console.is_terminal) if plain is None else plain
        self._stopping = Stopping()
        self._rates = _Rates()

    def __enter__(self) -> Self:
        self._thread = self._stopping.thread("display", self._lines if self._plain else self._redraw)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.request()
        self._thread.join(timeout=5)

    def _redraw(self) -> None:
        with Live(console=self._console, auto_refresh=False, transient=False) as live:
            while True:
                stop = self._stopping.wait(_REDRAW_S)
                live.update(self._drawing(), refresh=True)
                if stop:
                    return

    def _lines(self) -> None:
        last = ""
        while True:
            stop = self._stopping.wait(_LINE_EVERY_S)
            line = self._line()
            if line != last:
                click.echo(line)
            last = line
            if stop:
                return

    # -- what is shown ------------------------------------------------------------------------------------------

    def _drawing(self) -> Group:
        now = self._progress.snapshot()
        self._rates.note(now)
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("table", "dump", "rows", "dropped", "ETA"):
            table.add_column(column, justify="left" if column in ("table", "dump") else "right")
        for dump in now.dumps:
            share = _share(dump)
            state = "done" if dump.done else f"{_bar(share)} {share:4.0%}"
            eta = "" if dump.done else _duration(self._rates.eta_s(dump))
            table.add_row(dump.table.name, state, f"{dump.rows:,}", f"{dump.dropped_rows:,}", eta)
        for dump in now.requests:
            name = f"{dump.table.name} ({dump.request.partition('.')[0]})"
            state = "read" if dump.done else f"{dump.chunks:,} chunks"
            table.add_row(name, state, f"{dump.rows:,}", f"{dump.dropped_rows:,}", "")
        notes = [*([now.note] if now.note else []), *(f"warning: {warning}" for warning in now.warnings)]
        return Group(table, Text(self._stream(now)), *(Text(note, style="yellow") for note in notes))

    def _line(self) -> str:
        now = self._progress.snapshot()
        self._rates.note(now)
        parts = []
        open_dumps = [dump for dump in now.dumps if not dump.done]
        if open_dumps:
            dump = next((dump for dump in open_dumps if dump.chunks), open_dumps[0])
            eta = _duration(self._rates.eta_s(dump))
            parts.append(
                f"dump {dump.table.name} {_share(dump):.0%} ({dump.rows:,} rows{', ETA ' + eta if eta else ''})"
            )
            parts.append(f"{len(now.dumps) - len(open_dumps)}/{len(now.dumps)} tables done")
        elif now.dumps:
            total = sum(dump.rows for dump in now.dumps)
            parts.append(f"dump done ({total:,} rows, {len(now.dumps)} tables)")
        if now.requests:
            read = sum(dump.rows + dump.dropped_rows for dump in now.requests)
            parts.append(
                f"{len({dump.request for dump in now.requests})} dump request(s), {read:,} rows read"
            )
        parts.append(self._stream(now))
        warnings = [f"warning: {warning}" for warning in now.warnings]
        return " | ".join([*parts, *([now.note] if now.note else []), *warnings])

    def _stream(self, now: Snapshot) -> str:
        lag = lag_words(self._progress.lag())
        position = now.applied.token if now.applied else "-"
        return (
            f"applied {now.applied_changes:,} changes, {now.applied_chunk_rows:,} dump rows"
            f" | {self._rates.changes_per_s():,.0f} changes/s | lag {lag} | at {_short(position)}"
        )


class _Rates:
    """Rates over the last seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, Snapshot]] = deque()

    def note(self, now: Snapshot) -> None:
        moment = time.monotonic()
        self._seen.append((moment, now))
        while len(self._seen) > 2 and moment - self._seen[0][0] > _RATE_WINDOW_S:
            self._seen.popleft()

    def changes_per_s(self) -> float:
        return self._rate(lambda snapshot: snapshot.applied_changes)

    def eta_s(self, dump: TableDump) -> float | None:
        def rows(snapshot: Snapshot) -> int:
            return sum(other.rows for other in snapshot.dumps if other.table == dump.table)

        rate = self._rate(rows)
        left = max(0, dump.estimated_rows - dump.rows - dump.dropped_rows)
        return left / rate if rate and dump.estimated_rows else None

    def _rate(self, value) -> float:  # type: ignore[no-untyped-def]
        if len(self._seen) < 2:
            return 0.0
        (start, first), (end, last) = self._seen[0], self._seen[-1]
        return (value(last) - value(first)) / (end - start) if end > start else 0.0


def lag_words(lag: Lag) -> str:
    """The lag in a few words; *unknown* where nobody can know it."""
    if lag.age_s is None:
        at_most = f", at most {_duration(lag.at_most_s)}" if lag.at_most_s is not None else ""
        return f"unknown ({lag.unknown}{at_most})"
    return f"{lag.age_s:,.1f} s" if lag.age_s < 60 else _duration(lag.age_s)


def _share(dump: TableDump) -> float:
    if dump.done:
        return 1.0
    seen = dump.rows + dump.dropped_rows
    return min(0.99, seen / dump.estimated_rows) if dump.estimated_rows else 0.0


def _bar(share: float, width: int = 20) -> str:
    full = int(share * width)
    return "█" * full + "░" * (width - full)


def _duration(seconds: float | None) -> str:
    if seconds is None:
        return ""
    minutes, rest = divmod(int(seconds + 0.5), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes:02d}m"
    return f"{minutes}m{rest:02d}s" if minutes else f"{rest}s"


def _short(token: str) -> str:
    return token if len(token) <= 40 else token[:37] + "..."
