"""Mappings written as Spark SQL: the head of each query, and what it declares.

    -- target: order_summary
    -- key: order_id
    -- grain: orders.order_id
    SELECT o.order_id, count(*) AS lines FROM orders o JOIN order_line l ON l.order_id = o.order_id GROUP BY 1;

A line ``-- target: <table>`` begins a mapping, the next one (or the file's end) ends it; ``-- next: <table>`` begins
the one that is to follow. A file without such a line is no mapping: scripts for other uses may lie beside it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from migrator.errors import MappingError
from transforms.registry import Mapping, Value, declared
from transforms.sql_query import SqlValue, parsed

BEGINS = ("target", "next")
ONCE = (*BEGINS, "key", "grain")
MANY = ("link", "role", "value", "surrogate")
_ENTRY = re.compile(r"\s*--\s*(?P<name>[A-Za-z]+)\s*:\s*(?P<text>.*?)\s*")
_COMMENT = re.compile(r"\s*(--.*)?")


@dataclass(slots=True)
class Head:
    """The entries that the comment lines above a query declare, by name, with the line of each; the first that is
    ``wrong``."""

    line: int
    entries: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    lines: list[tuple[int, str]] = field(default_factory=list)
    wrong: MappingError | None = None

    def one(self, name: str) -> str:
        """The text of an entry that comes at most once; empty if it is absent."""
        return self.entries[name][0][0] if name in self.entries else ""

    def listed(self, name: str) -> list[str]:
        """An entry's words between commas."""
        return [word.strip() for word in self.one(name).split(",") if word.strip()]


def holds_mapping(text: str) -> bool:
    """Tells whether a line of a ``.sql`` file begins a mapping."""
    return any((found := _ENTRY.fullmatch(line)) and found["name"] in BEGINS for line in text.splitlines())


def add_queries(mapping: Mapping, files: Sequence[Path], spark: Callable[[], SparkSession]) -> list[Path]:
    """Adds the mappings of ``.sql`` files; returns the files that hold none.

    Args:
        mapping: what they are added to.
        files: in the order in which they are to be added.
        spark: called only if there is a query to parse.

    Raises ``MappingError`` naming file and line: a head that can't be read, no query, a target mapped twice.
    """
    aside = []
    for file in files:
        with mapping.held():
            heads = list(_heads(file))
            if not heads:
                aside.append(file)
            for head in heads:
                with mapping.held():
                    _add(mapping, file, head, spark)
    return aside


def _add(mapping: Mapping, file: Path, head: Head, spark: Callable[[], SparkSession]) -> None:
    if head.wrong is not None:
        raise head.wrong
    if "key" not in head.entries:
        raise _wrong(
            file, head.line, "the head has no key", f"add the target's key columns: {_EXAMPLES['key']}"
        )
    query = parsed(spark(), file, head.line, _text(file, head))
    grain = head.listed("grain")
    pairs = {
        name: [_pair(file, name, *entry) for entry in head.entries.get(name, ())]
        for name in ("role", "value", "surrogate")
    }
    values: dict[str, Value] = {name: SqlValue(text) for name, text in pairs["value"]}
    add = mapping.add_next if "next" in head.entries else mapping.add
    add(
        declared(
            head.one("target") or head.one("next"),
            key=head.listed("key"),
            function=query,
            where=query.where(),
            parameters=tuple(query.tables),
            grain=(grain[0] if len(grain) == 1 else grain) or None,
            links=[text for text, _ in head.entries["link"]] if "link" in head.entries else None,
            roles=dict(pairs["role"]) or None,
            values=values or None,
            surrogates=dict(pairs["surrogate"]) or None,
        )
    )


def _heads(file: Path) -> Iterator[Head]:
    """The mappings of a file, each with its lines. Raises ``MappingError``."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MappingError(
            f"{file.name} can't be read", where=str(file), cause=str(error), remedy="save it as UTF-8 text"
        ) from error
    head: Head | None = None
    above = True
    for number, line in enumerate(lines, 1):
        entry = _ENTRY.fullmatch(line)
        name = entry["name"].lower() if entry else ""
        if entry and name in BEGINS:
            if head is not None:
                yield head
            head, above = Head(number), True
        if above and entry:
            try:
                _enter(file, head, name, entry["text"], number)
            except MappingError as error:
                if head is None:
                    yield Head(number, wrong=error)
                else:
                    head.wrong = head.wrong or error
        elif head is not None:
            above = above and _COMMENT.fullmatch(line) is not None
            head.lines.append((number, line))
    if head is not None:
        yield head


def _enter(file: Path, head: Head | None, name: str, text: str, number: int) -> None:
    known = (*ONCE, *MANY)
    if name not in known:
        near = difflib.get_close_matches(name, known, 1, 0.75)
        if head is not None and near:
            raise _wrong(file, number, f"the head has no entry {name!r}", f"write `-- {near[0]}: ...`")
        return  # any other comment
    if head is None:
        if name in ("key", "grain"):
            raise _wrong(
                file, number, f"`-- {name}:` comes before `-- target:`", "begin the head with its target"
            )
        return
    if not text:
        raise _wrong(
            file,
            number,
            f"`-- {name}:` is empty",
            f"write it as in docs/reference/mapping-reference.md: {_EXAMPLES[name]}",
        )
    if name in ONCE and name in head.entries:
        remedy = "write columns in one line, with commas; a new mapping begins with `-- target:`"
        raise _wrong(file, number, f"`-- {name}:` comes twice", remedy)
    head.entries.setdefault(name, []).append((text, number))


_EXAMPLES = {
    "target": "-- target: order_summary",
    "next": "-- next: order_line",
    "key": "-- key: order_id",
    "grain": "-- grain: orders.order_id",
    "link": "-- link: order_line.order_id = orders.order_id",
    "role": "-- role: manager = employee",
    "value": "-- value: title.code = lower(title)",
    "surrogate": "-- surrogate: person_id = person",
}


def _pair(file: Path, name: str, text: str, number: int) -> tuple[str, str]:
    left, equals, right = text.partition("=")
    if not equals or not left.strip() or not right.strip():
        raise _wrong(file, number, f"`-- {name}: {text}` can't be read", f"write {_EXAMPLES[name]}")
    return left.strip(), right.strip()


def _text(file: Path, head: Head) -> str:
    """The query, on the lines it has in the file, without what follows its end."""
    lines = list(head.lines)
    while lines and _COMMENT.fullmatch(lines[-1][1]):
        lines.pop()  # what stands above the next head
    if not lines:
        remedy = "write one SELECT below it"
        named = "; ".join(f"-- {name}: {head.one(name)}" for name in BEGINS if name in head.entries)
        raise _wrong(file, head.line, f"no query follows `{named}`", remedy)
    rows = [""] * lines[-1][0]
    for number, line in lines:
        rows[number - 1] = line
    return "\n".join(rows).rstrip().removesuffix(";")


def _wrong(file: Path, line: int, what: str, remedy: str) -> MappingError:
    return MappingError(f"{file.name}: {what}", where=f"{file}:{line}", remedy=remedy)
