"""Change events as messages in Debezium's envelope (docs/reference/outputs/events-in-kafka.md).

Values are those of Debezium's default settings: days and microseconds as numbers, moments with a zone as ISO 8601. A
decimal is Connect's ``Decimal`` (base64 of the unscaled number) where the schema goes along, for that says the scale;
else a text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa

from migrator.columnar.events import AFTER, BEFORE, DELETE, NUMBER, OP, READ, TRUNCATE
from migrator.columnar.json_values import NULL, column_text, quoted
from migrator.errors import OutputError
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.output import SegmentEvents, TableEvents

_UNFIT = re.compile(r"[^A-Za-z0-9._-]")
_MOST_CHARACTERS = 249
OLD_KEY, NEW_KEY = "__debezium.oldkey", "__debezium.newkey"
"""Headers of the two events that an update of a key is: what it was, and what it is now."""
_PLAIN = {
    "bool": "boolean", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "float32": "float",
    "float64": "double", "string": "string", "binary": "bytes",
}  # fmt: skip
_LOGICAL = {
    "date": ("int32", "io.debezium.time.Date"),
    "timestamp": ("int64", "io.debezium.time.MicroTimestamp"),
    "timestamptz": ("string", "io.debezium.time.ZonedTimestamp"),
}
_SOURCE = (
    ("version", "string", False), ("connector", "string", False), ("name", "string", False), ("ts_ms", "int64", True),
    ("snapshot", "string", True), ("db", "string", False), ("schema", "string", True), ("table", "string", False),
    ("row_schema", "string", False), ("segment", "int64", False), ("number", "int64", False),
    ("order", "int64", True), ("index", "int64", True),
)  # fmt: skip


def place_topic(prefix: str) -> str:
    """The topic that holds the place."""
    return f"{prefix}.migrator.place"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: ``key`` None for a TRUNCATE, ``value`` None for a tombstone."""

    topic: str
    key: bytes | None
    value: bytes | None
    op: str
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Envelope:
    """Makes messages.

    Attributes:
        prefix: of the topics, and the name of the source in each message.
        version: of the migrator.
        schemas: whether each key and value carries its schema.
    """

    prefix: str
    version: str
    schemas: bool = True

    def topic(self, table: TableId) -> str:
        """The topic of a table. Raises ``OutputError`` for one that Kafka takes no name like."""
        name = f"{self.prefix}.{_UNFIT.sub('_', table.schema)}.{_UNFIT.sub('_', table.name)}"
        if len(name) > _MOST_CHARACTERS:
            raise OutputError(
                "a table's name is too long for a topic",
                where=str(table),
                cause=f"{name} has {len(name)} characters, Kafka takes {_MOST_CHARACTERS}",
                remedy="give a shorter --prefix, or leave the table out (--tables)",
            )
        return name

    def messages(self, events: SegmentEvents) -> list[Message]:
        """A segment's messages in order; an event may be up to three of them."""
        found = [one for table in events.tables for one in self._of_table(events, table)]
        found.sort(key=lambda one: one[0])
        return [message for _, messages in found for message in messages]

    def _of_table(self, events: SegmentEvents, table: TableEvents) -> Iterator[tuple[int, list[Message]]]:
        rows, schema, topic = table.rows.combine_chunks(), table.schema, self.topic(table.schema.id)
        wrap = self._wrapper(schema, topic)
        old, new = (self._images(schema, rows[name].combine_chunks()) for name in (BEFORE, AFTER))
        places = zip(*(rows[name].to_pylist() for name in (NUMBER, OP, "position", "index")), strict=True)
        moment = str(events.committed_at_us // 1000) if events.committed_at_us else NULL
        head = f'"version":{quoted(self.version)},"connector":"dbmigrator","name":{quoted(self.prefix)}'
        name = f'"schema":{quoted(schema.id.schema)},"table":{quoted(schema.id.name)}'
        digest = f'"row_schema":"{schema.version()}","segment":{events.segment}'
        for (number, op, order, index), before, after in zip(places, old, new, strict=True):
            source = (
                f'{head},"ts_ms":{moment},"snapshot":"{"true" if op == READ else "false"}","db":"",{name},{digest},'
                f'"number":{number},"order":{_number(order)},"index":{_number(index)}'
            )
            yield number, list(self._of_event(topic, op, before, after, wrap, (source, moment)))

    def _of_event(
        self,
        topic: str,
        op: str,
        before: tuple[str, str] | None,
        after: tuple[str, str] | None,
        wrap: Callable[[str], tuple[str, str]],
        place: tuple[str, str],
    ) -> Iterator[Message]:
        """``before`` and ``after`` are key and row as JSON."""
        source, moment = place
        key_end, value_start = wrap("key"), wrap("value")

        def key(text: str) -> bytes:
            return f"{key_end[0]}{text}{key_end[1]}".encode()

        def value(kind: str, old: str, new: str) -> bytes:
            text = (
                f'{{"before":{old},"after":{new},"source":{{{source}}},"op":"{kind}","ts_ms":{moment},'
                '"transaction":null}'
            )
            return f"{value_start[0]}{text}{value_start[1]}".encode()

        if op == TRUNCATE:
            yield Message(topic, None, value(op, NULL, NULL), op)
        elif after is None:
            assert before is not None
            yield Message(topic, key(before[0]), value(op, before[1], NULL), op)
            yield Message(topic, key(before[0]), None, op)
        elif before is not None and before[0] != after[0]:
            old_key, new_key = key(before[0]), key(after[0])
            yield Message(topic, old_key, value(DELETE, before[1], NULL), DELETE, ((NEW_KEY, new_key),))
            yield Message(topic, old_key, None, DELETE)
            yield Message(topic, new_key, value("c", NULL, after[1]), "c", ((OLD_KEY, old_key),))
        else:
            yield Message(topic, key(after[0]), value(op, before[1] if before else NULL, after[1]), op)

    def _images(self, schema: TableSchema, rows: pa.Array) -> list[tuple[str, str] | None]:
        """Key and row of each image as JSON; None where there is no image."""
        if not len(rows):
            return []
        columns = [
            [f"{quoted(column.name)}:{text}" for text in self._texts(column, rows.field(place))]
            for place, column in enumerate(schema.columns)
        ]
        keys = schema.key_indexes()
        return [
            (_object([values[place] for place in keys]), _object(values)) if there else None
            for there, values in zip(rows.is_valid().to_pylist(), zip(*columns, strict=True), strict=True)
        ]

    def _texts(self, column: Column, values: pa.Array) -> list[str]:
        if column.type in ("int64", "date", "timestamp"):
            numbers = values.cast(pa.int32() if column.type == "date" else pa.int64()).to_pylist()
            return [NULL if number is None else str(number) for number in numbers]
        found = column.decimal()
        if found is not None and self.schemas:
            return [NULL if value is None else _unscaled(value, found[1]) for value in values.to_pylist()]
        return list(column_text(column, values))

    def _wrapper(self, schema: TableSchema, topic: str) -> Callable[[str], tuple[str, str]]:
        """Returns what stands before and behind a payload."""
        if not self.schemas:
            return lambda _: ("", "")
        ends = {
            name: (f'{{"schema":{json.dumps(found, ensure_ascii=False)},"payload":', "}")
            for name, found in (("key", key_schema(schema, topic)), ("value", value_schema(schema, topic)))
        }
        return ends.__getitem__


def key_schema(schema: TableSchema, topic: str) -> dict[str, Any]:
    """A key's schema, as Connect's JSON converter writes it."""
    columns = [schema.columns[place] for place in schema.key_indexes()]
    return _struct([_field(column, column.name, False) for column in columns], f"{topic}.Key", False)


def value_schema(schema: TableSchema, topic: str) -> dict[str, Any]:
    """An envelope's schema."""
    row = [_field(column, column.name, column.nullable) for column in schema.columns]
    images = [{**_struct(row, f"{topic}.Value", True), "field": name} for name in ("before", "after")]
    source = _struct(
        [{"type": kind, "optional": optional, "field": name} for name, kind, optional in _SOURCE],
        "io.debezium.connector.dbmigrator.Source",
        False,
    )
    block = _struct([{"type": "string", "optional": False, "field": "id"}], "event.block", True)
    rest: list[dict[str, Any]] = [
        {**source, "field": "source"},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
        {**block, "field": "transaction"},
    ]
    return _struct([*images, *rest], f"{topic}.Envelope", False)


def _struct(fields: Sequence[dict[str, Any]], name: str, optional: bool) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields), "optional": optional, "name": name}


def _field(column: Column, name: str, optional: bool) -> dict[str, Any]:
    found = column.decimal()
    if found is not None:
        parameters = {"scale": str(found[1]), "connect.decimal.precision": str(found[0])}
        logical = {"name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": parameters}
        return {"type": "bytes", "optional": optional, **logical, "field": name}
    if column.type in _LOGICAL:
        kind, logical_name = _LOGICAL[column.type]
        return {"type": kind, "optional": optional, "name": logical_name, "version": 1, "field": name}
    return {"type": _PLAIN[column.type], "optional": optional, "field": name}


def _number(value: int | None) -> str:
    return NULL if value is None else str(value)


def _object(values: Sequence[str]) -> str:
    return "{" + ",".join(values) + "}"


def _unscaled(value: Decimal, scale: int) -> str:
    """The number without its point, as the shortest two's complement, in base64."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    number = int("".join(map(str, digits))) * 10 ** (exponent + scale) * (-1 if sign else 1)
    size = (number.bit_length() if number >= 0 else (number + 1).bit_length()) // 8 + 1
    return f'"{base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()}"'
