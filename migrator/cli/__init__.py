"""The ``migrator`` command. Each command parses, calls, prints and sets the exit code; nothing is decided here."""

from __future__ import annotations

import os
import sys
import traceback
from threading import Timer
from types import ModuleType

import click

from migrator import __version__
from migrator.cli.group import streams
from migrator.cli.group.commands import Commands
from migrator.cli.in_utf8 import begin_in_utf8, refuse_other_encodings
from migrator.cli.phases import say_first
from migrator.cli.signals import INTERRUPTED, at_once, heard, leave, threads_now
from migrator.errors import MigratorError
from migrator.own_modules import own

_PRIVATE = (
    "check", "try", "run", "status", "dump", "remap", "explain", "events", "verify", "repair", "reset", "sequences",
    "history", "dual-read", "rows", "cutover",
)  # fmt: skip
"""Commands whose files are for this user only. What ``init`` writes is meant to be shared."""
_ROOM = "make room where it goes, then give the command again"
_OWN_PROCESS = object()
"""Tells that the process is this command's: elsewhere its umask is not ours to set."""


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
    streams.put_in_place()
    later = say_first(sys.argv[1:])
    before, spark = threads_now(), _spark()
    with heard():
        code = _exit_code(later)
        if code == INTERRUPTED:
            at_once(code)  # threads that the command waits for may take long yet
        if spark is None and (started := _spark()) is not None:
            started.stop_session()  # it has threads on our side
    leave(code, before)


def _spark() -> ModuleType | None:
    """Returns the module that ends Spark, if Spark runs: commands that need none don't import it."""
    module = sys.modules.get(own("transforms.on_spark.session"))
    return module if module is not None and module.running_session() is not None else None


def _exit_code(later: Timer | None) -> int:
    """Runs the command. What says its first line later says none behind its end."""
    try:
        refuse_other_encodings(sys.argv[1:])
        try:
            code = cli.main(standalone_mode=False, obj=_OWN_PROCESS)
        finally:
            if later is not None:
                later.cancel()
    except streams.Unwritten as error:
        streams.gone()
        if error.nobody_reads:
            return streams.NOBODY_READS
        click.echo(
            f"error: standard output can't be written\n  cause: {error.why}\n  remedy: {_ROOM}", err=True
        )
        return 2
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
