"""Broken variants do on real servers what they say: each breaks its promise here, which the whole product keeps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.targets.postgres.target import PostgresTargetWriter
from migrator.errors import FencedError
from scenarios.mutants.catalog import mutant
from scenarios.simulation.setup import Patch, patched
from tests.contract.event_log.eventlog_content import content, dump_rows, images, pairs
from tests.contract.targets.target_under_test import Applier
from tests.integration.targets.postgres.test_target_contract import PostgresPlace
from tests.servers import Database

pytestmark = pytest.mark.integration


class Cut(Exception):
    """Ends a transaction where it stands."""


@pytest.fixture
def place(new_pg: Database) -> Iterator[PostgresPlace]:
    place = PostgresPlace(new_pg)
    yield place
    place.close()


def broken(name: str) -> tuple[Patch, ...]:
    if not name:
        return ()
    servers = mutant(name).servers
    assert servers is not None
    return (*mutant(name).shared, *servers())


def cut_at(applier: Applier, point: str) -> None:
    """Applies a batch of two tables that ends at a named point of its transaction."""

    def step(name: str) -> None:
        if name == point:
            raise Cut

    assert isinstance(applier.target, PostgresTargetWriter)
    applier.target._step = step
    with pytest.raises(Cut):
        applier.apply(applier.part("item", after=[(1, "a", 1)]), applier.part("person", after=[(1, "p")]))


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("", ([], [])),
        ("position-apart", ([(1, "a", 1)], [(1, "p")])),
        ("transaction-split", ([(1, "a", 1)], [])),
    ],
)
def test_rows_and_position_apart(place: PostgresPlace, name: str, left: tuple[object, object]) -> None:
    """Cut before COMMIT, the whole product leaves nothing behind."""
    applier = Applier(place)
    with patched(broken(name)):
        cut_at(applier, "target.moved")
    assert (place.rows("item"), place.rows("person")) == left
    assert place.target().open(1).segment == 0


@pytest.mark.parametrize("name", ["", "fencing-off"])
def test_a_zombie_that_nobody_fences_writes_to_the_target(place: PostgresPlace, name: str) -> None:
    zombie = Applier(place)
    leader = Applier(place, epoch=2)
    leader.apply(leader.part("item", after=[(1, "leader", 2)]))
    with patched(broken(name)):
        if name:
            zombie.apply(zombie.part("item", after=[(1, "zombie", 1)]))
        else:
            with pytest.raises(FencedError):
                zombie.apply(zombie.part("item", after=[(1, "zombie", 1)]))
    assert place.rows("item") == ([(1, "zombie", 1)] if name else [(1, "leader", 2)])


@pytest.mark.parametrize("name", ["", "fencing-off"])
def test_a_zombie_that_nobody_fences_writes_to_the_event_log(tmp_path: Path, name: str) -> None:
    zombie = FileSegmentWriter(tmp_path, 1)
    leader = FileSegmentWriter(tmp_path, 2)
    leader.append(content(1, images((1, 0, 1, 1, "leader"))))
    with patched(broken(name)):
        if name:
            zombie.append(content(1, images((1, 0, 1, 1, "zombie"))))
        else:
            with pytest.raises(FencedError):
                zombie.append(content(1, images((1, 0, 1, 1, "zombie"))))
    batch = FileBatchReader(tmp_path).read(0, 100, 0)
    assert batch is not None
    assert pairs(batch.deltas[0].after) == [(1, "zombie" if name else "leader")]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("", [(7, "a"), (7, "b"), (8, "x"), (9, "o")], [(9, "q")]),
        ("netting-by-ends", [(8, "x"), (9, "o")], [(9, "q")]),
        ("netting-first-image", [(7, "a"), (7, "b"), (8, "x"), (9, "o")], [(9, "p")]),
        ("deletes-dropped", [(9, "o")], [(9, "q")]),
    ],
)
def test_netting(
    tmp_path: Path, name: str, before: list[tuple[int, str]], after: list[tuple[int, str]]
) -> None:
    writer = FileSegmentWriter(tmp_path, 1)
    writer.append(content(1, images((1, 0, 1, 7, "a")), dump_rows((7, "a"))))
    writer.append(content(2, images((2, 0, -1, 7, "a"), (2, 0, 1, 7, "b"), (2, 1, -1, 7, "b"))))
    writer.append(content(3, images((3, 0, -1, 8, "x"), (3, 1, -1, 9, "o"), (3, 1, 1, 9, "p"))))
    writer.append(content(4, images((4, 0, -1, 9, "p"), (4, 0, 1, 9, "q"))))
    with patched(broken(name)):
        batch = FileBatchReader(tmp_path).read(0, 100, 0)
    assert batch is not None
    (delta,) = batch.deltas
    images_before = [row for row in pairs(delta.before) if row != (9, "p")]
    assert (images_before, pairs(delta.after)) == (before, after)
