"""The shared parts of our HTML pages: one style, one script, small pieces. A page is one file and loads nothing.

A page is light or dark by the reader's setting, readable on a phone, usable by keyboard alone, and complete without
the script, which only filters its entries.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files

from migrator.own_modules import own

Segment = tuple[str, int]
"""A status and the number of keys or comparisons that have it."""


def style() -> str:
    """The style sheet of all our pages."""
    return (files(own("verify")) / "data" / "page.css").read_text("utf-8")


def page(title: str, body: Sequence[str]) -> str:
    """The whole document. ``title`` is plain text, ``body`` is HTML."""
    script = "\n" + (files(own("verify")) / "data" / "page.js").read_text("utf-8")
    digest = b64encode(sha256(script.encode()).digest()).decode()
    # A value that slipped through unescaped could neither run nor fetch anything.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>\n{style()}</style></head><body><main>\n"
        + "\n".join(filter(None, body))
        + f"\n</main><script>{script}</script></body></html>\n"
    )


def header(verdict: str, subject: str, lines: Sequence[tuple[str, str]]) -> str:
    """The verdict in large letters, what was judged, and facts as pairs of name and plain text."""
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(text)}</dd>" for name, text in lines)
    return (
        f'<header class="{verdict}"><h1><span class="verdict">{verdict}</span> {escape(subject)}</h1>'
        f"<dl>{facts}</dl></header>"
    )


def bar(label: str, segments: Sequence[Segment]) -> str:
    """A stacked bar, in which even the smallest segment is visible. The text beside it says the same in numbers."""
    parts = "".join(
        f'<i class="{name}" style="flex-grow:{number}"></i>' for name, number in segments if number
    )
    shown = (
        ", ".join(f"{number:,} {name.replace('-', ' ')}" for name, number in segments if number) or "nothing"
    )
    return f'<div class="bar" role="img" aria-label="{escape(label)}: {shown}">{parts}</div>'


def numbers(segments: Sequence[Segment]) -> str:
    """The segments as words with their colours."""
    shown = "".join(
        f'<li class="{name}"><b>{number:,}</b> {name.replace("-", " ")}</li>'
        for name, number in segments
        if number
    )
    return f'<ul class="numbers">{shown or "<li>nothing</li>"}</ul>'


def panel(title: str, content: str, kind: str = "") -> str:
    """A framed box that asks to be read. ``content`` is HTML."""
    return f'<section class="panel {kind}"><h2>{escape(title)}</h2>{content}</section>'


def command(text: str) -> str:
    """A command to copy; the button appears where the script runs."""
    return f'<div class="command"><pre tabindex="0"><code>{escape(text)}</code></pre></div>'


def table(head: Sequence[str], rows: Sequence[str], label: str, right: Sequence[int] = ()) -> str:
    """A table that scrolls where it is too wide. ``rows`` are HTML rows, ``right`` the columns of numbers."""
    cells = "".join(
        f'<th scope="col"{_number(i in right)}>{escape(name)}</th>' for i, name in enumerate(head)
    )
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{escape(label)}"><table>'
        f"<thead><tr>{cells}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def row(cells: Sequence[str], kind: str = "", right: Sequence[int] = ()) -> str:
    """A row of HTML cells; ``kind`` is ``differs``, ``named`` or empty."""
    shown = "".join(f"<td{_number(i in right)}>{cell}</td>" for i, cell in enumerate(cells))
    return f'<tr class="{kind}">{shown}</tr>' if kind else f"<tr>{shown}</tr>"


def _number(right: bool) -> str:
    return ' class="n"' if right else ""


def value(text: str | None) -> str:
    """A cell's value as it is, with marks for what can't be seen: NULL, empty text, spaces at an end, controls."""
    if text is None:
        return '<span class="null">NULL</span>'
    if not text:
        return '<span class="null">empty</span>'
    first, last = len(text) - len(text.lstrip()), len(text.rstrip())
    seen = "".join(
        _character(character, at_end=not first <= place < last) for place, character in enumerate(text)
    )
    return f'<bdi class="v">{seen}</bdi>'


def _character(character: str, at_end: bool) -> str:
    if character == " ":
        return "␣" if at_end else " "
    if character.isprintable() or (character in "\n\t" and not at_end):
        return escape(character)
    return f'<span class="null">U+{ord(character):04X}</span>'


def browser(statuses: Sequence[str], groups: Sequence[str], items: Sequence[str], noun: str) -> str:
    """A list that can be searched and filtered. ``items`` are made by ``item``."""

    def options(first: str, names: Sequence[str]) -> str:
        return f'<option value="">{first}</option>' + "".join(f"<option>{escape(n)}</option>" for n in names)

    return (
        '<form class="filters" role="search" hidden>'
        f'<label>Search <input type="search" name="text" placeholder="key, column, value, cause"></label>'
        f'<label>Status <select name="status">{options("all", statuses)}</select></label>'
        f'<label>{noun} <select name="group">{options("all", groups)}</select></label>'
        '<button type="button" name="open">Open all</button><output aria-live="polite"></output></form>'
        f'<div class="items">{"".join(items)}</div>'
    )


def item(status: str, group: str, title: str, content: str, opened: bool) -> str:
    """One entry of a browser: ``title`` and ``content`` are HTML, ``status`` and ``group`` plain text."""
    data = f'data-status="{escape(status)}" data-group="{escape(group)}"{" open" if opened else ""}'
    head = f'<summary><span class="tag">{escape(status)}</span> {title}</summary>'
    return f'<details class="item {status.replace(" ", "-")}" {data}>{head}{content}</details>'


def bullets(lines: Sequence[str]) -> str:
    """Plain lines as a list."""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>"
