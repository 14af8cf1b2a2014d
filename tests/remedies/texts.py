"""Finds every remedy that the code can print, by its syntax: no list of places has to be kept."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "verify", "transforms")
HOLE = "{}"
"""What stands in a text where a value is put in."""

_NAMED = re.compile(r"remed|REMED|^_?(ANEW|NEWER|START_OVER|WITH_RIGHTS|UNSEEN|AWAY)$|^grants?$|_grant$")
TABLES = re.compile(r"remedies|_CAUSES|_REFUSED|_NAMED|_OF_LIBPQ|_SHORTAGES|_BY_PRINT", re.IGNORECASE)
_FINDING_REMEDY = 3
_GLUE = re.compile(r"\{\}|\bthen\b|\bor\b|[^A-Za-z]")
"""What is left of a text that only puts others together."""


@dataclass(frozen=True)
class Remedy:
    """One text that may be printed as a remedy, or as a part of one, and where it stands."""

    place: str
    text: str


@cache
def remedies() -> tuple[Remedy, ...]:
    """All of them, in the order of the files."""
    return tuple(
        Remedy(f"{file.relative_to(ROOT).as_posix()}:{line}", text)
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if "embedded" not in file.parts and "memory" not in file.parts
        for line, text in dict.fromkeys(texts(file.read_text("utf-8")))
    )


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of the remedies of one module."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for given in _given(node):
            yield from texts_of(given)


def _given(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions that become a remedy: arguments, variables and functions of that name, tables of causes."""
    if isinstance(node, ast.Call):
        yield from (word.value for word in node.keywords if word.arg == "remedy")
        if isinstance(node.func, ast.Name) and node.func.id == "Finding" and len(node.args) > _FINDING_REMEDY:
            yield node.args[_FINDING_REMEDY]
    elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]
        if any(TABLES.search(name) for name in names):
            yield from _ends(node.value)
        elif any(_NAMED.search(name) for name in names):
            yield from _one_of(node.value, names)
    elif isinstance(node, ast.FunctionDef) and _NAMED.search(node.name):
        yield from (
            one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value is not None
        )


def _one_of(value: ast.expr, names: list[str]) -> Iterator[ast.expr]:
    """Of ``problem, remedy = ...`` the part that is the remedy."""
    if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
        yield from (one for name, one in zip(names, value.elts, strict=True) if _NAMED.search(name))
    elif isinstance(value, ast.IfExp) and len(names) > 1:
        yield from _one_of(value.body, names)
        yield from _one_of(value.orelse, names)
    else:
        yield value


def _ends(value: ast.expr) -> Iterator[ast.expr]:
    """Of a table of causes the last text of each row."""
    if isinstance(value, ast.Dict):
        for one in value.values:
            yield from _ends(one)
    elif isinstance(value, ast.Tuple | ast.List) and value.elts:
        if all(isinstance(one, ast.Tuple) for one in value.elts):
            for one in value.elts:
                yield from _ends(one)
        else:
            yield [one for one in value.elts if not _is_flag(one)][-1]
    elif isinstance(value, ast.Call):
        for one in value.args:
            yield from _ends(one)
    else:
        yield value


def _is_flag(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, str)


def texts_of(node: ast.expr) -> Iterator[tuple[int, str]]:
    """The texts that an expression may be; those of variables are found where they are assigned."""
    if isinstance(node, ast.IfExp):
        yield from texts_of(node.body)
        yield from texts_of(node.orelse)
    elif isinstance(node, ast.BoolOp):
        for one in node.values:
            yield from texts_of(one)
    elif _GLUE.sub("", text := _text(node)):
        yield node.lineno, " ".join(text.split())


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(one) if isinstance(one, ast.Constant) else HOLE for one in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _text(node.left) + _text(node.right)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "join" and isinstance(node.func.value, ast.Constant):
            parts = [_text(one.elt) for one in node.args if isinstance(one, ast.GeneratorExp)]
            return "".join(parts) or HOLE
        if node.func.attr == "get" and len(node.args) > 1:
            return _text(node.args[1])
        if node.func.attr in ("format", "as_string", "replace"):
            return _text(node.func.value)
    if (
        isinstance(node, ast.Call)
        and node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "SQL"
    ):
        return _text(node.args[0])
    return HOLE
