"""The output to Kafka keeps the contract; readers of committed messages have each event once, over any kill."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from migrator.adapters.outputs.kafka.messages import Envelope
from migrator.adapters.outputs.kafka.output import KafkaOutput, Topic
from migrator.errors import OutputError
from migrator.model.progress import TableDump
from migrator.model.table import TableId
from migrator.ports.eventlog import SegmentContent
from migrator.ports.output import EventOutput
from tests.contract.event_log.eventlog_content import checkpoint, content, images, inserted
from tests.contract.outputs.kafka_model import Kafka, PlaceApart, Writer, events_of
from tests.contract.outputs.killed_history import Killer, append, history, life, rebuilt, undisturbed
from tests.contract.outputs.output_content import Event
from tests.contract.outputs.output_contract import Kit, OutputContract, OutputUnderTest


class Topics:
    """Brokers, and the output to them."""

    def __init__(self, schemas: bool) -> None:
        self.kafka = Kafka()
        self._schemas, self._start = schemas, 0

    def output(self) -> EventOutput:
        self._start = len(self.kafka.transactions)
        return KafkaOutput(Writer(self.kafka), Envelope("shop", "1.0", self._schemas))

    def events(self) -> list[Event]:
        return events_of(self.kafka.committed())

    def size(self) -> int:
        return sum(one.size() for one in self.kafka.transactions[self._start :])

    def tear(self, cut: int) -> None:
        """Killed while it sent: a transaction that didn't come whole is never committed."""
        for one in reversed(self.kafka.transactions):
            if cut <= 0:
                return
            if one.state == "committed":
                one.state, cut = "open", cut - one.size()


class TestKafka(OutputContract):
    def make(self, directory: Path) -> OutputUnderTest:
        return Topics(schemas=True)

    def test_tables_of_one_topic_are_told_by_what_is_captured_and_not_by_what_has_come(
        self, kit: Kit
    ) -> None:
        def captured(order: int, *names: str) -> SegmentContent:
            dumps = (TableDump(TableId("public", name)) for name in names)
            return replace(inserted(order, order), checkpoint=checkpoint(order, *dumps))

        kit.append(captured(1, "a_b", "a_c"))
        kit.stream()
        kit.append(captured(2, "a_b", "a b"))
        with pytest.raises(OutputError, match="two tables would have the same topic"):
            kit.stream()

    def test_a_full_disk_is_named_and_the_next_start_goes_on(self, kit: Kit) -> None:
        """Brokers that refuse in the middle: nothing of the transaction is seen."""
        kit.append(inserted(1, 1))
        kit.stream()
        kit.append(inserted(2, *range(2000)))
        topics = kit.under_test
        assert isinstance(topics, Topics)
        topics.kafka.fails_at = 1000
        with pytest.raises(OutputError, match="can't be sent"):
            kit.stream()
        assert len(kit.events()) == 1
        topics.kafka.fails_at = 1 << 60
        kit.stream()
        assert [(one.segment, one.number) for one in kit.events()] == [(1, 0), *((2, n) for n in range(2000))]

    def test_whoever_opens_fences_off_the_one_before(self) -> None:
        topics = Topics(schemas=True)
        first, second = topics.output(), topics.output()
        first.open(None)
        second.open(None)
        cluster = Writer(topics.kafka)
        with pytest.raises(OutputError, match="another process writes these topics now"):
            cluster.begin()

    @pytest.mark.parametrize("topic", [Topic(3, False), Topic(1, True)], ids=["partitions", "compacted"])
    def test_a_truncate_is_refused_where_it_would_mislead(self, kit: Kit, topic: Topic) -> None:
        assert isinstance(kit.under_test, Topics)
        kit.under_test.kafka.topics["shop.public.item"] = topic
        kit.append(inserted(1, 1), content(2, images((2, 0, 0, None, None))))
        with pytest.raises(OutputError, match="a TRUNCATE can't be written") as caught:
            kit.stream()
        assert caught.value.where == "shop.public.item"
        assert "--prefix" in caught.value.remedy
        assert kit.events() == [], "not a part of what was to be written"

    def test_a_cluster_that_lacks_what_was_committed_is_named(self, kit: Kit) -> None:
        kit.append(inserted(1, 1))
        kit.stream()
        assert isinstance(kit.under_test, Topics)
        kit.under_test.kafka.transactions.clear()
        with pytest.raises(OutputError, match="what was committed to Kafka is gone"):
            kit.stream()


class TestKafkaWithoutSchemas(TestKafka):
    def make(self, directory: Path) -> OutputUnderTest:
        return Topics(schemas=False)


def played(folder: Path, seed: int, writer: type[Writer] = Writer) -> tuple[bool, bool, list[str]]:
    """Whether a reader has the table, whether it has each event once, and where the process was killed."""
    choice = random.Random(seed)
    contents, rows = history(seed)
    append(folder / "log", contents)
    killer = Killer(choice, share=0.05)
    kafka = Kafka(step=killer.step)
    for _ in range(100):
        output = KafkaOutput(writer(kafka), Envelope("shop", "1.0", seed % 2 == 0))
        if life(folder / "log", output, killer, choice.choice([0.0001, 60.0])):
            found = events_of(kafka.committed())
            return rebuilt(found) == rows, found == undisturbed(folder / "log"), killer.at
    raise AssertionError("it never came to its end")


def test_killed_anywhere_readers_of_committed_messages_have_each_event_once(tmp_path: Path) -> None:
    killed: set[str] = set()
    for seed in range(15):
        same, once, at = played(tmp_path / str(seed), seed)
        assert (same, once) == (True, True), f"seed {seed}, killed {at}"
        killed |= set(at)
    assert len(killed) == 5, "a step at which nobody was killed proves nothing"


def test_with_its_place_in_a_transaction_of_its_own_events_come_twice(tmp_path: Path) -> None:
    found = [played(tmp_path / str(seed), seed, PlaceApart)[1] for seed in range(12)]
    assert found.count(False) >= 2
