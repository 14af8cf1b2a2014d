"""A run's progress as plain lines, for pipes, files and services."""

from __future__ import annotations

from collections.abc import Iterator

from migrator.cli.run.rates import Rates
from migrator.cli.run.words import duration, filling_words, phase_words, share, stream_words
from migrator.model.observed.observation import Lag
from migrator.run.progress import Snapshot


class Lines:
    """The lines, without their times. One is due when something changed; a warning is a line of its own, once when
    it comes and once when it is over."""

    def __init__(self, rates: Rates):
        self._rates = rates
        self._last = ""
        self._warnings: tuple[str, ...] = ()

    def due(self, now: Snapshot, lag: Lag) -> Iterator[str]:
        """Yields what is to be printed now."""
        self._rates.note(now)
        before, self._warnings = self._warnings, now.warnings
        yield from (f"warning: {text}" for text in now.warnings if text not in before)
        yield from (f"over: {text}" for text in before if text not in now.warnings)
        line = self._line(now, lag)
        if line != self._last:
            yield line
        self._last = line

    def _line(self, now: Snapshot, lag: Lag) -> str:
        parts = [phase_words(now), *self._dumps(now), *filling_words(now)]
        if now.requests:
            read = sum(dump.rows + dump.dropped_rows for dump in now.requests)
            requests = len({dump.request for dump in now.requests})
            parts.append(f"{requests} dump request(s), {read:,} rows read")
        if not now.doing:
            parts.append(stream_words(now, self._rates.changes_per_s(), lag))
        return " | ".join([*parts, *([now.note] if now.note else [])])

    def _dumps(self, now: Snapshot) -> Iterator[str]:
        waiting = [dump for dump in now.dumps if not dump.done]
        if waiting:
            dump = next((dump for dump in waiting if dump.chunks), waiting[0])
            eta = duration(self._rates.eta_s(dump))
            yield (
                f"dump {dump.table.name} {share(dump):.0%} ({dump.rows:,} rows, {self._rates.rows_per_s():,.0f}"
                f" rows/s{', ETA ' + eta if eta else ''})"
            )
            yield f"{len(now.dumps) - len(waiting)}/{len(now.dumps)} tables done"
        elif now.dumps:
            total = sum(dump.rows for dump in now.dumps)
            yield f"dump done ({total:,} rows, {len(now.dumps)} tables)"
