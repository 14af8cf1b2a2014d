"""What the log reader is told again: all it has noted, but of tables whose rows were asked for since."""

from __future__ import annotations

import queue

import pytest

from migrator.adapters.memory.eventlog import MemoryEventLog, MemorySegmentWriter
from migrator.adapters.memory.requests import MemoryRequests
from migrator.core.capture import Capture
from migrator.model.codecs.codec import checkpoint_from_json, checkpoint_to_json
from migrator.model.limits import CaptureLimits
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import WHOLE, Doubt, RequestBook, Scope
from migrator.model.table import TableId
from migrator.ports.log_notes import LogNotes, Notes
from migrator.run.capture.attempt import Attempt
from migrator.run.capture.steps import CaptureSteps, SourcePorts
from migrator.run.lead.resume import asked_again, begin_notes
from migrator.run.progress import Progress
from scenarios.simulation.clients import initial_rows
from scenarios.simulation.source import Link, SimulatedChunkReader, SimulatedLogReader, Source
from scenarios.simulation.tables import REGISTER, SCHEMAS

T, U = TableId("s", "t"), TableId("s", "u")
NOTES = ((T, "of t"), (U, "of\x00u"))
GIVEN = Checkpoint(Position(1, "one"), notes=NOTES)


def notes_to_keep(given: Checkpoint, book: RequestBook) -> Notes:
    """What a reader is told again."""
    notes = LogNotes()
    notes.begin(given.notes, asked_again(given, book))
    return notes.kept()


def test_notes_survive_being_stored_and_older_checkpoints_have_none() -> None:
    stored = checkpoint_to_json(GIVEN)
    assert checkpoint_from_json(stored) == GIVEN
    del stored["notes"]
    assert checkpoint_from_json(stored).notes == ()


def test_a_request_for_a_table_takes_its_note_away() -> None:
    assert notes_to_keep(GIVEN, RequestBook()) == NOTES
    book = RequestBook().start((T,), WHOLE)
    assert notes_to_keep(GIVEN, book) == NOTES[1:]
    assert notes_to_keep(GIVEN, book.pause("r1")) == NOTES[1:], "it will be read when it goes on"
    assert notes_to_keep(GIVEN, book.cancel("r1")) == NOTES


def test_a_table_that_joins_has_no_note_and_a_replaced_one_loses_it_once_another_is_found() -> None:
    notes = LogNotes()
    begin_notes(notes, GIVEN, RequestBook(), replaced=frozenset((T,)), new=frozenset((U,)))
    assert notes.kept() == NOTES[:1]
    assert notes.consented(T)
    assert notes.consented(U)
    notes.replace(T)
    assert notes.kept() == ()
    assert notes.given_up(T) == "of t"
    assert notes.asked_for(T)
    notes.begun()
    assert not notes.consented(T)
    assert notes.replaced() == {T}


@pytest.mark.parametrize("chunks", [0, 1])
def test_a_request_that_was_known_before_is_not_meant(chunks: int) -> None:
    """It was made for something else, and what it has read is as old as the note."""
    book = RequestBook().start((T, U), WHOLE)
    begun = Checkpoint(
        Position(1, "one"), requests=(TableDump(T, ("5",), chunks=chunks, request="r1.1"),), notes=NOTES
    )
    assert notes_to_keep(begun, book) == NOTES[:1]
    assert notes_to_keep(begun, book.cancel("r1").restart("r1")) == (), "begun anew"


def test_a_repair_of_some_keys_is_not_meant() -> None:
    book = RequestBook().start((T,), WHOLE, (Doubt("target", (("1",),)),))
    assert notes_to_keep(GIVEN, book) == NOTES


def test_a_note_alone_is_written_though_the_log_brings_nothing() -> None:
    """A label may be seen long after the last change that has it was written, and be renamed after the run."""
    notes, writer = LogNotes(), MemorySegmentWriter(MemoryEventLog(), 1)
    link, limits = Link(Source(False, initial_rows()), 10, True, records=10), CaptureLimits()
    steps = CaptureSteps(
        SourcePorts(lambda: SimulatedLogReader(link), lambda: SimulatedChunkReader(link), None, notes=notes),
        Attempt(SCHEMAS, None, limits, "1-a"),
        writer,
        MemoryRequests(),
        queue.Queue(),
        Progress(),
    )
    steps.write()
    assert not steps.due(limits.heartbeat_s), "the control: there is nothing to write"
    notes.note(T, "seen late")
    assert not steps.due(0.0)
    assert steps.due(limits.heartbeat_s)
    steps.write()
    last = writer.last()
    assert last is not None
    assert last.checkpoint.notes == ((T, "seen late"),)
    assert not steps.due(limits.heartbeat_s)


def test_doubts_go_with_the_segment_that_settles_their_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The target decides about them in that batch; without them a repair would remove nothing and be called
    done."""
    doubts = (Doubt("target", (("5",),)),)
    requests, writer = MemoryRequests(), MemorySegmentWriter(MemoryEventLog(), 1)
    requests.update(lambda book: book.start((REGISTER.id,), Scope(keys=(("1",),)), doubts))
    link = Link(Source(False, initial_rows()), 10, True, records=10)
    steps = CaptureSteps(
        SourcePorts(lambda: SimulatedLogReader(link), lambda: SimulatedChunkReader(link), None),
        Attempt(SCHEMAS, None, CaptureLimits(), "1-a"),
        writer,
        requests,
        queue.Queue(),
        Progress(),
    )
    (request,) = requests.read().requests
    steps.write()
    monkeypatch.setattr(Capture, "settles", lambda core: request.name())
    steps.write()
    last = writer.last()
    assert last is not None
    assert last.doubts == doubts
