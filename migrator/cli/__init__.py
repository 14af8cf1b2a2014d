"""The ``migrator`` command. Each command parses, calls, prints and sets the exit code; nothing is decided here.

Exit codes: 0 done or equal, 1 different, 2 error, 3 unknown.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib.metadata import EntryPoint, entry_points

import click

from migrator import __version__
from migrator.cli.changetables import changetables
from migrator.cli.check import check
from migrator.cli.dual_read import dual_read
from migrator.cli.dump import dump
from migrator.cli.events import events
from migrator.cli.explain import explain
from migrator.cli.grants import grants
from migrator.cli.init import init
from migrator.cli.remap import remap
from migrator.cli.repair import repair
from migrator.cli.run import run
from migrator.cli.sequences import sequences
from migrator.cli.status import status
from migrator.cli.try_ import try_
from migrator.cli.verify import verify
from migrator.errors import MigratorError

_PRIVATE = (
    "check", "try", "run", "status", "dump", "remap", "explain", "events", "verify", "repair", "sequences",
    "dual-read",
)  # fmt: skip
"""Commands whose files are for this user only. What ``init`` writes is meant to be shared."""
_OWN_PROCESS = object()
"""Tells that the process is this command's: elsewhere its umask is not ours to set."""


class Commands(click.Group):
    """Our commands, and those of packages above this one, which join by entry point: nothing here imports them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted({*super().list_commands(ctx), *_joined()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """A command by name; one that joins is imported only when it is asked for."""
        joined = _joined().get(cmd_name)
        found: click.Command | None = joined.load() if joined else super().get_command(ctx, cmd_name)
        return found


def _joined() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group="migrator.commands")}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="migrator")
@click.pass_context
def cli(context: click.Context) -> None:
    """Move a live application from an old database schema to a new one while users keep writing."""
    if context.obj is _OWN_PROCESS and context.invoked_subcommand in _PRIVATE:
        os.umask(0o077)  # rows rest in what we and Spark's JVM write: for this user only


for command in (
    init, check, grants, changetables, try_, run, status, dump, remap, explain, events, verify, repair, sequences,
    dual_read,
):  # fmt: skip
    cli.add_command(command)


def main() -> None:
    """Runs the command; a named error becomes one clear message and exit code 2."""
    try:
        code = cli.main(standalone_mode=False, obj=_OWN_PROCESS)
    except MigratorError as error:
        first, *rest = error.lines()
        click.echo("\n".join([f"error: {first}", *(f"  {line}" for line in rest)]), err=True)
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception:  # a fault of ours: shown whole, and never with the exit code of a verdict
        traceback.print_exc()
        click.echo("error: this is a fault of the tool; please report it with the lines above", err=True)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)
