"""Drawings of a witness: one track for each place, time going down; as text for terminals and as SVG for pages."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape

from verify.history.result import Moment, WitnessCase

TRACKS = ("client", "log", "chunk", "target", "observer", "fault")
"""The tracks of a timeline from left to right; a drawing has those that occur."""
_ORDINAL = {
    "client": "number",
    "log": "position",
    "chunk": "delivery",
    "target": "commit",
    "observer": "read",
    "fault": "fault",
}
_TEXT_WIDTH = 110
_TRACK_PX, _ROW_PX, _TOP_PX, _CHAR_PX = 74, 26, 34, 7.3
_STYLE = """
.w { color-scheme: light dark; font: 12px ui-monospace, monospace; fill: CanvasText; }
.w line { stroke: CanvasText; stroke-opacity: .25; } .w circle { fill: CanvasText; fill-opacity: .55; }
.w .guilty { fill: #c62828; fill-opacity: 1; font-weight: 600; }
@media (prefers-color-scheme: dark) { .w .guilty { fill: #ff8a80; } }
"""


def text(case: WitnessCase) -> str:
    """The whole witness: headline, why, and the drawing; guilty events are marked with ``X``."""
    lines = [case.headline]
    for step in case.because:
        lines += textwrap.wrap(step, _TEXT_WIDTH - 4, initial_indent="  - ", subsequent_indent="    ")
    if case.timeline:
        tracks = _tracks(case.timeline)
        width = max(len(track) for track in tracks) + 2
        lines += ["", "  " + "".join(track.ljust(width) for track in tracks).rstrip()]
        for moment in case.timeline:
            sign = "X" if moment.guilty else "o"
            cells = (sign if track == moment.track else "|" for track in tracks)
            lines.append("  " + "".join(cell.ljust(width) for cell in cells) + _label(moment))
    return "\n".join(lines) + "\n"


def svg(case: WitnessCase) -> str:
    """The drawing alone, as one self-contained ``<svg>`` that follows the page's light or dark colours."""
    tracks = _tracks(case.timeline)
    labels = [_label(moment) for moment in case.timeline]
    left = len(tracks) * _TRACK_PX
    width = left + 20 + int(max((len(label) for label in labels), default=0) * _CHAR_PX)
    height = _TOP_PX + _ROW_PX * len(labels) + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="w" role="img" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">',
        f"<title>{escape(case.headline)}</title><style>{_STYLE}</style>",
    ]
    for index, track in enumerate(tracks):
        x = _middle(index)
        parts.append(f'<text x="{x}" y="16" text-anchor="middle">{track}</text>')
        parts.append(f'<line x1="{x}" y1="24" x2="{x}" y2="{height - 4}"/>')
    for row, (moment, label) in enumerate(zip(case.timeline, labels, strict=True)):
        x, y = _middle(tracks.index(moment.track)), _TOP_PX + _ROW_PX * row + _ROW_PX // 2
        guilty = ' class="guilty"' if moment.guilty else ""
        parts.append(f'<circle{guilty} cx="{x}" cy="{y}" r="{6 if moment.guilty else 4}"/>')
        parts.append(f'<text{guilty} x="{left + 8}" y="{y + 4}">{escape(label)}</text>')
    return "\n".join([*parts, "</svg>"])


def _tracks(timeline: Sequence[Moment]) -> list[str]:
    """Tracks that occur; an unknown one stands last."""
    used = {moment.track for moment in timeline}
    return [track for track in TRACKS if track in used] + sorted(used.difference(TRACKS))


def _label(moment: Moment) -> str:
    ordinal = _ORDINAL.get(moment.track, moment.track)
    if moment.track == "log" and moment.text.startswith("delivered"):
        ordinal = "delivery"
    place = f"{ordinal} {moment.place}: " if moment.place or moment.track != "target" else ""
    return place + moment.text


def _middle(index: int) -> int:
    return index * _TRACK_PX + _TRACK_PX // 2
