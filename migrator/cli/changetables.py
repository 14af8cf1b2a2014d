"""``migrator changetables``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from migrator.cli.options import config_option, json_option, print_document, print_sql
from migrator.config import project as configuration
from migrator.wiring import parts as wiring


@click.command()
@config_option
@json_option
def changetables(config: Path, as_json: bool) -> None:
    """Print the SQL that makes change tables and their triggers at the source. Runs nothing.

    For a source whose log can't be read (log = "change_tables"). The owner of the tables runs it, once.
    """
    settings = configuration.load(config)
    script = wiring.change_table_script(settings)
    if as_json:
        print_document(document(settings.name, script))
    else:
        print_sql(script)


def document(migration: str, script: str) -> dict[str, Any]:
    """The document of `migrator changetables --json` (docs/schemas/changetables.schema.json)."""
    return {"format": 1, "migration": migration, "sql": script}
