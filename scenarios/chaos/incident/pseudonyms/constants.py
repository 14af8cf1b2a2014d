"""Constants of a project's code: values that it mentions, and that therefore are in the file anyway."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_NUMERAL = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")


@dataclass(frozen=True, slots=True)
class Constants:
    """The values that code mentions: texts, and numbers as they are written."""

    texts: frozenset[str]
    numbers: frozenset[str]


def of_code(files: Mapping[str, str]) -> Constants:
    """The constants of Python files and of SQL files, by name and text; docstrings and comments are none."""
    texts, numbers = set[str](), set[str]()
    for name, text in files.items():
        if name.endswith(".sql"):
            _of_sql(_without_comments(text), texts, numbers)
        elif name.endswith(".py"):
            _of_python(text, texts, numbers, with_numbers="/" not in name)
    return Constants(frozenset(texts - {""}), frozenset(numbers))


def _of_python(source: str, texts: set[str], numbers: set[str], *, with_numbers: bool) -> None:
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in prose:
            continue
        if isinstance(node.value, str):
            texts.add(node.value)
            texts.update(one.replace("''", "'") for one in _QUOTED.findall(node.value))
            if with_numbers:
                numbers.update(_NUMERAL.findall(node.value))
        elif isinstance(node.value, int | float) and not isinstance(node.value, bool) and with_numbers:
            numbers.update({str(node.value), f"-{node.value}"})


def _of_sql(text: str, texts: set[str], numbers: set[str]) -> None:
    texts.update(one.replace("''", "'") for one in _QUOTED.findall(text))
    numbers.update(_NUMERAL.findall(_QUOTED.sub("", text)))


def _without_comments(text: str) -> str:
    return re.sub(r"--[^\n]*|/\*.*?\*/", "", text, flags=re.DOTALL)
