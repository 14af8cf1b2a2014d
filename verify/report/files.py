"""Reports as JSON and as files, which are for this user only: they show rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any


def write_private(directory: Path, texts: Mapping[str, str]) -> None:
    """Writes each text under its file name, replacing one of an earlier run."""
    for name, text in texts.items():
        path = directory / name
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(text, encoding="utf-8")


def json_document(fields: Mapping[str, Any]) -> str:
    """A report as JSON: enums as their words, text as it is."""
    return json.dumps(fields, indent=2, ensure_ascii=False, default=_plain) + "\n"


def _plain(value: object) -> object:
    if isinstance(value, Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no JSON form")
