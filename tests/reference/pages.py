"""The pages with generated blocks: what each ought to say, as the code stands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from tests.reference import (
    bundle_formats,
    commands,
    errors,
    exit_codes,
    happenings,
    metrics,
    points,
    report_formats,
    settings,
    state_formats,
)
from tests.reference.blocks import replaced

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS: Mapping[str, tuple[str, Callable[[], Iterable[str]]]] = {
    settings.PAGE: ("settings", settings.lines),
    **{page: ("commands", partial(commands.lines, own)) for page, own in commands.PAGES.items()},
    exit_codes.PAGE: ("exit codes", exit_codes.lines),
    happenings.PAGE: ("happenings", happenings.lines),
    metrics.PAGE: ("metrics", metrics.lines),
    points.PAGE: ("points", points.lines),
    state_formats.PAGE: ("state formats", state_formats.lines),
    bundle_formats.PAGE: ("bundle formats", bundle_formats.lines),
    report_formats.PAGE: ("report formats", report_formats.lines),
    **{page: ("errors", partial(errors.lines, page)) for page in errors.PAGES},
}
"""By page the name of its block, and what writes it."""


def wanted(page: str) -> str:
    """The page's text with its block as the code has it now."""
    name, lines = BLOCKS[page]
    return replaced((DOCS / page).read_text("utf-8"), name, lines())
