"""Documents that the code writes, as tables: names by their writer, meanings by the record's docstring."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import pairwise
from types import ModuleType
from typing import Any, get_args, get_type_hints

from tests.reference.blocks import table

_ATTRIBUTE = re.compile(r" {4}((?:\w+, )*\w+): (.+)")
OWN: Mapping[str, str] = {"format": "number of this layout ([Formats](../../how-to/upgrade.md#formats))"}
"""What every document has, and no record."""
_KINDS = {
    bool: "true or false",
    int: "whole number",
    float: "number",
    str: "text",
    dict: "object",
    type(None): "null",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON object that the code writes.

    Attributes:
        title: heading of its table.
        written: what the writer made of a record with a value in every field.
        record: the class whose fields they are.
        told: meaning of what is no field of the record by that name.
        apart: fields of the record that its writer leaves out, or writes under another name.
    """

    title: str
    written: Mapping[str, Any]
    record: type
    told: Mapping[str, str] = field(default_factory=dict)
    apart: frozenset[str] = frozenset()


def lines(document: Document, level: str = "###") -> Iterator[str]:
    """A heading and a row for each field. Raises ``ValueError`` for one that is missing or without a meaning."""
    meanings = {**OWN, **attributes(document.record), **document.told}
    known = {each.name for each in fields(document.record)}
    if left := known - set(document.written) - document.apart:
        raise ValueError(f"{document.record.__name__}: what was written lacks {sorted(left)}")
    if untold := set(document.written) - set(meanings):
        raise ValueError(f"{document.record.__name__}: nothing says what {sorted(untold)} are")
    yield from (f"{level} {document.title}", "")
    yield from table(
        ("Field", "Value", "Meaning"),
        (
            (f"`{name}`", _kind(value, _may_be_none(document.record, name)), meanings[name])
            for name, value in document.written.items()
        ),
    )
    yield ""


def attributes(record: type) -> dict[str, str]:
    """The meaning of each field of a class that documents them under ``Attributes:``, as Markdown."""
    text = (inspect.getdoc(record) or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    found: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        begins = _ATTRIBUTE.fullmatch(line)
        if begins:
            names = begins[1].split(", ")
        for name in names:
            found[name] = begins[2] if begins else f"{found[name]} {line.strip()}"
    return {name: markdown(meaning) for name, meaning in found.items()}


def markdown(text: str) -> str:
    """A docstring's text for a page: code marked as Markdown does, JSON's null, no references to other modules."""
    told = re.sub(r" \(see `[^)]*\)| See `[\w.]+`\.?$", "", " ".join(text.replace("``", "`").split()))
    return re.sub(r"(?<!\.)\.$", "", re.sub(r"\bNone\b", "null", told))


def _may_be_none(record: type, name: str) -> bool:
    return type(None) in get_args(get_type_hints(record).get(name))


def _kind(value: Any, may_be_none: bool) -> str:
    """What a value is, in words."""
    kind = f"list of {_plural(value)}" if isinstance(value, list) else _KINDS[type(value)]
    return f"{kind} or null" if may_be_none else kind


def _plural(values: list[Any]) -> str:
    if not values:
        raise ValueError("an empty list says nothing of what it may hold")
    if isinstance(values[0], list):
        return "lists: " + ", ".join(_kind(value, False) for value in values[0])
    return {"text": "texts", "object": "objects"}.get(_KINDS[type(values[0])], f"{_KINDS[type(values[0])]}s")


def as_json(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with lists for tuples, as a file has it."""
    return dict(json.loads(json.dumps(document)))


def summary(member: object) -> str:
    """The first sentence of a member's docstring."""
    return markdown((inspect.getdoc(member) or "").split("\n\n")[0])


def described(module: ModuleType, owner: str = "") -> dict[str, str]:
    """The text below each assignment of a module, or of a class in it, by the name assigned to."""
    body = ast.parse(inspect.getsource(module)).body
    if owner:
        (body,) = [node.body for node in body if isinstance(node, ast.ClassDef) and node.name == owner]
    return {
        name.id: markdown(text.value.value)
        for assigned, text in pairwise(body)
        if isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
        and isinstance(text.value.value, str)
        for name in ast.walk(assigned)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }
