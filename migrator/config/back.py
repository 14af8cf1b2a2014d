"""Settings of the way back: which mapping leads from the new tables to the old ones, and who reads and writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from migrator.config.secret import Secrets, settings_of
from migrator.config.setting import Setting
from migrator.model.server import Server

SUFFIX = "_back"
"""Stands behind a migration's name in the name of its way back."""
SECTION = "back"
SETTINGS = {
    "mapping": Setting(str, "the mapping file of the way back", "reverse.py"),
    "reader": Setting(str, "login that reads the new side's log", "", "that of `[target]`"),
    **settings_of("reader_password", "where its password is"),
    "writer": Setting(
        str,
        "login that writes the old side's tables. A fence lets only this one write: give it to nobody else",
        "",
        "that of `[source]`",
    ),
    **settings_of("writer_password", "where its password is"),
    "accept_lossy": Setting(
        list, "columns of the old tables that may come back changed: `table.column` of each", []
    ),
}
_LOGINS = ("reader", "writer")


@dataclass(frozen=True, slots=True)
class Back:
    """The way back of a migration.

    Attributes:
        mapping: the mapping file, from the new tables to the old ones.
        source: the new side, with the login that reads its log.
        target: the old side, with the login that writes its tables.
        accept_lossy: columns of old tables, as ``table.column``, that may come back changed.
    """

    mapping: Path
    source: Server
    target: Server
    accept_lossy: tuple[str, ...] = ()


def back_of(
    root: Path,
    sides: tuple[Server, Server],
    get: Callable[[str], Any],
    problem: Callable[[str, str], None],
    secrets: Secrets,
) -> Back:
    """Reads the section.

    Args:
        root: folder of the project.
        sides: the old and the new side with the migration's own logins.
        get: returns a setting's value, or its default.
        problem: takes a setting's name and what is wrong with it.
        secrets: reads the section's passwords.
    """
    old, new = sides
    lossy = get("accept_lossy")
    wrong = [one for one in lossy if not isinstance(one, str) or "." not in one]
    if wrong:
        problem("accept_lossy", f"{wrong[0]!r} names no column: write table.column")
    reader, writer = (
        _with_login(get, secrets, problem, login, side)
        for login, side in zip(_LOGINS, (new, old), strict=True)
    )
    return Back(root / str(get("mapping")), reader, writer, tuple(map(str, lossy)))


def _with_login(
    get: Callable[[str], Any], secrets: Secrets, problem: Callable[[str, str], None], login: str, side: Server
) -> Server:
    """The side with the login of that setting; with the migration's own where no other is set."""
    user, password = str(get(login)), secrets.read(f"{login}_password")
    if not user:
        if password is not None:
            problem(login, f"its password is named, and the login isn't: set {login}")
        return side
    return replace(side, user=user, password=password)
