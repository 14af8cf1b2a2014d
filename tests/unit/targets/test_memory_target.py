"""The target in memory merges as the port says and remembers every commit."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.memory.target import MemoryDatabase, MemoryTarget
from migrator.errors import FencedError, TargetError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint
from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable
from migrator.ports.target import TargetBatch, TargetRows

PERSON = TargetTable(
    TableId("new", "person"),
    (
        TargetColumn("id", "bigint", "bigint", False, False, False),
        TargetColumn("name", "string", "text", True, False, False),
    ),
    ("id",),
)


def rows(*pairs: tuple[int, str]) -> pa.Table:
    return pa.table({"id": [key for key, _ in pairs], "name": [name for _, name in pairs]})


def batch(segment: int, strict: bool = False, **kinds: Any) -> TargetBatch:
    chunk, before, after = (
        rows(*kinds[kind]) if kind in kinds else None for kind in ("chunk", "before", "after")
    )
    return TargetBatch(
        segment, Checkpoint(Position(segment, "")), (TargetRows(PERSON, chunk, before, after, strict),)
    )


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase((PERSON,))


def names(database: MemoryDatabase) -> dict[int, str]:
    return {key[0]: row["name"] for key, row in database.rows.get(PERSON.id, {}).items()}


def test_chunk_then_before_then_after(database: MemoryDatabase) -> None:
    target = MemoryTarget(database)
    assert target.open(1).segment == 0
    target.apply(batch(1, chunk=[(1, "a"), (2, "b"), (3, "c")]))
    target.apply(
        batch(3, chunk=[(4, "d")], before=[(1, "a"), (2, "b"), (4, "d")], after=[(2, "B"), (5, "e")])
    )
    assert names(database) == {2: "B", 3: "c", 5: "e"}
    assert (database.ledger.segment, database.ledger.checkpoint) == (3, Checkpoint(Position(3, "")))
    assert [(commit.segment, len(commit.changed[PERSON.id])) for commit in database.history] == [
        (1, 3),
        (3, 4),
    ]
    assert database.history[1].changed[PERSON.id][(1,)] is None


def test_keys_may_swap(database: MemoryDatabase) -> None:
    target = MemoryTarget(database)
    target.open(1)
    target.apply(batch(1, after=[(1, "a"), (2, "b")]))
    target.apply(batch(2, strict=True, before=[(1, "a"), (2, "b")], after=[(2, "a"), (1, "b")]))
    assert names(database) == {1: "b", 2: "a"}


def test_a_second_source_row_for_a_key_is_refused_and_nothing_changes(database: MemoryDatabase) -> None:
    target = MemoryTarget(database)
    target.open(1)
    target.apply(batch(1, after=[(1, "a")]))
    for after in ([(1, "x")], [(2, "x"), (2, "y")]):
        with pytest.raises(TargetError, match="one target key"):
            target.apply(batch(2, strict=True, before=[(9, "z")], after=after))
    assert names(database) == {1: "a"}
    assert database.ledger.segment == 1
    target.apply(batch(2, strict=False, after=[(1, "x")]))
    assert names(database) == {1: "x"}


def test_a_higher_epoch_fences(database: MemoryDatabase) -> None:
    old, new = MemoryTarget(database), MemoryTarget(database)
    old.open(1)
    new.open(2)
    with pytest.raises(FencedError):
        old.apply(batch(1, after=[(1, "a")]))
    with pytest.raises(FencedError):
        old.open(1)
    assert (names(database), database.history) == ({}, [])
    new.apply(batch(1, after=[(1, "b")]))
    with pytest.raises(TargetError, match="already"):
        new.apply(batch(1, after=[(1, "c")]))
    assert names(database) == {1: "b"}


@pytest.mark.parametrize(("point", "segment"), [("target.merged", 0), ("target.committed", 1)])
def test_a_crash_commits_all_or_nothing(database: MemoryDatabase, point: str, segment: int) -> None:
    def crash(name: str) -> None:
        if name == point:
            raise KeyboardInterrupt(name)

    target = MemoryTarget(database, step=crash)
    target.open(1)
    with pytest.raises(KeyboardInterrupt):
        target.apply(batch(1, after=[(1, "a")]))
    assert MemoryTarget(database).open(2).segment == segment == len(database.history) == len(names(database))


def test_infinity_is_a_number(database: MemoryDatabase) -> None:
    target = MemoryTarget(database)
    target.open(1)
    far = pa.table({"id": [1], "at": pa.array([2**63 - 1], pa.int64()).cast(pa.timestamp("us", tz="UTC"))})
    target.apply(TargetBatch(1, Checkpoint(Position(1, "")), (TargetRows(PERSON, None, None, far, False),)))
    assert database.rows[PERSON.id][(1,)] == {"id": 1, "at": 2**63 - 1}


def test_unknown_tables_are_named(database: MemoryDatabase) -> None:
    target = MemoryTarget(database)
    assert target.tables(["person"]) == [PERSON]
    with pytest.raises(TargetError, match="nobody"):
        target.tables(["person", "nobody"])
    assert [finding.subject for finding in target.preflight(["person", "nobody"])] == ["nobody"]
    target.close()
