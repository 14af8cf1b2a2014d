"""Reports as files for this user only: they show rows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def write_private(directory: Path, texts: Mapping[str, str]) -> None:
    """Writes each text under its file name, replacing one of an earlier run."""
    for name, text in texts.items():
        path = directory / name
        path.touch(mode=0o600)
        path.chmod(0o600)
        path.write_text(text, encoding="utf-8")
