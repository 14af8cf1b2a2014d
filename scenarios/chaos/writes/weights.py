"""Weights of a workload: how often each kind of transaction and each table is drawn, and how often awkward values."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from migrator.errors import ConfigError

KINDS: Mapping[str, float] = {
    "insert": 4,
    "family": 2,
    "update": 6,
    "hot": 2,
    "delete": 2,
    "move": 1,
    "again": 1,
    "undone": 1,
}
"""The kinds of transactions, each with its weight where nothing else is said:

``insert`` a row; ``family`` a row with children, across foreign keys; ``update`` some columns; ``hot`` one of few
rows that all clients change; ``delete`` a row with all its children; ``move`` a row to another key; ``again`` a row
deleted and inserted under the same key; ``undone`` an insert that the client rolls back.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """The weights of one workload.

    Attributes:
        kinds: by name of ``KINDS``.
        tables: by table; others have 1, and one with 0 is never written.
        awkward: share of drawn values that are awkward ones (0 to 1).
        hot_rows: how many rows of a table are hot.
    """

    kinds: Mapping[str, float] = field(default_factory=lambda: dict(KINDS))
    tables: Mapping[str, float] = field(default_factory=dict)
    awkward: float = 0.1
    hot_rows: int = 3


def load(file: Path) -> Weights:
    """Reads a TOML file: ``awkward``, ``hot_rows``, ``[kinds]``, ``[tables]``. Raises ``ConfigError``."""
    try:
        document = tomllib.loads(file.read_text())
    except OSError as error:
        raise _wrong(file, error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _wrong(file, str(error)) from error
    unknown = sorted({*document} - {"awkward", "hot_rows", "kinds", "tables"})
    kinds, tables = _numbers(file, document, "kinds"), _numbers(file, document, "tables")
    unknown += [f"kinds.{name}" for name in kinds if name not in KINDS]
    if unknown:
        raise _wrong(file, f"unknown: {', '.join(unknown)}")
    weights = {**KINDS, **kinds}
    if not any(weights.values()):
        raise _wrong(file, "all kinds have the weight 0: nothing would be written")
    awkward, hot = document.get("awkward", 0.1), document.get("hot_rows", 3)
    if not _number(awkward) or awkward > 1 or not isinstance(hot, int) or hot < 0:
        raise _wrong(file, f"awkward = {awkward!r}, hot_rows = {hot!r}: a share of 1, and a whole number")
    return Weights(weights, tables, float(awkward), hot)


def _numbers(file: Path, document: Mapping[str, Any], section: str) -> dict[str, float]:
    found = document.get(section, {})
    if not isinstance(found, dict) or not all(map(_number, found.values())):
        raise _wrong(file, f"[{section}] has names with numbers from 0 on")
    return dict(found)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _wrong(file: Path, cause: str) -> ConfigError:
    return ConfigError(
        "the file of weights can't be used",
        where=str(file),
        cause=cause,
        remedy="correct it; docs/how-to/mapping/chaos.md shows one",
    )
