"""Every command with its options and exit codes, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import click

from migrator.cli import cli
from tests.reference.blocks import table

PAGES: Mapping[str, tuple[str, ...]] = {
    "reference/options/options.md": (),
    "reference/options/options-of-cut-overs.md": ("cutover",),
    "reference/options/options-of-dumps.md": ("dump",),
    "reference/options/options-of-projects.md": ("changetables", "docs", "grants", "init", "schema"),
    "reference/options/options-of-trials.md": (
        "bench", "capturebench", "demo", "incident", "playground", "rehearse", "scenario", "story", "verifybench",
    ),
}  # fmt: skip
"""The pages, and the commands that each has; the one without any has those that no other one has."""
_ELSEWHERE = {name for names in PAGES.values() for name in names}
_WIDTH = 10_000
"""Columns of a line of help: none is broken."""


def lines(own: tuple[str, ...]) -> Iterator[str]:
    """A heading, what it does, its options and exit codes for each command."""
    for command, context in leaves(click.Context(cli, info_name="migrator")):
        name = context.command_path.split()[1]
        if name not in own if own else name in _ELSEWHERE:
            continue
        yield from (f"## `{context.command_path}`", "")
        yield from (f"`{' '.join([context.command_path, *command.collect_usage_pieces(context)])}`", "")
        yield from (" ".join((command.help or "").split()), "")
        if options := list(_options(command, context)):
            yield from table(("Option", "Meaning"), options)
            yield ""
        if command.epilog:
            yield from (" ".join(command.epilog.split()), "")


def leaves(context: click.Context) -> Iterator[tuple[click.Command, click.Context]]:
    """The commands below one that are no groups, by name, each with its context."""
    command = context.command
    if not isinstance(command, click.Group):
        yield command, context
        return
    for name in command.list_commands(context):
        below = command.get_command(context, name)
        assert below is not None
        yield from leaves(click.Context(below, info_name=name, parent=context, max_content_width=_WIDTH))


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and "--help" not in record[0]:
            yield f"`{record[0]}`", record[1].replace("<", "&lt;")
