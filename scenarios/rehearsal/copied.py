"""The copy of a project that points at throw-away servers: what is taken over, what is set otherwise, and why."""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.errors import ConfigError
from scenarios.database import Database
from scenarios.toml_text import merged, toml_text

Document = dict[str, dict[str, Any]]
PASSWORD_FILE = "rehearsal.password"
PASSWORD = "rehearsal"  # of logins that live as long as the rehearsal, on this machine's own interface
SUPERUSERS = {"postgresql": "postgres", "mariadb": "root", "mysql": "root"}
"""Logins that a throw-away server has already, without a password."""
WITHOUT_PASSWORD = ("mysql",)
"""Engines whose throw-away servers give logins none: MySQL's driver sends a password over TLS alone."""
_SIDES_OF_LOGINS = {"writer": "old", "reader": "new", "old_fencer": "old", "new_fencer": "new"}
_LEFT_OUT = (".git", ".venv", "__pycache__", ".mypy_cache", ".pytest_cache", ".demo", "node_modules")
_SIDES = {"source": "old", "target": "new"}
_KINDS = ("postgresql", "mariadb", "mysql")


@dataclass(frozen=True, slots=True)
class Wanted:
    """The settings of a user's project that say what has to be there.

    Attributes:
        file: the project's file.
        document: its content.
        logins: by side (``old``, ``new``) the names of all logins that the settings name there.
        reverse: file of the way back's mapping, below the project's folder; empty where there is none.
    """

    file: Path
    document: Document
    logins: Mapping[str, tuple[str, ...]]
    reverse: str

    def text(self, section: str, name: str, otherwise: str = "") -> str:
        """A setting as text."""
        return str(self.document.get(section, {}).get(name, otherwise))

    def kind(self, side: str) -> str:
        """The engine of a side."""
        return self.text(_section(side), "kind")


def wanted(file: Path) -> Wanted:
    """Reads a project's file without its passwords. Raises ``ConfigError`` for one that can't be used."""
    try:
        document = tomllib.loads(file.read_text())
    except OSError as error:
        raise ConfigError(
            f"{file} can't be read",
            cause=error.strerror or str(error),
            remedy="run the command in a migration project's folder, or name its file with --config;"
            " `migrator init` makes a project",
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{file} is no valid TOML", cause=str(error), remedy="correct the line named"
        ) from error
    for section in _SIDES:
        found = document.get(section)
        for name in ("kind", "database", "user"):
            value = found.get(name) if isinstance(found, dict) else None
            if not isinstance(value, str) or not value or (name == "kind" and value not in _KINDS):
                raise ConfigError(
                    f"{file} doesn't say which database to rehearse with",
                    where=f"{section}.{name}: {value!r}",
                    remedy="correct the settings named; docs/reference/settings.md lists all of them",
                )
    back, cutover = document.get("back", {}), document.get("cutover", {})
    reverse = str(back.get("mapping", "reverse.py"))
    logins = {
        "old": _names(document["source"]["user"], back.get("writer"), cutover.get("old_fencer")),
        "new": _names(
            document["target"]["user"],
            document["target"].get("owner"),
            back.get("reader"),
            cutover.get("new_fencer"),
        ),
    }
    return Wanted(file, document, logins, reverse if (file.parent / reverse).exists() else "")


def password_of(kind: str) -> str:
    """The password of a throw-away server's login."""
    return "" if kind in WITHOUT_PASSWORD else PASSWORD


def _names(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def copy(
    project: Wanted, folder: Path, sides: Mapping[str, Database], patient: bool, ways: Collection[str] = ()
) -> tuple[Path, list[str]]:
    """Copies a project into ``folder``; returns its file, and what is otherwise there, in words.

    Args:
        project: the user's.
        folder: made here.
        sides: the throw-away databases, by side.
        patient: whether a switch may take long, as under kills.
        ways: round the fences that are there on throw-away servers alone, and accepted.
    """
    state = project.text("migration", "state", ".migrator").rstrip("/")
    left = shutil.ignore_patterns(*_LEFT_OUT, state)
    shutil.copytree(project.file.parent, folder, ignore=left, symlinks=True)
    (folder / PASSWORD_FILE).write_text(PASSWORD)
    document, said = {section: dict(values) for section, values in project.document.items()}, list[str]()
    for section, side in _SIDES.items():
        document[section] = _at(document[section], sides[side])
    for section, logins in (("back", ("writer", "reader")), ("cutover", ("old_fencer", "new_fencer"))):
        with_one = [name for name in logins if sides[_SIDES_OF_LOGINS[name]].kind not in WITHOUT_PASSWORD]
        document[section] = _with_passwords(document.get(section, {}), with_one, set(SUPERUSERS.values()))
    if document.pop("coordination", None):
        said.append("one process leads: [coordination] is left out")
    if ways:
        document["cutover"]["accepted_ways"] = [*document["cutover"].get("accepted_ways", ()), *ways]
        said.append(f"ways round a fence that these servers have, and accepted: {', '.join(ways)}")
    if hook := document["cutover"].pop("hook", ""):
        said.append(f"the hook is not called ({hook}): clients find the open side by themselves")
    master = str(document.get("spark", {}).get("master", "local[*]"))
    if not master.startswith("local"):
        document = merged(document, {"spark": {"master": "local[2]"}})
        said.append(f"Spark runs in the processes themselves, not on {master}")
    if patient:
        document = merged(document, {"cutover": {"pause_s": 3600.0, "max_lag_s": 300.0, "verify_s": 600.0}})
        said.append("a switch may take an hour, because leaders are killed in it")
    for name in ("mapping", "alembic"):
        value = project.text("migration", name)
        if value and not (folder / value).exists() and (project.file.parent / value).exists():
            document["migration"][name] = str((project.file.parent / value).resolve())
    document["migration"]["state"] = ".rehearsal"
    config = folder / project.file.name
    config.write_text(toml_text(document))
    return config, said


def _at(section: Mapping[str, Any], database: Database) -> dict[str, Any]:
    kept = {
        name: value
        for name, value in section.items()
        if "password" not in name and name not in ("tls", "tls_ca", "host", "port")
    }
    logins = ("", "owner") if kept.get("owner") else ("",)
    passwords = {f"{login}_password_file" if login else "password_file": PASSWORD_FILE for login in logins}
    if kept["user"] == SUPERUSERS[database.kind]:
        del passwords["password_file"]
    if database.kind in WITHOUT_PASSWORD:
        passwords = {}
    return {**kept, "host": database.host, "port": database.port, "tls": "disable", **passwords}


def _with_passwords(section: Mapping[str, Any], logins: Collection[str], but: set[str]) -> dict[str, Any]:
    kept = {name: value for name, value in section.items() if "password" not in name}
    own = [login for login in logins if kept.get(login) and kept[login] not in but]
    return kept | {f"{login}_password_file": PASSWORD_FILE for login in own}


def _section(side: str) -> str:
    return next(section for section, one in _SIDES.items() if one == side)
