"""The measured tables of a page as one picture: a bar for each figure that is compared within its run. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

_COMPARED = re.compile(r"(?:([\d.]+)x of the plain copy|ours: ([\d.]+)x)$")
_BASES = {"of the plain copy": "a plain copy of the same rows = 1", "ours": "the other tool = 1"}
_LABEL_X, _BAR_X, _BAR_WIDTH, _WIDTH = 12, 520, 300, 900
_ROW, _HEAD = 22, 30
_STYLE = """text{font:13px system-ui,sans-serif;fill:#1f2328}.bar{fill:#2f6feb}
.base{stroke:#8c959f;stroke-dasharray:3 3}
.head{font-weight:600}@media(prefers-color-scheme:dark){text{fill:#e6edf3}.bar{fill:#58a6ff}.base{stroke:#6e7681}}"""


@dataclass(frozen=True)
class Figure:
    """One figure of a page: ``ratio`` times what it is compared with."""

    engine: str
    what: str
    measured: str
    ratio: float


def figures(page: str) -> Iterator[Figure]:
    """The figures of a page's tables that are compared with a plain copy, or with another tool, in their order."""
    engine, ours = "", ("", "")
    for line in page.splitlines():
        if line.startswith("### "):
            engine = line.removeprefix("### ")
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 3:
            continue
        what, measured, compared = cells
        found = _COMPARED.match(compared)
        if found is None:
            ours = what, measured
        elif found[1]:
            yield Figure(engine, what, measured, float(found[1]))
        else:  # the row above has our figure, this one the other tool's
            other = what.replace("&nbsp;", "").strip()
            yield Figure(engine, f"{ours[0]}, beside {other}", ours[1], float(found[2]))


def picture(page: str) -> str:
    """The SVG of a page's compared figures; bars of one picture have one scale."""
    rows = list(figures(page))
    most = max((row.ratio for row in rows), default=1.0)
    unit = _BAR_WIDTH / max(most, 1.0)
    base = _BASES["ours" if "| ours: " in page else "of the plain copy"]
    parts, y, engine = [f'<text x="{_LABEL_X}" y="20" class="head">{base}</text>'], _HEAD, ""
    for row in rows:
        if row.engine != engine:
            engine = row.engine
            y += _HEAD
            parts.append(f'<text x="{_LABEL_X}" y="{y - 8}" class="head">{escape(engine)}</text>')
        width = max(row.ratio * unit, 1.0)
        parts += [
            f'<text x="{_LABEL_X}" y="{y + 14}">{escape(row.what)}</text>',
            f'<rect class="bar" x="{_BAR_X}" y="{y + 3}" width="{width:.1f}" height="14" rx="2">',
            f"<title>{escape(row.measured)}</title></rect>",
            f'<text x="{_BAR_X + width + 6:.1f}" y="{y + 14}">{row.ratio:g}x</text>',
        ]
        y += _ROW
    x = _BAR_X + unit
    parts.append(f'<line class="base" x1="{x:.1f}" y1="{_HEAD}" x2="{x:.1f}" y2="{y}"/>')
    size = f'viewBox="0 0 {_WIDTH} {y + 10}" width="{_WIDTH}" height="{y + 10}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{base}">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>", ""])
