"""The screen of `migrator status --watch`: as many lines as it holds, and how many it doesn't."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence

import click
from rich.cells import cell_len


def show(text: Sequence[str]) -> None:
    """Shows lines in place of what was there; elsewhere than on a terminal, all of them below it."""
    if sys.stdout.isatty():
        click.clear()
        text = fitted(text, *shutil.get_terminal_size())
    click.echo("\n".join(text))


def fitted(text: Sequence[str], columns: int, rows: int) -> list[str]:
    """The first lines, as many as fit together with a last one that counts the others.

    One row is left for the cursor.
    """
    heights = [max(1, -(-cell_len(line) // columns)) for line in text]
    room = max(2, rows - 1)
    if sum(heights) <= room:
        return list(text)
    shown = 0
    while shown < len(text) and sum(heights[: shown + 1]) < room:
        shown += 1
    return [*text[:shown], f"... and {len(text) - shown:,} lines more"[:columns]]
