"""Messages in transactions, each of which also holds the place up to which it comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from migrator.adapters.outputs.kafka.messages import Envelope, Message, place_topic
from migrator.columnar.events import TRUNCATE
from migrator.errors import OutputError
from migrator.model.table import TableId
from migrator.ports.output import WHOLE, Held, SegmentEvents


@dataclass(frozen=True, slots=True)
class Place:
    """The place of one committed transaction: its number from 1, and the last segment that it has."""

    number: int
    segment: int


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic as it is: ``compacted`` where only the last message of each key stays."""

    partitions: int
    compacted: bool


class Cluster(Protocol):
    """The servers, as one writer sees them. Whatever they refuse is an ``OutputError``."""

    def open(self) -> Place | None:
        """Fences off whoever wrote before, ends what he left open, and reads the place that is committed."""
        ...

    def topic(self, name: str, new: bool) -> Topic:
        """Makes a topic that is missing, and looks at one that exists; ``new``: nobody may have written to it."""
        ...

    def begin(self) -> None:
        """Begins a transaction."""
        ...

    def send(self, message: Message) -> None:
        """Adds a message to the transaction; waits while too many are on their way."""
        ...

    def commit(self, place: Place) -> None:
        """Adds the place, and commits: all of it is visible, or nothing."""
        ...

    def abort(self) -> None:
        """Gives the transaction up."""
        ...

    def close(self) -> None:
        """Frees what is open."""
        ...


class KafkaOutput:
    """An ``EventOutput`` to topics; the mark is the number of the last transaction.

    The place is written in the transaction that it speaks of. So what ``open`` reads is what consumers that read
    committed messages see, whatever the process before was killed at.
    """

    def __init__(self, cluster: Cluster, envelope: Envelope) -> None:
        self._cluster = cluster
        self._envelope = envelope
        self._topics: dict[str, Topic] = {}
        self._checked: frozenset[TableId] = frozenset()
        self._number = 0
        self._fresh = self._begun = False

    def open(self, mark: int | None) -> Held | None:
        """Takes the topics over and reads how far they are (see the port)."""
        place = self._cluster.open()
        if place is not None and mark is None:
            raise OutputError(
                "the output isn't empty, and not known as an output of this migration",
                where=f"topics {self._envelope.prefix}.*",
                cause=f"transaction {place.number:,}, up to segment {place.segment:,}, is committed there",
                remedy="choose another --prefix, or delete these topics and the one with the place",
            )
        number = place.number if place is not None else 0
        if number < (mark or 0):
            raise OutputError(
                "what was committed to Kafka is gone",
                where=f"topics {self._envelope.prefix}.*",
                cause=f"transaction {mark:,} was committed, and {number:,} is the last one there",
                remedy="give --output the cluster that was written to; if its topics are lost, begin anew:"
                " `migrator events --forget` with the same --output, then another --prefix",
            )
        self._number, self._fresh = number, not number
        return Held(place.segment, WHOLE) if place is not None and number > (mark or 0) else None

    def write(self, events: SegmentEvents) -> None:
        """Sends the events' messages. Raises ``OutputError``."""
        self._check_tables(events.captured | {table.schema.id for table in events.tables})
        for message in self._envelope.messages(events):
            self._check(message)
            if not self._begun:
                self._cluster.begin()
                self._begun = True
            self._cluster.send(message)

    def commit(self, segment: int) -> int:
        """Commits what was sent, with its place; returns the transaction's number."""
        if self._begun:
            self._cluster.commit(Place(self._number + 1, segment))
            self._number += 1
            self._begun = False
        return self._number

    def close(self) -> None:
        """Gives up what wasn't committed."""
        if self._begun:
            self._begun = False
            self._cluster.abort()
        self._cluster.close()

    def forget(self) -> None:
        """Topics are all that there is, and stay."""

    def _check_tables(self, tables: frozenset[TableId]) -> None:
        """Refuses tables of one topic, also where another process is to write, or wrote, those of the other."""
        if tables <= self._checked:
            return
        topics = {place_topic(self._envelope.prefix): "the output's own place"}
        for table in sorted(tables, key=str):
            topic = self._envelope.topic(table)
            other = topics.setdefault(topic, str(table))
            if other != str(table):
                raise OutputError(
                    "two tables would have the same topic",
                    where=topic,
                    cause=f"{other} and {table}: characters that topics can't have become _",
                    remedy="write one of them to an output of its own, with --tables and another --prefix",
                )
        self._checked = tables

    def _check(self, message: Message) -> None:
        found = self._topics.get(message.topic)
        if found is None:
            found = self._topics[message.topic] = self._cluster.topic(message.topic, self._fresh)
        if message.op != TRUNCATE or (found.partitions == 1 and not found.compacted):
            return
        raise OutputError(
            "a TRUNCATE can't be written to this topic",
            where=message.topic,
            cause="it is compacted, and takes no message without a key"
            if found.compacted
            else f"it has {found.partitions} partitions, whose messages have no order among each other",
            remedy="have a topic of one partition with cleanup.policy=delete under another --prefix, or leave the"
            " table out (--tables)",
        )
