"""Writes the small part of TOML that a ``migration.toml`` needs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from migrator.errors import ConfigError


def toml_text(document: Mapping[str, Mapping[str, Any]]) -> str:
    """Sections of texts, numbers, flags, lists and mappings of these. Raises ``ConfigError`` for anything else."""
    lines: list[str] = []
    for section, values in document.items():
        lines.append(f"[{section}]")
        lines += [f"{_key(name)} = {_value(f'{section}.{name}', value)}" for name, value in values.items()]
        lines.append("")
    return "\n".join(lines)


def merged(
    below: Mapping[str, Mapping[str, Any]], above: Mapping[str, Mapping[str, Any]]
) -> dict[str, dict[str, Any]]:
    """Two documents, the second one's settings over the first one's; mappings in them are merged too."""
    found = {section: dict(values) for section, values in below.items()}
    for section, values in above.items():
        target = found.setdefault(section, {})
        for name, value in values.items():
            old = target.get(name)
            both = isinstance(old, Mapping) and isinstance(value, Mapping)
            target[name] = {**old, **value} if both else value  # type: ignore[dict-item]
    return found


def _key(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else json.dumps(name)


def _value(where: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)  # TOML's basic strings take JSON's escapes
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(where, member) for member in value)}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(str(k))} = {_value(where, v)}' for k, v in value.items())}}}"
    raise ConfigError(f"{value!r} can't be written as TOML", where=where)
