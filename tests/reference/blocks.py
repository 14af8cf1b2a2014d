"""Marked blocks of documents: what stands between the marks of one comes from the code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

_END = "<!-- end of generated part -->"
_LINK = re.compile(r"\]\((?!https?:)([^)#]+)(#[^)]*)?\)")


def mark(name: str) -> str:
    """The line that begins a block."""
    return f"<!-- generated from the code: {name}; `make reference` writes it -->"


def replaced(page: str, name: str, lines: Iterable[str]) -> str:
    """The page with other content in one of its blocks. Raises ``ValueError`` where it has no such block."""
    before, begin, rest = page.partition(mark(name))
    _, end, after = rest.partition(_END)
    if not begin or not end:
        raise ValueError(f"the page has no block {name!r}")
    return "\n".join([before + begin, "", *lines, "", end + after])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [_row(head), _row(["---"] * len(head)), *(_row(row) for row in rows)]


def relative(text: str, page: str) -> str:
    """Markdown whose links begin in the documents' folder, for a page below it: ``reference/settings.md``."""
    up = "../" * (len(PurePosixPath(page).parts) - 1)
    return _LINK.sub(lambda link: f"]({up}{link[1]}{link[2] or ''})", text)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in cells) + " |"
