"""What a TRUNCATE of source tables means to a row-wise target, by the tables that feed it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.errors import MappingError
from migrator.run.apply.emptied import emptied


def plan(*reads: str) -> Any:
    return SimpleNamespace(
        reads=dict.fromkeys(reads), target=SimpleNamespace(name="made", where=lambda: "mapping.py:7")
    )


@dataclass(frozen=True)
class Named:
    name: str


def batch(*names: str) -> Any:
    return SimpleNamespace(emptied=lambda: {Named(name=name) for name in names})


def test_a_target_is_emptied_with_the_table_that_feeds_it_and_with_no_other() -> None:
    assert emptied(plan("a"), batch("a", "z"))
    assert emptied(plan("a", "b"), batch("a", "b"))
    assert not emptied(plan("a"), batch("z"))
    assert not emptied(plan("a"), batch())


def test_where_only_some_of_its_tables_were_emptied_it_is_refused() -> None:
    """Which of its rows came from which table isn't kept: to empty it would take rows that are still there."""
    with pytest.raises(MappingError, match="a was emptied"):
        emptied(plan("a", "b"), batch("a"))
