"""The client against librdkafka's own mock brokers: protocol and errors.

These brokers show aborted messages to readers of committed ones, fence nobody off, and know no administration: what
depends on that is tried on real brokers (``tests/integration/commands/test_kafka_brokers.py``).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from migrator.adapters.outputs.kafka.brokers import Brokers, Login
from migrator.adapters.outputs.kafka.client import named
from migrator.adapters.outputs.kafka.messages import Envelope, Message
from migrator.adapters.outputs.kafka.output import KafkaOutput, Place
from migrator.adapters.outputs.kafka.policies import PLACE, TABLE, check_place, check_table
from migrator.errors import OutputError
from tests.contract.event_log.eventlog_content import content, dump_rows, images, inserted
from tests.contract.outputs.kafka_model import events_of
from tests.contract.outputs.killed_history import Killer, append, life, undisturbed

PROPERTIES = {"topic.metadata.refresh.interval.ms": "1000"}


class WithoutAdministration(Brokers):
    """Has topics made by asking for them, and believes that they are as we would have made them."""

    def _make(self, topic: str, settings: Mapping[str, str]) -> None:
        self._producer.list_topics(topic, timeout=10)

    def _settings(self, topic: str) -> dict[str, str]:
        return dict(PLACE if topic == self._login.place_topic() else TABLE)


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka isn't installed")
    keeper = kafka.Producer({"bootstrap.servers": "127.0.0.1:1", "test.mock.num.brokers": 1, "log_level": 0})
    yield ",".join(f"{one.host}:{one.port}" for one in keeper.list_topics(timeout=20).brokers.values())
    keeper.flush(1)


def brokers(servers: str, prefix: str, patience_s: float = 20) -> WithoutAdministration:
    login = Login(servers, f"migrator.m.{prefix}", prefix, PROPERTIES, patience_s)
    return WithoutAdministration(login, lambda _: None)


def read(servers: str, topic: str) -> list[Message]:
    """All messages of a topic by partition."""
    kafka: Any = sys.modules["confluent_kafka"]
    reader = kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True}
    )
    partitions = list(reader.list_topics(topic, timeout=10).topics[topic].partitions)
    reader.assign([kafka.TopicPartition(topic, one, 0) for one in partitions])
    found: dict[int, list[Message]] = {one: [] for one in partitions}
    ended: set[int] = set()
    while len(ended) < len(partitions):
        message = reader.poll(10)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
            ended.add(message.partition())
        else:
            headers = tuple(message.headers() or ())
            found[message.partition()].append(Message(topic, message.key(), message.value(), "", headers))
    reader.close()
    return [one for messages in found.values() for one in messages]


def test_events_arrive_and_the_place_comes_back(servers: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    update = content(3, images((3, 0, -1, 2, "n2"), (3, 0, 1, 2, "ü"), (3, 1, -1, 1, "n1")))
    append(log, [content(1, dump_rows((9, None))), inserted(2, 1, 2), update])
    killer = Killer(None, kills=0)  # type: ignore[arg-type]
    assert life(log, KafkaOutput(brokers(servers, "there"), Envelope("there", "1.0")), killer, 0.0001)
    found = events_of(read(servers, "there.public.item"))
    assert sorted(found, key=lambda event: (event.segment, event.number)) == undisturbed(log)
    again = brokers(servers, "there")
    place = again.open()
    assert place is not None
    assert place.segment == 3
    places = read(servers, "there.migrator.place")
    assert {one.key for one in places} == {b"migrator.m.there"}
    assert json.loads(places[-1].value or b"")["segment"] == 3
    other = brokers(servers, "elsewhere")
    assert other.open() is None


def test_a_place_far_from_the_end_is_found(servers: str) -> None:
    """Two writers share the topic: the other one's messages stand behind ours."""
    first = brokers(servers, "shared")
    assert first.open() is None
    first.begin()
    first.commit(Place(1, 5))
    second = WithoutAdministration(Login(servers, "migrator.other.shared", "shared", PROPERTIES, 20), print)
    assert second.open() is None
    for number in range(1, 90):
        second.begin()
        second.commit(Place(number, number))
    assert brokers(servers, "shared").open() == Place(1, 5)


class Tail:
    """A reader at a topic's end, behind records that were aborted, and then perhaps one that wasn't."""

    def __init__(self, *committed: object):
        self._left = list(committed)

    def assign(self, _: object) -> None:
        """It reads from there on."""

    def get_watermark_offsets(self, *_: object, **__: object) -> tuple[int, int]:
        return 0, 3

    def poll(self, _: float) -> Any:
        return self._left.pop(0) if self._left else Record(Code())

    def close(self) -> None:
        """Nothing is open."""


class Code:
    def code(self) -> int:
        from confluent_kafka import KafkaError

        return int(KafkaError._PARTITION_EOF)


class Record:
    def __init__(self, error: object = None):
        self._error = error

    def error(self) -> object:
        return self._error


