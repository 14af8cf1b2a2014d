"""A run's progress as it is drawn on a terminal: what matters most is always on it, however many tables there are."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from migrator.cli.run.rates import Rates
from migrator.cli.run.words import duration, filling_words, phase_words, share, stream_words
from migrator.model.observed.observation import Lag
from migrator.model.observed.printable import printable
from migrator.model.progress import TableDump
from migrator.run.progress import Snapshot

_LEAST_ROWS = 3
_MOST_WARNINGS = 4


def drawing(now: Snapshot, rates: Rates, lag: Lag, console: Console) -> Group:
    """Draws the tables that are being read, then the stream, the note and the warnings; those are never cut off.

    Tables for which there is no line are counted. ``console``: the terminal, for its height and width.
    """
    below = [
        _line(f"{phase_words(now)} | {stream_words(now, rates.changes_per_s(), lag)}"),
        *map(_line, filling_words(now)),
        *(_line(note, style="yellow") for note in _notes(now)),
    ]
    taken = sum(len(text.wrap(console, console.width)) for text in below)
    room = max(_LEAST_ROWS, console.height - taken - 3)  # its heading, a line for the rest, and the cursor's
    return Group(_tables(now, rates, room), *below)


def _line(words: str, style: str = "") -> Text:
    """A line of the drawing: what is named in it is neither markup nor an order to the terminal."""
    return Text(printable(words), style=style)


def _notes(now: Snapshot) -> list[str]:
    shown = [f"warning: {text}" for text in now.warnings[:_MOST_WARNINGS]]
    more = len(now.warnings) - len(shown)
    rest = [f"and {more} warning(s) more: `migrator status`"] if more else []
    return [*([now.note] if now.note else []), *shown, *rest]


def _tables(now: Snapshot, rates: Rates, room: int) -> Group:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("table", "dump", "rows", "dropped", "ETA"):
        left = column in ("table", "dump")
        table.add_column(column, justify="left" if left else "right", no_wrap=True, overflow="ellipsis")
    dumps = [*now.requests, *sorted(now.dumps, key=_order)]
    shown = dumps if len(dumps) <= room else dumps[: room - 1]
    for dump in shown:
        if dump.request:
            state = "read" if dump.done else f"{dump.chunks:,} chunks"
            name, eta = f"{dump.table.name} ({dump.request.partition('.')[0]})", ""
        else:
            part = share(dump)
            state = "done" if dump.done else f"{_bar(part)} {part:4.0%}"
            name, eta = dump.table.name, "" if dump.done else duration(rates.eta_s(dump))
        table.add_row(_line(name), state, f"{dump.rows:,}", f"{dump.dropped_rows:,}", eta)
    return Group(table, *_rest(dumps[len(shown) :]))


def _order(dump: TableDump) -> int:
    """Tables that are being read come first, then those that wait, then those that are done."""
    return 2 if dump.done else 0 if dump.chunks else 1


def _rest(left: Sequence[TableDump]) -> list[Text]:
    if not left:
        return []
    done = sum(dump.done for dump in left)
    rows = sum(dump.rows for dump in left)
    return [Text(f"and {len(left):,} tables more: {done:,} done, {rows:,} rows", style="dim", no_wrap=True)]


def _bar(part: float, width: int = 20) -> str:
    full = int(part * width)
    return "█" * full + "░" * (width - full)
