"""Which event log goes on from a ledger: lineage decides, not numbers."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.event_log.files.batch_reader import FileBatchReader
from migrator.adapters.event_log.files.layout import Layout
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.event_log.files.set_aside import set_aside
from migrator.errors import DamageError, EventLogError, TargetError
from migrator.model.ledger import Ledger
from migrator.model.lineage import continues, due
from migrator.model.segment import Link, Manifest
from migrator.run.lead.resume import resume
from tests.contract.event_log.eventlog_content import checkpoint, content, images

FORMATS = Path(__file__).parents[3] / "formats"


class Machine:
    """A state folder; what it writes differs from what others write."""

    def __init__(self, folder: Path, ledger: Ledger, epoch: int):
        self.folder = folder
        self.writer = FileSegmentWriter(folder, epoch, after=ledger.segment, applied=ledger.segment_id)
        self.reader = FileBatchReader(folder)

    def write(self, *orders: int, tag: str = "") -> list[Manifest]:
        return [self.writer.append(content(n, images((n, 0, 1, n, tag)))) for n in orders]

    def resumed(self, ledger: Ledger) -> object:
        return resume(ledger, self.writer.last(), self.reader)


def applied(ledger: Ledger, manifest: Manifest) -> Ledger:
    return replace(ledger, segment=manifest.number, checkpoint=manifest.checkpoint, segment_id=manifest.id)


EMPTY = Ledger("m", 1, 0, None)


@pytest.fixture
def one(tmp_path: Path) -> tuple[Machine, list[Manifest]]:
    """Machine 1 with five segments, killed."""
    machine = Machine(tmp_path / "one", EMPTY, 1)
    return machine, machine.write(10, 20, 30, 40, 50, tag="one")


def test_each_segment_names_the_one_before_and_is_read_back_as_it_was(
    one: tuple[Machine, list[Manifest]],
) -> None:
    machine, written = one
    assert [each.previous for each in written] == ["", *(each.id for each in written[:-1])]
    assert len({each.id for each in written}) == 5
    assert list(machine.reader.manifests(0)) == written
    assert machine.reader.read(1, 10, 0.0).link == Link(2, written[0].id, written[4].id)  # type: ignore[union-attr]
    again = FileSegmentWriter(machine.folder, 2)
    assert again.append(content(60)).previous == written[4].id


def test_a_machine_that_comes_back_after_another_went_on_is_refused(
    tmp_path: Path, one: tuple[Machine, list[Manifest]]
) -> None:
    """The worst fault found: by number its own segments looked like the continuation."""
    first, written = one
    ledger = applied(EMPTY, written[1])
    assert first.resumed(ledger) == written[4].checkpoint, "the control: alone it goes on"
    second = Machine(tmp_path / "two", ledger, 2)
    assert second.resumed(ledger) == ledger.checkpoint
    for manifest in second.write(21, 22, tag="two"):
        assert manifest.previous == ledger.segment_id
        ledger = applied(ledger, manifest)
        with pytest.raises(EventLogError, match="isn't the one that the target goes on from") as caught:
            first.resumed(ledger)
        assert f"segment {manifest.number} here isn't the one" in caught.value.where
        assert second.resumed(ledger) == second.writer.last().checkpoint  # type: ignore[union-attr]
        assert set_aside(shutil.copytree(first.folder, tmp_path / f"aside{manifest.number}"), ledger)


def test_what_was_released_still_tells_the_lineage(
    tmp_path: Path, one: tuple[Machine, list[Manifest]]
) -> None:
    first, written = one
    first.reader.release(3)
    assert first.resumed(applied(EMPTY, written[2])) == written[4].checkpoint
    second = Machine(tmp_path / "two", applied(EMPTY, written[1]), 2)
    (third,) = second.write(21, tag="two")
    with pytest.raises(EventLogError, match="isn't the one") as caught:
        first.resumed(applied(EMPTY, third))
    assert "segment 4 here doesn't follow the segment 3" in caught.value.where


def test_a_copied_state_folder_is_one_log_until_both_write(
    tmp_path: Path, one: tuple[Machine, list[Manifest]]
) -> None:
    first, written = one
    ledger = applied(EMPTY, written[3])
    copy = Machine(Path(shutil.copytree(first.folder, tmp_path / "copy")), ledger, 2)
    assert copy.resumed(ledger) == first.resumed(ledger)
    (sixth,) = copy.write(60, tag="copy")
    first.write(60, tag="first")
    assert copy.resumed(applied(ledger, sixth)) == sixth.checkpoint
    with pytest.raises(EventLogError, match="isn't the one"):
        first.resumed(applied(ledger, sixth))


def test_a_restored_target_goes_on_from_what_the_log_still_holds_or_is_told_what_is_gone(
    one: tuple[Machine, list[Manifest]],
) -> None:
    first, written = one
    first.reader.release(2)
    assert first.resumed(applied(EMPTY, written[1])) == written[4].checkpoint
    with pytest.raises(EventLogError, match=r"segments 2 to 2 are no longer in the event log") as caught:
        first.resumed(applied(EMPTY, written[0]))
    assert "move the event log's directory away" in caught.value.remedy
    with pytest.raises(EventLogError, match=r"segments 1 to 2 are no longer in the event log") as caught:
        first.resumed(EMPTY)
    assert "put the ledger's row back" in caught.value.remedy
    assert "start the migration anew (docs/how-to/start-anew.md)" in caught.value.remedy
    with pytest.raises(EventLogError, match=r"ends at segment 5, the ledger has applied segment 9"):
        first.resumed(replace(applied(EMPTY, written[4]), segment=9))


def test_segments_of_two_logs_in_one_folder_are_refused(
    tmp_path: Path, one: tuple[Machine, list[Manifest]]
) -> None:
    first, written = one
    second = Machine(tmp_path / "two", applied(EMPTY, written[1]), 1)
    second.write(30, 40, tag="two")
    for folder in ("segments", "data"):
        for path in (second.folder / folder).iterdir():
            if path.name.startswith("0000000003"):
                shutil.copy(path, first.folder / folder / path.name)
    with pytest.raises(EventLogError, match="segment 4 was written behind another segment"):
        FileBatchReader(first.folder).read(2, 10, 0.0)


@pytest.mark.parametrize("number", ["1", "2", "3"])
def test_logs_and_ledgers_of_older_formats_go_on_and_take_a_lineage_from_then_on(
    tmp_path: Path, number: str
) -> None:
    folder = Path(shutil.copytree(FORMATS / number / "eventlog", tmp_path / "log"))
    reader = FileBatchReader(folder)
    manifests = list(reader.manifests(0))
    assert {each.previous for each in manifests} == {""}
    newest = manifests[-1]
    ledger = replace(applied(EMPTY, newest), segment_id="", epoch=newest.epoch)
    writer = FileSegmentWriter(folder, newest.epoch + 1, after=ledger.segment)
    assert resume(ledger, writer.last(), reader) == newest.checkpoint
    assert writer.append(content(99)).previous == newest.id
    with pytest.raises(EventLogError, match="isn't the one"):
        resume(replace(ledger, checkpoint=checkpoint(7777)), writer.last(), reader)


def test_damage_of_what_was_applied_stops_nobody(one: tuple[Machine, list[Manifest]]) -> None:
    first, written = one
    path = Layout.of(first.folder).manifest(2)
    path.write_bytes(b"torn")
    assert first.resumed(applied(EMPTY, written[1])) == written[4].checkpoint
    with pytest.raises(DamageError):
        first.resumed(applied(EMPTY, written[0]))


def test_the_stored_chain_is_part_of_what_a_segment_is(one: tuple[Machine, list[Manifest]]) -> None:
    first, written = one
    line = Layout.of(first.folder).manifest(3).read_bytes().partition(b"\n")[0]
    assert json.loads(line)["previous"] == written[1].id
    assert "id" not in json.loads(line), "it is the checksum of this line"


@given(
    applied_number=st.integers(0, 4),
    begun=st.integers(0, 4),
    ours=st.integers(1, 4),
    theirs=st.integers(1, 4),
    released=st.integers(0, 3),
)
def test_a_log_goes_on_exactly_if_it_holds_the_ledgers_segment(
    applied_number: int, begun: int, ours: int, theirs: int, released: int
) -> None:
    """Two logs part behind ``begun`` segments; the ledger is moved by either. Compared with the names
    themselves."""
    common = [f"c{n}" for n in range(1, begun + 1)]
    mine = common + [f"a{n}" for n in range(begun + 1, begun + ours + 1)]
    other = common + [f"b{n}" for n in range(begun + 1, begun + theirs + 1)]
    for moved in (mine, other):
        if applied_number > len(moved):
            continue
        name = moved[applied_number - 1] if applied_number else ""
        ledger = replace(EMPTY, segment=applied_number, segment_id=name, checkpoint=checkpoint(1))
        log = {n: manifest(n, mine) for n in range(1, len(mine) + 1) if n > min(released, len(mine) - 1)}
        told = continues(ledger, log[len(mine)], log.get(applied_number), log.get(applied_number + 1))
        holds = applied_number == 0 or mine[:applied_number] == moved[:applied_number]
        seen = applied_number in log or applied_number + 1 in log
        assert bool(told) == (not holds) or not seen
        if len(mine) > applied_number and holds:
            previous = mine[applied_number - 1] if applied_number else ""
            assert due(ledger, len(mine), Link(applied_number + 1, previous, mine[-1]))
        elif not holds and len(mine) > applied_number:
            with pytest.raises(TargetError):
                due(ledger, len(mine), Link(applied_number + 1, mine[applied_number - 1], mine[-1]))


def manifest(number: int, names: list[str]) -> Manifest:
    previous = names[number - 2] if number > 1 else ""
    return Manifest(number, 1, checkpoint(number), True, 0, 1, 0, (), id=names[number - 1], previous=previous)
