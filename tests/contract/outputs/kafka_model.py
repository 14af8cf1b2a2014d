"""Kafka as its documents promise it to a transactional writer and a reader of committed messages, in memory.

It stands for real brokers where none can run: it says what our side does with the promise, not that brokers keep it
(``tests/integration/commands/test_kafka_brokers.py`` does).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from migrator.adapters.outputs.kafka.messages import NEW_KEY, OLD_KEY, Message
from migrator.adapters.outputs.kafka.output import Place, Topic
from migrator.errors import OutputError
from migrator.model.table import Column, TableSchema
from tests.contract.outputs.json_events import SCHEMAS
from tests.contract.outputs.json_events import decoded as text_decoded
from tests.contract.outputs.output_content import Event, Image, double


@dataclass
class Transaction:
    """Messages and places that become visible together; ``state``: open, committed or aborted."""

    epoch: int
    messages: list[Message] = field(default_factory=list)
    places: list[Place] = field(default_factory=list)
    state: str = "open"

    def size(self) -> int:
        return sum(len(one.value or b"") + len(one.key or b"") for one in self.messages)


@dataclass
class Kafka:
    """What the brokers hold. ``topics`` that exist already, ``step`` is called where a process may be killed."""

    transactions: list[Transaction] = field(default_factory=list)
    topics: dict[str, Topic] = field(default_factory=dict)
    epoch: int = 0
    step: Callable[[str], None] = lambda _: None
    fails_at: int = 1 << 60

    def committed(self) -> list[Message]:
        return [one for t in self.transactions if t.state == "committed" for one in t.messages]

    def place(self) -> Place | None:
        places = [one for t in self.transactions if t.state == "committed" for one in t.places]
        return places[-1] if places else None


class Writer:
    """``output.Cluster``: one process."""

    def __init__(self, kafka: Kafka) -> None:
        self._kafka, self._epoch = kafka, 0

    def open(self) -> Place | None:
        self._kafka.epoch += 1
        self._epoch = self._kafka.epoch
        for one in self._kafka.transactions:
            if one.state == "open":
                one.state = "aborted"
        return self._kafka.place()

    def topic(self, name: str, new: bool) -> Topic:
        assert not new or all(one.topic != name for one in self._kafka.committed()), (
            "aborted ones don't count"
        )
        return self._kafka.topics.setdefault(name, Topic(1, False))

    def begin(self) -> None:
        self._fenced()
        self._kafka.transactions.append(Transaction(self._epoch))

    def send(self, message: Message) -> None:
        self._fenced()
        if len(self._kafka.transactions[-1].messages) >= self._kafka.fails_at:
            raise OutputError("a message can't be sent", cause="no room", remedy="make room")
        self._kafka.step("before a message is sent")
        self._kafka.transactions[-1].messages.append(message)

    def commit(self, place: Place) -> None:
        self._fenced()
        self._kafka.step("before a transaction is committed")
        self._kafka.transactions[-1].places.append(place)
        self._kafka.transactions[-1].state = "committed"
        self._kafka.step("after a transaction was committed")

    def abort(self) -> None:
        self._fenced()
        self._kafka.transactions[-1].state = "aborted"

    def close(self) -> None:
        """Nothing is open."""

    def _fenced(self) -> None:
        if self._epoch != self._kafka.epoch:
            raise OutputError("another process writes these topics now", remedy="stop one of them")


class PlaceApart(Writer):
    """The broken variant: the place is committed by a transaction of its own."""

    def commit(self, place: Place) -> None:
        self._kafka.transactions[-1].state = "committed"
        self._kafka.step("between a transaction and its place")
        self._kafka.transactions.append(Transaction(self._epoch, [], [place], "committed"))


def decoded(column: Column, value: Any, schemas: bool) -> Any:
    """A value in plain form, by the rules of docs/reference/outputs/events-in-kafka.md."""
    if value is None:
        return None
    if column.type.startswith("float"):
        return double(float(value))
    found = column.decimal()
    if found is not None and schemas:
        number = int.from_bytes(base64.b64decode(value, validate=True), "big", signed=True)
        digits = tuple(map(int, str(abs(number))))
        return f"{Decimal((int(number < 0), digits, -found[1])):f}"
    if column.type in ("int64", "date", "timestamp"):
        assert isinstance(value, int)
        return value
    return text_decoded(column, value)


def events_of(messages: Sequence[Message]) -> list[Event]:
    """Events again, as a consumer has them; checks keys, schemas and tombstones on the way."""
    return list(_events(iter(messages)))


def _events(messages: Iterator[Message]) -> Iterator[Event]:
    for message in messages:
        assert message.value is not None, "a tombstone that follows no delete"
        value, schemas = _payload(message.value)
        source = value["source"]
        schema = SCHEMAS[source["row_schema"]]
        before, after = (_image(schema, value[name], schemas) for name in ("before", "after"))
        op = value["op"]
        assert source["snapshot"] == ("true" if op == "r" else "false")
        if op == "d":
            tombstone = next(messages)
            assert (tombstone.key, tombstone.value) == (message.key, None)
        if NEW_KEY in dict(message.headers):
            moved = next(messages)
            assert dict(moved.headers) == {OLD_KEY: message.key}
            assert dict(message.headers) == {NEW_KEY: moved.key}
            assert moved.value is not None
            op, after = "u", _image(schema, _payload(moved.value)[0]["after"], schemas)
            _check_key(schema, moved, after, schemas)
        assert (message.key is None) == (op == "t")
        _check_key(schema, message, before or after, schemas)
        yield Event(
            source["segment"], source["number"], op, source["table"], before, after, source["order"],
            source["index"],
        )  # fmt: skip


def _payload(text: bytes) -> tuple[dict[str, Any], bool]:
    """What a message says, and whether its schema goes along."""
    found = json.loads(text)
    if set(found) != {"schema", "payload"}:
        return found, False
    check_schema(found["schema"], found["payload"])
    return found["payload"], True


KINDS = {
    "boolean": bool, "int8": int, "int16": int, "int32": int, "int64": int, "float": (float, str),
    "double": (float, str), "string": str, "bytes": str, "struct": dict,
}  # fmt: skip


def check_schema(schema: dict[str, Any], value: Any) -> None:
    """What a converter of Connect demands: each field is there, of its kind, and null only where it may be."""
    if value is None:
        assert schema["optional"], schema
        return
    assert isinstance(value, KINDS[schema["type"]]), (schema, value)  # type: ignore[arg-type]
    if schema["type"] == "struct":
        assert [one["field"] for one in schema["fields"]] == list(value)
        for one in schema["fields"]:
            check_schema(one, value[one["field"]])


def _image(schema: TableSchema, found: Any, schemas: bool) -> Image:
    return found and {column.name: decoded(column, found[column.name], schemas) for column in schema.columns}


def _check_key(schema: TableSchema, message: Message, row: Image, schemas: bool) -> None:
    if row is not None and message.key is not None:
        key, _ = _payload(message.key)
        columns = {column.name: column for column in schema.columns}
        assert {name: decoded(columns[name], value, schemas) for name, value in key.items()} == {
            name: row[name] for name in schema.key
        }
