"""Real brokers: exactly once over kills, fencing and topics' settings. Where Docker answers, or some are named."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from migrator.adapters.outputs.kafka.brokers import Brokers, Login
from migrator.adapters.outputs.kafka.messages import Envelope, Message
from migrator.adapters.outputs.kafka.output import KafkaOutput, Place
from migrator.errors import OutputError
from tests.contract.outputs.kafka_model import events_of
from tests.contract.outputs.killed_history import Killer, append, history, life, rebuilt, undisturbed

pytestmark = [pytest.mark.integration, pytest.mark.slow]


BROKERS = os.environ.get("MIGRATOR_TEST_KAFKA", "")
"""Addresses of brokers that run already and may be written to, in place of Docker's."""


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    pytest.importorskip("confluent_kafka", reason="confluent-kafka isn't installed")
    if BROKERS:
        yield BROKERS
        return
    docker = pytest.importorskip("docker", reason="Docker's client isn't installed")
    module = pytest.importorskip("testcontainers.community.kafka", reason="testcontainers isn't installed")
    try:
        docker.from_env().ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"Docker doesn't answer, so exactly once is unchecked on real brokers: {error}")
    with module.KafkaContainer().with_kraft() as container:
        yield str(container.get_bootstrap_server())


class KilledBrokers(Brokers):
    """Killed before and behind what changes something at the brokers."""

    killer: Killer

    def send(self, message: Message) -> None:
        self.killer.step("before a message is sent")
        super().send(message)

    def commit(self, place: Place) -> None:
        self.killer.step("before a transaction is committed")
        super().commit(place)
        self.killer.step("after a transaction was committed")


def login(servers: str, prefix: str) -> Login:
    return Login(servers, f"migrator.m.{prefix}", prefix, {}, 60)


def committed(servers: str, topic: str) -> list[Message]:
    """What a reader of committed messages sees of a topic with one partition."""
    import confluent_kafka as kafka

    settings = {"bootstrap.servers": servers, "group.id": "reader", "enable.partition.eof": True}
    reader: Any = kafka.Consumer({**settings, "isolation.level": "read_committed"})
    reader.assign([kafka.TopicPartition(topic, 0, 0)])
    found: list[Message] = []
    while True:
        message = reader.poll(30)
        assert message is not None
        if message.error() is not None:
            assert message.error().code() == kafka.KafkaError._PARTITION_EOF
            reader.close()
            return found
        headers = tuple(message.headers() or ())
        found.append(Message(topic, message.key(), message.value(), "", headers))


def test_killed_anywhere_readers_have_each_event_once(servers: str, tmp_path: Path) -> None:
    for seed in range(5):
        folder, prefix = tmp_path / str(seed), f"killed{seed}"
        choice = random.Random(seed)
        contents, rows = history(seed)
        append(folder / "log", contents)
        killer = Killer(choice, share=0.05)
        ended = False
        while not ended:
            cluster = KilledBrokers(login(servers, prefix), print)
            cluster.killer = killer
            output = KafkaOutput(cluster, Envelope(prefix, "1.0"))
            ended = life(folder / "log", output, killer, choice.choice([0.0001, 60.0]))
        found = events_of(committed(servers, f"{prefix}.public.item"))
        assert rebuilt(found) == rows, f"seed {seed}, killed {killer.at}"
        assert found == undisturbed(folder / "log"), f"seed {seed}, killed {killer.at}"


def test_the_one_before_is_fenced_off(servers: str) -> None:
    first, second = (Brokers(login(servers, "fenced"), print) for _ in range(2))
    assert first.open() is None
    first.topic("fenced.public.item", True)
    first.begin()
    first.send(Message("fenced.public.item", b"1", b"{}", "c"))
    assert second.open() is None
    with pytest.raises(OutputError, match="another process writes these topics now"):
        first.commit(Place(1, 1))
    assert committed(servers, "fenced.public.item") == []


def test_topics_with_settings_that_lose_rows_are_named(servers: str) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": servers})
    place = NewTopic("loses.migrator.place", 1, 1, config={"cleanup.policy": "delete"})
    table = NewTopic(
        "ages.public.item", 2, 1, config={"cleanup.policy": "compact,delete", "retention.ms": "1000"}
    )
    for created in admin.create_topics([place, table]).values():
        created.result()
    with pytest.raises(OutputError, match="doesn't keep it"):
        Brokers(login(servers, "loses"), print).open()
    brokers = Brokers(login(servers, "ages"), print)
    brokers.open()
    with pytest.raises(OutputError, match="would lose rows"):
        brokers.topic("ages.public.item", True)
