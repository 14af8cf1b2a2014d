"""The commands by name. Each is imported when it is called; a list of all reads their texts and imports none."""

from __future__ import annotations

import ast
import inspect
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from migrator.cli.exit_codes import exit_codes
from migrator.own_modules import own

_OURS = {
    name: own(f"migrator.cli.{module}")
    for name, module in {
        "changetables": "changetables",
        "check": "check.check",
        "cutover": "cutover.cutover",
        "docs": "docs",
        "dual-read": "dual_read",
        "dump": "dump",
        "events": "events.events",
        "explain": "explain",
        "grants": "grants",
        "history": "history",
        "init": "init.init",
        "remap": "remap",
        "repair": "repair.repair",
        "reset": "reset",
        "rows": "rows.rows",
        "run": "run.run",
        "schema": "schema.schema",
        "sequences": "sequences",
        "status": "status.status",
        "try": "try_",
        "verify": "verify",
    }.items()
}
"""The module of each command, imported when it is called: that takes seconds, in which Ctrl-C must be ours."""


class Commands(click.Group):
    """Our commands, and those of packages above this one, which join by entry point: nothing here imports them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted({*super().list_commands(ctx), *_OURS, *_joined()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name, imported only when it is asked for."""
        joined = _joined()
        found: click.Command | None
        if module := _OURS.get(cmd_name):
            found = getattr(import_module(module), _function(module))
        else:
            found = joined[cmd_name].load() if cmd_name in joined else super().get_command(ctx, cmd_name)
        if found is not None:
            _tell_exit_codes(found, exit_codes(cmd_name))
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Lists the commands, each with one line."""
        names = self.list_commands(ctx)
        room = formatter.width - 6 - max(map(len, names))
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.summary(ctx, name, room)) for name in names])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands that begin so, and options."""
        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self.summary(ctx, name)) for name in names), *options]

    def summary(self, ctx: click.Context, name: str, length: int = 45) -> str:
        """Returns the line that ``click`` would show of a command; ``length``: most characters."""
        module, _, function = _place(name).partition(":")
        said = _said(module, function)
        command = click.Command(name, help=said) if said else self.get_command(ctx, name)
        return "" if command is None else command.get_short_help_str(length)


def _function(module: str) -> str:
    return module.rpartition(".")[2]


def _place(name: str) -> str:
    """Returns a command's module and function, with a colon between; empty for a command that is neither's."""
    if module := _OURS.get(name):
        return f"{module}:{_function(module)}"
    return joined.value if (joined := _joined().get(name)) else ""


def _said(module: str, function: str) -> str:
    """Returns the documentation of a function without importing its module; empty where it can't be read so."""
    spec = find_spec(module) if module else None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return ""
    for node in ast.parse(Path(spec.origin).read_bytes()).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return inspect.cleandoc(ast.get_docstring(node) or "")
    return ""


def _tell_exit_codes(command: click.Command, line: str) -> None:
    """Ends the command's help, and that of the commands of a group, with what its exit codes say."""
    command.epilog = line
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _tell_exit_codes(below, line)


def _joined() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="migrator.commands")}
