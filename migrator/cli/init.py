"""``migrator init``."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from migrator.config import DEFAULT_PORTS, NAME, SOURCE_KINDS
from migrator.errors import ConfigError

_VERBATIM = {"alembic.ini", "alembic/env.py", "alembic/script.py.mako", "alembic/versions/0001_new_schema.py"}
_TEMPLATES = {
    "migration.toml": "migration.toml.txt",
    "mapping.py": "mapping.py.txt",
    "tests/test_mapping.py": "test_mapping.py.txt",
    "alembic.ini": "alembic.ini.txt",
    "alembic/env.py": "env.py.txt",
    "alembic/script.py.mako": "script.py.mako.txt",
    "alembic/versions/0001_new_schema.py": "first_revision.py.txt",
}


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--name", default=None, help="Name of the migration; the folder's name by default.")
@click.option("--source", type=click.Choice(SOURCE_KINDS), default="postgresql", show_default=True)
def init(folder: Path, name: str | None, source: str) -> None:
    """Write a migration project into FOLDER: settings, mapping, its tests, and the new schema's revisions."""
    name = name or folder.resolve().name.lower().replace("-", "_")
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} can't be the name of a migration",
            cause="it must be [a-z][a-z0-9_]{0,30}: slot, publication and ledger row are named after it",
            remedy="choose one with --name",
        )
    taken = [file for file in _TEMPLATES if (folder / file).exists()]
    if taken:
        raise ConfigError(
            f"{folder} already holds {', '.join(taken)}",
            cause="init never overwrites a file",
            remedy="choose another folder, or remove them",
        )
    for file, template in _TEMPLATES.items():
        text = (files("migrator.cli.template") / template).read_text()
        if file not in _VERBATIM:
            text = text.format(name=name, source=source, port=DEFAULT_PORTS[source])
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(f"wrote {path}")
    click.echo(
        f"next: edit these files, then `cd {folder}`, `alembic -x url=... upgrade head`, `migrator check`"
    )
