"""One run as a drawing: what clients wrote and the target showed per second, its lag, and the faults across both.

Inline SVG without scripts. Colours come from the page's CSS variables, so it follows light and dark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from scenarios.report.facts import FaultFact, Series

_WIDTH, _LEFT, _RIGHT = 960, 62, 14
_TOP = 30  # the faults' numbers stand above
_RATE, _LAG, _GAP = 120, 84, 34
_HEIGHT = _TOP + _RATE + _GAP + _LAG + 26
_LEAST_BAND = 2.0

STYLE = """
.chart { width: 100%; min-width: 46rem; height: auto; display: block; }
.chart text { font: 11px system-ui, sans-serif; fill: currentColor; opacity: .75; }
.chart text.fault { opacity: 1; font-weight: 600; fill: var(--bad); }
.chart .grid { stroke: var(--line); stroke-width: 1; } .chart .axis { stroke: currentColor; opacity: .4; }
.chart .written { fill: var(--written); fill-opacity: .3; stroke: var(--written); stroke-width: 1; }
.chart .applied { fill: none; stroke: var(--applied); stroke-width: 1.8; }
.chart .lag { fill: none; stroke: var(--lag); stroke-width: 1.5; } .chart .dot { fill: var(--lag); }
.chart .band { fill: var(--bad); fill-opacity: .13; } .chart .onset { stroke: var(--bad); stroke-dasharray: 3 2; }
.key span { display: inline-block; margin-right: 1em; }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px; margin-right: .35em; }
"""

_KEY = (
    ("written", "row changes/s that clients committed"),
    ("applied", "row changes/s shown by the target"),
    ("lag", "lag: age of the oldest source commit in a target commit"),
    ("bad", "fault, from fired to healed"),
)
KEY = (
    '<p class="key">'
    + " ".join(f'<span><i style="background:var(--{name})"></i>{text}</span>' for name, text in _KEY)
    + "</p>"
)


def chart(series: Series, faults: Sequence[FaultFact], title: str) -> str:
    """The drawing; ``faults`` that did not fire are not in it."""
    end_s = max(series.end_s, 1e-3, *(fault.healed_s or fault.fired_s or 0.0 for fault in faults))
    scale = (_WIDTH - _LEFT - _RIGHT) / end_s
    lag_top = _TOP + _RATE + _GAP
    most_rate = _nice(max([*series.written, *series.applied, 1.0]))
    most_lag = _nice(max([*(lag for _, lag in series.lag), 1.0]))
    parts = [
        *_panel(_TOP, _RATE, most_rate, _number),
        *_panel(lag_top, _LAG, most_lag, _milliseconds),
        *_seconds_axis(end_s, scale, lag_top + _LAG),
        *_bands(faults, scale, lag_top + _LAG),
        f'<text x="{_LEFT}" y="{_TOP - 8}">row changes/s</text>',
        f'<text x="{_LEFT}" y="{lag_top - 8}">lag</text>',
        _area(series, scale, most_rate),
        _line(series, scale, most_rate),
        *_lags(series, scale, most_lag, lag_top),
    ]
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img"><title>{escape(title)}</title>'
        + "".join(parts)
        + "</svg>"
    )


def _panel(top: int, height: int, most: float, label: Callable[[float], str]) -> list[str]:
    parts = []
    for share in (0.0, 0.5, 1.0):
        y = top + height * (1 - share)
        kind = "axis" if share == 0 else "grid"
        parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{label(most * share)}</text>')
    return parts


def _seconds_axis(end_s: float, scale: float, bottom: int) -> list[str]:
    step_s = _nice(end_s / 10)
    ticks = [number * step_s for number in range(int(end_s / step_s) + 1)]
    return [
        f'<text x="{_LEFT + tick * scale:.1f}" y="{bottom + 16}" text-anchor="middle">{tick:g} s</text>'
        for tick in ticks
    ]


def _bands(faults: Sequence[FaultFact], scale: float, bottom: int) -> list[str]:
    parts = []
    for number, fault in enumerate(faults, 1):
        if fault.fired_s is None:
            continue
        x = _LEFT + fault.fired_s * scale
        healed_s = fault.fired_s if fault.healed_s is None else fault.healed_s
        width = max((healed_s - fault.fired_s) * scale, _LEAST_BAND)
        tooltip = escape(f"{number}: {fault.name} {fault.point} {fault.detail}".strip())
        parts.append(
            f'<g><title>{tooltip}</title><rect class="band" x="{x:.1f}" y="{_TOP}" width="{width:.1f}" '
            f'height="{bottom - _TOP}"/><line class="onset" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>'
            f'<text class="fault" x="{x:.1f}" y="{_TOP - 8}" text-anchor="middle">{number}</text></g>'
        )
    return parts


def _area(series: Series, scale: float, most: float) -> str:
    bottom = _TOP + _RATE
    points = [f"{_LEFT:.1f},{bottom}"]
    for place, rate in enumerate(series.written):
        y = bottom - rate / most * _RATE
        left, right = place * series.bin_s * scale + _LEFT, (place + 1) * series.bin_s * scale + _LEFT
        points += [f"{left:.1f},{y:.1f}", f"{right:.1f},{y:.1f}"]
    points.append(f"{series.end_s * scale + _LEFT:.1f},{bottom}")
    return f'<polygon class="written" points="{" ".join(points)}"/>'


def _line(series: Series, scale: float, most: float) -> str:
    points = [
        f"{(place + 0.5) * series.bin_s * scale + _LEFT:.1f},{_TOP + _RATE - rate / most * _RATE:.1f}"
        for place, rate in enumerate(series.applied)
    ]
    return f'<polyline class="applied" points="{" ".join(points)}"/>'


def _lags(series: Series, scale: float, most: float, top: int) -> list[str]:
    places = [
        (f"{second * scale + _LEFT:.1f}", f"{top + _LAG - max(lag, 0.0) / most * _LAG:.1f}")
        for second, lag in series.lag
    ]
    if not places:
        return []
    line = " ".join(f"{x},{y}" for x, y in places)
    dots = "".join(f'<circle class="dot" cx="{x}" cy="{y}" r="2"/>' for x, y in places)
    return [f'<polyline class="lag" points="{line}"/>{dots}']


def _nice(least: float) -> float:
    """The next of 1, 2, 5, 10, 20, ... (and their tenths) that is not below ``least``."""
    size = math.floor(math.log10(least))
    return next(step for power in (size, size + 1) for n in (1, 2, 5) if (step := n * 10.0**power) >= least)


def _number(value: float) -> str:
    return f"{value:,.0f}"


def _milliseconds(value: float) -> str:
    return f"{value / 1000:g} s" if value >= 1000 else f"{value:g} ms"
