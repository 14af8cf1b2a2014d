"""A cluster of brokers through confluent-kafka: transactions, topics, and the place."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from migrator.adapters.outputs.kafka.client import named, package
from migrator.adapters.outputs.kafka.messages import Message, place_topic
from migrator.adapters.outputs.kafka.output import Place, Topic
from migrator.adapters.outputs.kafka.policies import (
    PLACE,
    TABLE,
    check_place,
    check_table,
    is_compacted,
)
from migrator.errors import OutputError

_REQUEST_S = 30.0
_TRANSACTION_MS = 120_000
_WAITING_KB = 64 << 10
_ROOM_BYTES = 1 << 20
"""Memory of the client beside one message of the greatest length."""
_FIRST_LOOK, _FURTHER = 64, 8
"""Messages at the end of the topic with the place that are read first, and how many times more if it isn't there."""


@dataclass(frozen=True, slots=True)
class Login:
    """The writer, and the brokers that it writes to.

    Attributes:
        servers: host:port, comma separated.
        client: properties of the client, which may be secret.
        writer: transactional id; a process that opens under it fences off the one before.
        prefix: of the topics.
        patience_s: brokers that don't answer are waited for so long.
    """

    servers: str
    writer: str
    prefix: str
    client: Mapping[str, str] = field(default_factory=dict, repr=False)
    patience_s: float = 300.0

    def place_topic(self) -> str:
        """The topic that holds the place."""
        return place_topic(self.prefix)


