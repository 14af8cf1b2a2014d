"""Tables whose names become one topic are refused before a message of either is sent, whoever sends them."""

from __future__ import annotations

import pytest

from migrator.adapters.outputs.kafka.messages import Envelope
from migrator.adapters.outputs.kafka.output import KafkaOutput
from migrator.errors import OutputError
from migrator.model.position import Position
from migrator.model.table import TableId
from migrator.ports.output import SegmentEvents
from tests.contract.outputs.kafka_model import Kafka, Writer

OURS = TableId("public", "a_b")


def segment(*tables: TableId) -> SegmentEvents:
    """A segment without an event: the tables are those that are captured."""
    return SegmentEvents(1, Position(1, "1"), 0, (), frozenset(tables))


def output(kafka: Kafka) -> KafkaOutput:
    found = KafkaOutput(Writer(kafka), Envelope("shop", "1.0"))
    found.open(None)
    return found


@pytest.mark.parametrize("name", ["a b", "a/b", "a\nb", "aöb", 'a"b'])
def test_a_table_without_an_event_is_looked_at_as_well(name: str) -> None:
    """Its events may have been written by the process before, or be those of the next one."""
    with pytest.raises(OutputError, match="two tables would have the same topic") as refused:
        output(Kafka()).write(segment(TableId("public", name), OURS))
    assert refused.value.where == "shop.public.a_b"
    output(Kafka()).write(segment(TableId("public", f"{name}2"), OURS))  # the control


def test_no_table_gets_the_topic_of_the_place() -> None:
    with pytest.raises(OutputError, match="two tables would have the same topic"):
        output(Kafka()).write(segment(TableId("migrator", "place")))
    output(Kafka()).write(segment(TableId("migrator", "places")))  # the control


def test_a_table_that_is_captured_later_is_looked_at_when_it_comes() -> None:
    ours = output(Kafka())
    ours.write(segment(OURS))
    ours.write(segment(OURS))
    with pytest.raises(OutputError, match="the same topic"):
        ours.write(segment(OURS, TableId("public", "a b")))
