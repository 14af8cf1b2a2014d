"""``migrator docs``: the documents that messages refer to, wherever the tool was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import click

from migrator.errors import ConfigError

_ROOT = Path(__file__).parents[2]
_BESIDE = (_ROOT / "docs", _ROOT / "share" / "doc" / "dbmigrator")
"""Folders of the documents, in a checkout and after `pip install --target`."""


@click.command()
@click.argument("name", required=False)
def docs(name: str | None) -> None:
    """Print a document, for instance `operating`; without a name, list them all."""
    found = documents()
    if name is None:
        click.echo("\n".join(sorted(found)))
        return
    if name not in found:
        raise ConfigError(
            f"there is no document {name!r}",
            cause=f"there are: {', '.join(sorted(found)) or 'none, this installation came without them'}",
            remedy="name one of them" if found else "install the wheel, or run from a checkout",
        )
    click.echo_via_pager(found[name].read_text("utf-8"))


def documents() -> dict[str, Path]:
    """The documents by name: of the checkout that runs, else what was installed with us."""
    for folder in _BESIDE:
        if folder.joinpath("operating.md").exists():
            return {file.stem: file for file in folder.glob("*.md")}
    try:
        installed = files("dbmigrator") or []
    except PackageNotFoundError:
        return {}
    return {
        Path(str(file)).stem: Path(str(file.locate()))
        for file in installed
        if file.parts[-3:-1] == ("doc", "dbmigrator") and file.suffix == ".md"
    }