def test_a_topic_that_holds_nothing_but_what_was_aborted_is_new(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that is killed in its first transaction leaves records behind that nobody reads."""
    again = brokers(servers, "aborted")
    assert again.open() is None
    assert again.topic("aborted.public.item", True).partitions > 0
    monkeypatch.setattr(again, "_reader", Tail)
    assert again.topic("aborted.public.item", True).partitions > 0
    monkeypatch.setattr(again, "_reader", lambda: Tail(Record()))
    with pytest.raises(OutputError, match="the topic isn't empty"):
        again.topic("aborted.public.item", True)
    assert again.topic("aborted.public.item", False).partitions > 0, "one of ours may hold what it likes"


def test_a_topic_that_somebody_wrote_to_is_refused(servers: str) -> None:
    kafka: Any = sys.modules["confluent_kafka"]
    other = kafka.Producer({"bootstrap.servers": servers})
    other.produce("theirs.public.item", b"{}")
    other.flush(20)
    ours = brokers(servers, "theirs")
    assert ours.open() is None
    with pytest.raises(OutputError, match="the topic isn't empty"):
        ours.topic("theirs.public.item", True)


def test_brokers_that_are_not_there_are_named() -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka isn't installed")
    with pytest.raises(OutputError, match="topics can't be looked at") as caught:
        brokers("127.0.0.1:1", "nobody", patience_s=1).open()
    assert "127.0.0.1:1" in caught.value.where
    assert "Connection refused" in caught.value.cause
    assert "correct --output" in caught.value.remedy


@pytest.mark.parametrize(("room", "sent"), [({}, True), ({"queue.buffering.max.kbytes": "65536"}, False)])
def test_a_message_of_the_greatest_length_has_room(servers: str, room: dict[str, str], sent: bool) -> None:
    """Beyond the client's memory, it would be waited for in vain, as brokers that are away are."""
    long = {"message.max.bytes": "80000000", **room}
    login = Login(
        servers, f"migrator.m.long{sent}", f"long{sent}", {**PROPERTIES, **long}, 1 if not sent else 60
    )
    ours = WithoutAdministration(login, print)
    assert ours.open() is None
    ours.begin()
    message = Message(f"long{sent}.public.item", b"{}", b"x" * 79_000_000, "", ())
    if sent:
        ours.send(message)
        ours.abort()
        return
    with pytest.raises(OutputError, match="Kafka takes no messages") as caught:
        ours.send(message)
    assert "(_QUEUE_FULL)" in caught.value.cause
    assert "room for the longest message" in caught.value.remedy
    ours.abort()


def test_properties_that_no_client_has_are_named() -> None:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka isn't installed")
    login = Login("127.0.0.1:1", "w", "p", {"nonsense": "hidden-value"})
    with pytest.raises(OutputError, match="settings can't be used") as caught:
        Brokers(login, print).open()
    assert "nonsense" in caught.value.cause
    assert "hidden-value" not in str(caught.value) + repr(login)


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(OutputError, match="needs the package confluent-kafka") as caught:
        Brokers(Login("127.0.0.1:1", "w", "p"), print)
    assert caught.value.remedy == "pip install 'dbmigrator[kafka]'"


@pytest.mark.parametrize(
    ("code", "heard", "remedy"),
    [
        ("TOPIC_AUTHORIZATION_FAILED", "", "grant the login"),
        ("_TIMED_OUT", "SASL authentication error (_AUTHENTICATION)", "sasl"),
        ("_SSL", "", "security.protocol"),
        ("MSG_SIZE_TOO_LARGE", "", "max.message.bytes"),
        ("_ALL_BROKERS_DOWN", "", "correct --output"),
        ("UNKNOWN_SERVER_ERROR", "", "brokers' logs"),
        ("_FENCED", "", "stop one of them if there are two"),
        ("INVALID_PRODUCER_EPOCH", "", "stop one of them"),
    ],
)
def test_each_refusal_has_its_way_out(code: str, heard: str, remedy: str) -> None:
    class Refusal:
        def name(self) -> str:
            return code

        def str(self) -> str:
            return "it says so"

    error = named("x", "y", Refusal(), heard)
    assert remedy in error.remedy
    assert error.cause.startswith(f"it says so ({code})")


def test_a_place_must_stay_and_rows_must_not_vanish() -> None:
    check_place("p", PLACE)
    for policy in ("delete", "compact,delete"):
        with pytest.raises(OutputError, match="doesn't keep it") as caught:
            check_place("p", {"cleanup.policy": policy})
        assert "--entity-name p --add-config cleanup.policy=compact" in caught.value.remedy
    assert check_table("t", TABLE) == ""
    assert check_table("t", {"cleanup.policy": "compact", "retention.ms": "1"}) == ""
    assert "retention.ms=604800000" in check_table(
        "t", {"cleanup.policy": "delete", "retention.ms": "604800000"}
    )
    with pytest.raises(OutputError, match="lose rows"):
        check_table("t", {"cleanup.policy": "compact,delete", "retention.ms": "1"})
