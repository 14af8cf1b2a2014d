"""``migrator docs``: the documents that messages refer to, wherever the tool was installed."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import click

from migrator.errors import ConfigError
from migrator.own_modules import NAMESPACE

_ROOT = Path(__file__).parents[3 if NAMESPACE else 2]
_SHARED = ("share", "doc", "dbmigrator")
_BESIDE = (_ROOT / "docs", _ROOT.joinpath(*_SHARED))
"""Folders of the documents, in a checkout and after `pip install --target`."""
_FOLDERS = (
    "",
    "how-to",
    "how-to/cut-over",
    "how-to/hooks",
    "how-to/incidents",
    "how-to/mapping",
    "how-to/observe",
    "how-to/service",
    "reference",
    "reference/formats",
    "reference/incidents",
    "reference/options",
    "reference/outputs",
    "explanation",
)
"""Folders in them with documents for users; `pyproject.toml` ships the same."""
_FILES = (
    "how-to/hooks",
    "how-to/mapping/ci",
    "how-to/observe",
    "schemas",
    "docker/systemd",
    "docker/kubernetes",
)
"""Folders with files that documents tell to take: alerts, units, schemas, scripts. Those of docker are beside a
checkout's documents."""
_INDEX = "README"


def _completed(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[str]:
    """The names that begin as what is typed does."""
    return sorted(name for name in {*documents(), *files_to_take()} if name.startswith(begun))


@click.command()
@click.argument("name", required=False, shell_complete=_completed)
def docs(name: str | None) -> None:
    """Print a document, for instance `how-to` or `start-anew`, or a file that one tells to take, for instance
    `alerts.yml`; without a name, list them all."""
    found = documents()
    if name in (taken := files_to_take()):
        click.echo(taken[name].read_text("utf-8"), nl=False)
        return
    found |= taken
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
    folder = _folder()
    if folder is None:
        return {}
    return {
        _name(file, folder): file
        for subfolder in _FOLDERS
        for file in folder.joinpath(subfolder).glob("*.md")
    }


def files_to_take() -> dict[str, Path]:
    """Whatever else lies in the folders of the documents, by its file's name."""
    folder = _folder()
    if folder is None:
        return {}
    roots = (folder, _ROOT) if folder == _BESIDE[0] else (folder,)
    places = (root / name for name in _FILES for root in roots)
    return {file.name: file for place in places for file in place.glob("*.*") if file.suffix != ".md"}


def _folder() -> Path | None:
    """The folder of the documents; None: this installation came without them."""
    return next((one for one in (*_BESIDE, *_installed()) if one.joinpath("how-to").is_dir()), None)


def _installed() -> list[Path]:
    """The folder that the installation of our wheel put the documents into, if there was one."""
    try:
        shipped = files("dbmigrator") or []
    except PackageNotFoundError:
        return []
    return [
        Path(str(file.locate())).parent
        for file in shipped
        if file.parts[-3:] == (*_SHARED[1:], f"{_INDEX}.md")
    ]


def _name(file: Path, folder: Path) -> str:
    """A document's name: the file's, but the folder's if it is the index of a folder in `folder`."""
    return file.parent.name if file.stem == _INDEX and file.parent != folder else file.stem
