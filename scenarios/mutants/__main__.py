"""``python -m scenarios.mutants NAME run ...``: the command ``migrator run ...`` with one rule broken.

For scenarios on real servers. The rule is broken in this process only; nothing is written to disk.
"""

from __future__ import annotations

import sys

import click

from migrator.cli import main
from migrator.errors import MigratorError
from migrator.own_modules import own
from scenarios.mutants.catalog import ON_SERVERS, mutant


def run() -> None:
    """Breaks the rule named first, then is the ``migrator`` command."""
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        names = "\n".join(f"  {variant.name:28} {variant.broken}" for variant in ON_SERVERS)
        click.echo(f"usage: python -m {own('scenarios.mutants')} NAME COMMAND ...\n\n{names}")
        sys.exit(0 if len(sys.argv) > 1 else 2)
    try:
        mutant(sys.argv[1]).patch()
    except MigratorError as error:
        click.echo("error: " + "\n  ".join(error.lines()), err=True)
        sys.exit(2)
    sys.argv = ["migrator", *sys.argv[2:]]
    main()


if __name__ == "__main__":
    run()
