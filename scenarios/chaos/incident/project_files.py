"""The project's files for an incident: its code, its settings without secrets, and settings for a replay."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from migrator.config.secret import concerns_secret
from scenarios.rehearsal.copied import SUPERUSERS, Document, Wanted
from scenarios.toml_text import toml_text
from transforms.sql_file import holds_mapping

MOST_BYTES = 4 << 20
"""Bytes of code that are taken at most."""
_LEFT_OUT = frozenset(
    (".git", ".venv", "venv", "__pycache__", "node_modules", "tests", ".demo", ".scenarios")
)
_SIDES = {"source": "old", "target": "new"}
_SETTINGS: Mapping[str, tuple[str, ...]] = {
    "source": ("kind", "schema", "placement", "text_columns", "replaced_tables", "streaming"),
    "target": ("kind", "schema"),
}
_WHOLE = ("capture", "apply")
_PACE = (
    "interval_s", "max_active_sessions", "max_replica_lag_s", "event_log_bytes", "event_log_free_bytes",
    "backlog_bytes", "keep_applied_bytes",
)  # fmt: skip
"""Settings that only say how fast, and with how much room."""
_ADDRESSES = ("host", "hosts", "listen", "reverse_listen", "hook", "on_event", "namespace")
_LOGINS = ("user", "owner", "writer", "reader", "old_fencer", "new_fencer")
_SHORT = 4
"""Names with fewer characters are in any file."""


def code(project: Wanted) -> tuple[dict[str, str], list[str]]:
    """The mapping, what lies beside it, the way back, and the revisions of the new schema, by name; and what was
    left out, in words."""
    root = project.file.resolve().parent
    mapping = root / project.text("migration", "mapping", "mapping.py")
    revisions = root / project.text("migration", "alembic", "alembic")
    files = dict.fromkeys(_of(mapping.parent, ("*.py", "*.sql")), mapping.parent)
    files |= dict.fromkeys(_of(revisions, ("*.py", "versions/*.py", "versions/*.sql")), revisions.parent)
    if project.reverse:
        files[root / project.reverse] = root
    found, left, size = dict[str, str](), list[str](), 0
    for file, folder in files.items():
        name = str(file.relative_to(root if file.is_relative_to(root) else folder))
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            left.append(f"{name}: {type(error).__name__}")
            continue
        if file.parent == mapping.parent and file.suffix == ".sql" and not holds_mapping(text):
            left.append(
                f"{name}: no line of it says `-- target:`"
            )  # a dump, perhaps with rows of the application
            continue
        size += len(text.encode())
        if size > MOST_BYTES:
            left.append(f"{name} and all code after it: more than {MOST_BYTES:,} bytes")
            break
        found[name] = text
    return found, left


def for_replay(project: Wanted, name: str) -> str:
    """Settings as a replay takes them: what bears on the result, with neutral names of databases and logins."""
    document: Document = {"migration": {"name": name}}
    for setting in ("mapping", "alembic"):
        if value := project.text("migration", setting):
            document["migration"][setting] = value if not Path(value).is_absolute() else Path(value).name
    for section, kept in _SETTINGS.items():
        found = project.document[section]
        document[section] = {one: found[one] for one in kept if one in found}
        document[section] |= {"database": _SIDES[section], "user": SUPERUSERS[project.kind(_SIDES[section])]}
    if project.reverse:
        document["back"] = {"mapping": project.reverse}
    for section in _WHOLE:
        found = project.document.get(section, {})
        document[section] = {one: value for one, value in found.items() if one not in _PACE}
    return toml_text(document)


def without_secrets(project: Wanted) -> str:
    """The project's settings; where passwords are isn't among them."""
    return toml_text(
        {section: _public(values) for section, values in project.document.items() if isinstance(values, dict)}
    )


def names_of_places(project: Wanted) -> list[str]:
    """Names of hosts, logins, databases and folders that the settings have; long ones first."""
    found = set[str]()
    for values in project.document.values():
        for name, value in values.items() if isinstance(values, dict) else ():
            if name in (*_ADDRESSES, *_LOGINS, "database", "tls_ca", "state") and isinstance(value, str):
                found |= {value, *re.split(r"[,;\s]+", value)}
    found |= {str(project.file.resolve().parent), str(Path.home())}
    known = {
        *SUPERUSERS.values(),
        "public",
        "localhost",
        "127.0.0.1",
        "migrator",
        "source",
        "target",
        "mysql",
    }
    return sorted((one for one in found - known if len(one) >= _SHORT), key=lambda one: (-len(one), one))


def without_addresses(text: str, names: Sequence[str]) -> str:
    """Code in which names of hosts and folders are replaced; a name that may be a variable's stays."""
    return without_places(text, [one if not one.isidentifier() else "" for one in names])


def without_places(text: str, names: Sequence[str]) -> str:
    """A text in which names of places that stand by themselves are replaced."""
    for number, name in enumerate(names, 1):
        if not name:
            continue
        text = re.sub(rf"(?<![\w]){re.escape(name)}(?![\w])", f"place{number}", text)
    return text


def _public(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _public(value) if isinstance(value, dict) else value
        for name, value in values.items()
        if not concerns_secret(name)
    }


def _of(folder: Path, patterns: Iterable[str]) -> list[Path]:
    return [
        file
        for pattern in patterns
        for file in sorted(folder.glob(pattern))
        if file.is_file() and not _LEFT_OUT & {*file.relative_to(folder).parts}
    ]