class Brokers:
    """``output.Cluster`` over real brokers. One thread uses it.

    Args:
        login: who writes where.
        note: is told what users should know of a topic.
    """

    def __init__(self, login: Login, note: Callable[[str], None]) -> None:
        self._login = login
        self._note = note
        self._request_s = min(_REQUEST_S, login.patience_s)
        self._kafka = package()
        self._heard = self._failed = ""
        self._producer: Any = None
        self._admin: Any = None

    def open(self) -> Place | None:
        """Fences, ends what was left open, reads the place (see the port)."""
        login = self._login
        settings = {
            "enable.idempotence": True,
            "queue.buffering.max.kbytes": _waiting_kb(login.client),
            "linger.ms": 20,
            "transaction.timeout.ms": _TRANSACTION_MS,
            **self._client(),
            "transactional.id": login.writer,
        }
        try:
            self._producer = self._kafka.Producer(settings)
        except self._kafka.KafkaException as error:
            raise self._error("the client's settings can't be used", "--client", error) from error
        self._admin = package("confluent_kafka.admin").AdminClient(self._client())
        topic = login.place_topic()
        self._look(topic, PLACE)
        check_place(topic, self._settings(topic))
        try:
            self._producer.init_transactions(login.patience_s)
        except self._kafka.KafkaException as error:
            raise self._error("Kafka lets nobody write in transactions", login.servers, error) from error
        return self._read_place(topic)

    def topic(self, name: str, new: bool) -> Topic:
        """Makes or checks a table's topic (see the port)."""
        partitions = self._look(name, TABLE)
        settings = self._settings(name)
        if warning := check_table(name, settings):
            self._note(warning)
        if new and any(self._has_committed(name, partition) for partition in range(partitions)):
            raise OutputError(
                "the topic isn't empty, and not known as an output of this migration",
                where=name,
                cause="it holds messages",
                remedy="choose another --prefix, or delete the topic",
            )
        return Topic(partitions, is_compacted(settings))

    def begin(self) -> None:
        """Begins a transaction."""
        try:
            self._producer.begin_transaction()
        except self._kafka.KafkaException as error:
            raise self._error("a transaction can't be begun", self._login.servers, error) from error

    def send(self, message: Message) -> None:
        """Hands a message to the client; waits while its memory is full."""
        self._produce(message.topic, message.key, message.value, list(message.headers))

    def commit(self, place: Place) -> None:
        """Commits all that was sent, with its place."""
        value = json.dumps({"number": place.number, "segment": place.segment}).encode()
        self._produce(self._login.place_topic(), self._login.writer.encode(), value, [], 0)
        until = time.monotonic() + self._login.patience_s
        while True:
            try:
                self._producer.commit_transaction(self._request_s)
                return
            except self._kafka.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > until:
                    raise self._error(
                        "a transaction can't be committed", self._login.servers, error
                    ) from error

    def abort(self) -> None:
        """Gives the transaction up; whoever opens next would do it as well."""
        with suppress(self._kafka.KafkaException):
            self._producer.purge()
            self._producer.abort_transaction(self._request_s)

    def close(self) -> None:
        """Leaves the client to its end: it has nothing to send any more."""
        self._producer = self._admin = None

    # -- steps --------------------------------------------------------------------------------------------------

    def _client(self) -> dict[str, Any]:
        return {
            **self._login.client,
            "bootstrap.servers": self._login.servers,
            "error_cb": self._hear,
            "log_level": 0,
        }

    def _hear(self, error: Any) -> None:
        self._heard = f"{error.str()} ({error.name()})"

    def _error(self, what: str, where: str, error: Exception) -> OutputError:
        if self._producer is not None:
            self._producer.poll(0)  # what the client has heard comes to us here only
        return named(what, where, error, self._failed or self._heard)

    def _produce(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes]],
        partition: int = -1,
    ) -> None:
        until = time.monotonic() + self._login.patience_s
        while True:
            try:
                self._producer.produce(
                    topic, value, key, partition, on_delivery=self._delivered, headers=headers
                )
                self._producer.poll(0)
                return
            except BufferError as error:
                if time.monotonic() > until:
                    raise named("Kafka takes no messages", topic, error, self._heard) from error
                self._producer.poll(0.1)
            except self._kafka.KafkaException as error:
                raise self._error("a message can't be sent", topic, error) from error

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and not self._failed:
            self._failed = f"{message.topic()}: {error.str()} ({error.name()})"

    def _look(self, topic: str, settings: Mapping[str, str]) -> int:
        """Number of partitions; a missing topic is made. Asking for one by name could make it with other settings."""
        try:
            found = self._producer.list_topics(timeout=self._request_s).topics.get(topic)
            if found is None or found.error is not None:
                self._make(topic, settings)
                return 1
            return len(found.partitions)
        except self._kafka.KafkaException as error:
            raise self._error("Kafka's topics can't be looked at", self._login.servers, error) from error

    def _make(self, topic: str, settings: Mapping[str, str]) -> None:
        new = package("confluent_kafka.admin").NewTopic(
            topic, num_partitions=1, replication_factor=-1, config=dict(settings)
        )
        try:
            self._admin.create_topics([new], request_timeout=self._request_s)[topic].result()
        except self._kafka.KafkaException as error:
            raise self._error("a topic can't be made", topic, error) from error

    def _settings(self, topic: str) -> dict[str, str]:
        admin = package("confluent_kafka.admin")
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        try:
            found = self._admin.describe_configs([resource], request_timeout=self._request_s)[
                resource
            ].result()
        except self._kafka.KafkaException as error:
            raise self._error("a topic's settings can't be looked at", topic, error) from error
        return {name: str(entry.value) for name, entry in found.items() if entry.value is not None}

    def _reader(self) -> Any:
        return self._kafka.Consumer(
            {
                **self._client(),
                "group.id": f"{self._login.writer}.place",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "error",
            }
        )

    def _ends(self, topic: str, partition: int) -> tuple[int, int]:
        reader = self._reader()
        try:
            low, high = reader.get_watermark_offsets(
                self._kafka.TopicPartition(topic, partition), timeout=self._request_s
            )
            return int(low), int(high)
        except self._kafka.KafkaException as error:
            raise self._error("a topic's end can't be looked at", topic, error) from error
        finally:
            reader.close()

    def _read_place(self, topic: str) -> Place | None:
        """The last committed place of this writer, looked for from the end backwards."""
        low, high = self._ends(topic, 0)
        look = _FIRST_LOOK
        while True:
            start = max(low, high - look)
            found = self._last_from(topic, start) if high > low else None
            if found is not None or start == low:
                return found
            look *= _FURTHER

    def _last_from(self, topic: str, start: int) -> Place | None:
        last, writer = None, self._login.writer.encode()
        for message in self._committed(topic, 0, start, "the place can't be read"):
            if message.key() == writer:
                last = message.value()
        try:
            return Place(**json.loads(last)) if last is not None else None
        except (ValueError, TypeError) as error:
            raise named("the place can't be read", topic, error, self._heard) from error

    def _has_committed(self, topic: str, partition: int) -> bool:
        """Tells whether readers of committed messages see one; aborted transactions leave others behind."""
        low, high = self._ends(topic, partition)
        found = self._committed(topic, partition, low, "a topic can't be read") if high > low else ()
        return any(True for _ in found)

    def _committed(self, topic: str, partition: int, start: int, what: str) -> Iterator[Any]:
        """The committed messages from a place to the end; ``what`` can't be done if they can't be read."""
        reader = self._reader()
        until = time.monotonic() + self._login.patience_s
        try:
            reader.assign([self._kafka.TopicPartition(topic, partition, start)])
            while time.monotonic() < until:
                message = reader.poll(1.0)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    yield message
                elif error.code() == self._kafka.KafkaError._PARTITION_EOF:
                    return
                elif not error.retriable():
                    raise named(what, topic, error, self._heard)
        except self._kafka.KafkaException as error:
            raise named(what, topic, error, self._heard) from error
        finally:
            reader.close()
        raise OutputError(
            what,
            where=topic,
            cause=f"its end wasn't reached within {self._login.patience_s:g} s; {self._heard}",
            remedy="look whether all brokers are up, then start again",
            retryable=True,
        )


def _waiting_kb(client: Mapping[str, str]) -> int:
    """The memory for messages that wait: one that doesn't fit into it could never be sent."""
    longest = client.get("message.max.bytes", "0").strip()
    most = int(longest) if longest.isascii() and longest.isdigit() else 0  # else the client itself refuses it
    return max(_WAITING_KB, (most + _ROOM_BYTES) >> 10)
