"""The ``migrator`` command. Each command parses, calls, prints and sets the exit code; nothing is decided here."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

import click

from migrator import __version__
from migrator.cli.exit_codes import exit_codes
from migrator.cli.in_utf8 import begin_in_utf8, refuse_other_encodings
from migrator.cli.signals import INTERRUPTED, at_once, heard, leave, threads_now
from migrator.errors import MigratorError
from migrator.own_modules import own

_OURS = {
    name: own(f"migrator.cli.{module}")
    for name, module in {
        "changetables": "changetables",
        "check": "check",
        "cutover": "cutover.cutover",
        "docs": "docs",
        "dual-read": "dual_read",
        "dump": "dump",
        "events": "events",
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
        "status": "status",
        "try": "try_",
        "verify": "verify",
    }.items()
}
"""The module of each command, imported when it is asked for: that takes seconds, in which Ctrl-C must be ours."""
_PRIVATE = (
    "check", "try", "run", "status", "dump", "remap", "explain", "events", "verify", "repair", "reset", "sequences",
    "history", "dual-read", "rows", "cutover",
)  # fmt: skip
"""Commands whose files are for this user only. What ``init`` writes is meant to be shared."""
_OWN_PROCESS = object()
"""Tells that the process is this command's: elsewhere its umask is not ours to set."""


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
            found = getattr(import_module(module), module.rpartition(".")[2])
        else:
            found = joined[cmd_name].load() if cmd_name in joined else super().get_command(ctx, cmd_name)
        if found is not None:
            _tell_exit_codes(found, exit_codes(cmd_name))
        return found


def _tell_exit_codes(command: click.Command, line: str) -> None:
    """Ends the command's help, and that of the commands of a group, with what its exit codes say."""
    command.epilog = line
    if isinstance(command, click.Group):
        for below in command.commands.values():
            _tell_exit_codes(below, line)


def _joined() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="migrator.commands")}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="migrator")
@click.pass_context
def cli(context: click.Context) -> None:
    """Move a live application from an old database schema to a new one while users keep writing."""
    if context.obj is _OWN_PROCESS and context.invoked_subcommand in _PRIVATE:
        os.umask(0o077)  # rows rest in what we and Spark's JVM write: for this user only


def main() -> None:
    """Runs the command and ends the process; a named error becomes one clear message and exit code 2."""
    begin_in_utf8()
    before, spark = threads_now(), _spark()
    with heard():
        code = _exit_code()
        if code == INTERRUPTED:
            at_once(code)  # threads that the command waits for may take long yet
        if spark is None and (started := _spark()) is not None:
            started.stop_session()  # it has threads on our side
    leave(code, before)


def _spark() -> ModuleType | None:
    """Returns the module that ends Spark, if Spark runs: commands that need none don't import it."""
    module = sys.modules.get(own("transforms.on_spark.session"))
    return module if module is not None and module.running_session() is not None else None


def _exit_code() -> int:
    try:
        refuse_other_encodings(sys.argv[1:])
        code = cli.main(standalone_mode=False, obj=_OWN_PROCESS)
    except MigratorError as error:
        first, *rest = error.lines()
        click.echo("\n".join([f"error: {first}", *(f"  {line}" for line in rest)]), err=True)
        return 2
    except click.ClickException as error:
        error.show()
        return 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        return INTERRUPTED
    except Exception:  # a fault of ours: shown whole, and never with the exit code of a verdict
        traceback.print_exc()
        click.echo("error: this is a fault of the tool; please report it with the lines above", err=True)
        return 2
    return code if isinstance(code, int) else 0
