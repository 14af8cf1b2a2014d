"""Turns what an operator typed into a dump request, checked against the source."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from migrator.errors import RequestError
from migrator.model.event import Key, Value
from migrator.model.requests.request import MOST_KEYS, WHOLE, Scope
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.source import SourceCatalog


@dataclass(frozen=True, slots=True)
class DumpOrder:
    """The choice of rows that an operator typed.

    Attributes:
        tables: names of source tables; none means all that the mapping reads.
        low, high: bounds of the key, inclusive, as text; None is open.
        keys: listed keys as text.
        predicate: SQL expression; empty when there is none.
    """

    tables: tuple[str, ...] = ()
    low: str | None = None
    high: str | None = None
    keys: tuple[str, ...] = ()
    predicate: str = ""


def checked(
    order: DumpOrder, known: Sequence[str], catalog: SourceCatalog
) -> tuple[tuple[TableId, ...], Scope]:
    """Tables and scope of a request.

    Args:
        order: what was typed.
        known: names of the source tables that the mapping reads.
        catalog: the source.

    Raises ``RequestError`` naming the option, its value, and what is wrong with it; ``SourceError`` and
    ``ConnectionFailed`` when the source can't be asked.
    """
    unknown = [name for name in order.tables if name not in known]
    if unknown:
        raise RequestError(
            f"the migration captures no table {unknown[0]!r}",
            where=f"--table {unknown[0]}",
            cause=f"the mapping reads {', '.join(known)}",
            remedy="name one of these; another table needs a mapping that reads it",
        )
    kinds = _kinds(order)
    names = tuple(dict.fromkeys(order.tables)) or tuple(known)
    if kinds and len(order.tables) != 1:
        raise RequestError(
            f"{kinds[0]} needs exactly one --table",
            where=f"{kinds[0]}, {len(order.tables)} table(s) named",
            cause="keys and columns are those of one table",
            remedy="name the table with --table; start one request for each table",
        )
    if len(kinds) > 1:
        raise RequestError(
            f"{kinds[0]} and {kinds[1]} don't go together",
            where=", ".join(kinds),
            cause="a request covers a key range, or listed keys, or what a predicate holds for",
            remedy="start a request for each, or say it all in --where",
        )
    schemas = catalog.tables(names)
    if not kinds:
        return tuple(schema.id for schema in schemas), WHOLE
    scope = _scope(order, schemas[0])
    catalog.check_scope(schemas[0], scope)
    return (schemas[0].id,), scope


def _kinds(order: DumpOrder) -> list[str]:
    ranged = order.low is not None or order.high is not None
    return [
        name
        for name, chosen in (
            ("--from/--to", ranged),
            ("--key", bool(order.keys)),
            ("--where", bool(order.predicate)),
        )
        if chosen
    ]


def _scope(order: DumpOrder, schema: TableSchema) -> Scope:
    if len(order.keys) > MOST_KEYS:
        raise RequestError(
            "too many keys for one request",
            where=f"{len(order.keys)} keys",
            cause=f"a request lists at most {MOST_KEYS}",
            remedy="start several requests, or give a range or a predicate",
        )
    keys = tuple(dict.fromkeys(key_of("--key", text, schema) for text in order.keys))
    low = None if order.low is None else key_of("--from", order.low, schema)
    high = None if order.high is None else key_of("--to", order.high, schema)
    if low is not None and high is not None and _is_above(low, high, schema):
        raise RequestError(
            "the range ends before it begins",
            where=f"--from {order.low} --to {order.high}",
            cause=f"keys ({', '.join(schema.key)}) are taken in their order, and none is in between",
            remedy="give the lower key to --from and the higher one to --to",
        )
    return Scope(keys, low, high, order.predicate.strip())


def _is_above(low: Key, high: Key, schema: TableSchema) -> bool:
    """Tells whether ``low`` surely comes after ``high``; False for texts, whose order is the database's own."""
    for first, last, place in zip(low, high, schema.key_indexes(), strict=True):
        if first != last:
            return _is_number(schema.columns[place]) and _above(first, last)
    return False


def _above(first: Value, last: Value) -> bool:
    try:
        return Decimal(str(first)) > Decimal(str(last))
    except InvalidOperation:
        return False  # the source says what is wrong with it


def _is_number(column: Column) -> bool:
    return column.type.startswith("int") or column.decimal() is not None


def key_of(option: str, text: str, schema: TableSchema) -> Key:
    """A key from its text: the value itself, or of several columns one CSV row; binary values in hexadecimal."""
    parts = [text] if len(schema.key) == 1 else next(csv.reader([text]), [])
    if len(parts) != len(schema.key):
        raise RequestError(
            f"{text!r} isn't a key of {schema.id}",
            where=f"{option} {text}",
            cause=f"it has {len(parts)} value(s), the key is ({', '.join(schema.key)})",
            remedy="give one value for each column of the key, separated by commas, quoted as in CSV",
        )
    return tuple(
        _value(option, part, schema, place) for part, place in zip(parts, schema.key_indexes(), strict=True)
    )


def _value(option: str, text: str, schema: TableSchema, place: int) -> Value:
    column = schema.columns[place]
    if "\0" in text:
        cause = "no key holds the character NUL"
    elif column.type != "binary":
        return text
    else:
        try:
            return bytes.fromhex(text.removeprefix("0x").removeprefix("\\x"))
        except ValueError:
            cause = "a binary value is given as hexadecimal digits"
    raise RequestError(
        f"{text!r} can't be a key of {schema.id}",
        where=f"{option}, column {column.name} ({column.source_type}), value {text!r}",
        cause=cause,
        remedy="give the key as the source prints it",
    )
