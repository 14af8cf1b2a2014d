"""Numbers that a command leaves behind for the report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from migrator.errors import ConfigError


def write(path: Path, document: Mapping[str, Any]) -> None:
    """Writes a JSON document. Raises ``ConfigError`` where that can't be done."""
    try:
        path.write_text(json.dumps(document, indent=2) + "\n")
    except OSError as error:
        raise ConfigError(
            "the numbers can't be written",
            where=str(path),
            cause=str(error),
            remedy="name a file in a folder that exists",
        ) from error
