"""What a TRUNCATE of source tables means to a row-wise target, by the tables that feed it."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.errors import MappingError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
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


def dumped(*names: str) -> Checkpoint:
    dumps = tuple(TableDump(TableId("s", name)) for name in names)
    return Checkpoint(Position(1, "here"), dumps=dumps)


def test_a_target_is_emptied_with_the_table_that_feeds_it_and_with_no_other() -> None:
    assert emptied(plan("a"), batch("a", "z"), None)
    assert emptied(plan("a", "b"), batch("a", "b"), None)
    assert not emptied(plan("a"), batch("z"), None)
    assert not emptied(plan("a"), batch(), None)


def test_where_only_some_of_its_tables_were_emptied_it_is_refused() -> None:
    """Which of its rows came from which table isn't kept: to empty it would take rows that are still there."""
    with pytest.raises(MappingError, match="a was emptied"):
        emptied(plan("a", "b"), batch("a"), dumped("a", "b"))
    with pytest.raises(MappingError, match="a was emptied"):
        emptied(plan("a", "b"), batch("a"), None)


def test_a_table_that_joins_has_no_rows_in_the_target_that_could_go() -> None:
    """It left and came back, and the mirror still had rows of it: it is emptied before it is dumped."""
    assert not emptied(plan("a", "b"), batch("b"), dumped("a"))
    assert emptied(plan("b"), batch("b"), dumped("a"))
    assert emptied(plan("a", "b"), batch("a", "b"), dumped("a"))
