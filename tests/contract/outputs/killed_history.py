"""Random histories of one table, a consumer that keeps the table by the events, and kills at named steps."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.outputs.json_lines.output import JsonLinesFile
from migrator.ports.eventlog import ReaderPlace, SegmentContent
from migrator.ports.output import EventOutput
from migrator.run.commands.event_stream import EventStream
from migrator.run.failure import Stopping
from tests.contract.event_log.eventlog_content import content, dump_rows, images
from tests.contract.outputs.json_events import json_event
from tests.contract.outputs.output_content import Event

NAME = "out"
Rows = dict[int, str | None]


class Killed(BaseException):
    """The process ends here."""


class Killer:
    """Ends the process at a random step, as often as ``kills`` says."""

    def __init__(self, choice: random.Random, kills: int = 12, share: float = 0.15) -> None:
        self._choice, self._left, self._share = choice, kills, share
        self.at: list[str] = []

    def step(self, name: str) -> None:
        if self._left and self._choice.random() < self._share:
            self._left -= 1
            self.at.append(name)
            raise Killed(name)


class KilledReader(FileSegmentReader):
    """The event log's reader, killed before or after it stores the place."""

    killer: Killer

    def store(self, place: ReaderPlace) -> None:
        self.killer.step("before the place is stored")
        super().store(place)
        self.killer.step("after the place is stored")


def history(seed: int, segments: int = 8, truncates: bool = True) -> tuple[list[SegmentContent], Rows]:
    """Segments of changes of all kinds and dump rows; what the table holds at the end."""
    choice, rows, found = random.Random(seed), Rows(), []
    for order in range(1, segments + 1):
        changes: list[tuple[int, int, int, int | None, str | None]] = []
        known = sorted(rows)
        for index in range(choice.randrange(8)):
            key, text = choice.randrange(9), choice.choice(["a", "ü", None, f"{order}.{index}"])
            if truncates and choice.random() < 0.04:
                rows.clear()
                changes.append((order, index, 0, None, None))
            elif key not in rows:
                rows[key] = text
                changes.append((order, index, 1, key, text))
            elif choice.random() < 0.4:
                changes.append((order, index, -1, key, rows.pop(key)))
            else:
                moved = choice.randrange(9, 12) if choice.random() < 0.3 else key
                moved = key if moved in rows else moved
                changes.append((order, index, -1, key, rows.pop(key)))
                rows[moved] = text
                changes.append((order, index, 1, moved, text))
        data = [images(*changes)] if changes else []
        touched = {change[3] for change in changes}
        still = [key for key in known if key in rows and key not in touched]
        if still and all(change[2] for change in changes):
            data.insert(0, dump_rows(*((key, rows[key]) for key in still)))
        found.append(content(order, *data))
    return found, rows


def rebuilt(events: Sequence[Event]) -> Rows:
    """The table as a consumer keeps it by the rules of docs/reference/events.md."""
    rows: Rows = {}
    for event in events:
        if event.op == "t":
            rows.clear()
        if event.before is not None:
            rows.pop(event.before["id"], None)
        if event.after is not None:
            rows[event.after["id"]] = event.after["name"]
    return rows


def life(log: Path, output: EventOutput, killer: Killer, commit_s: float) -> bool:
    """One process from its start to its end or kill; whether it came to its end."""
    reader = KilledReader(log, NAME)
    reader.killer = killer
    try:
        EventStream(reader, output, (), None, commit_s).run(Stopping(), follow=False)
    except Killed:
        return False
    finally:
        reader.close()  # frees the lock, as the end of a process does
    return True


def append(log: Path, contents: Sequence[SegmentContent]) -> None:
    writer = FileSegmentWriter(log, 1)
    for one in contents:
        writer.append(one)


def undisturbed(log: Path) -> list[Event]:
    """All events of an event log, as a file gets them from one process that nobody kills."""
    reader, path = FileSegmentReader(log, "reference"), log.with_name("reference.jsonl")
    output = JsonLinesFile(path)
    EventStream(reader, output).run(Stopping(), follow=False)
    output.close()
    reader.close()
    return [json_event(line) for line in path.read_bytes().splitlines(keepends=True)]
