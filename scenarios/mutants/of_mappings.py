"""Broken variants of a user's mapping, made from its syntax tree: one small fault each, such as people make. Pure."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_FILTERS = ("where", "filter")
_LISTS = ast.List | ast.Tuple
Edit = Callable[[ast.AST], None]


@dataclass(frozen=True, slots=True)
class MappingMutant:
    """A broken variant.

    Attributes:
        target: the function's target table.
        line: of the mapping, where it is broken.
        fault: what is broken, in words.
        source: the whole broken file.
    """

    target: str
    line: int
    fault: str
    source: str

    @property
    def name(self) -> str:
        """The variant in a few words."""
        return f"{self.target}, line {self.line}: {self.fault}"


def mapping_mutants(source: str) -> list[MappingMutant]:
    """All variants of a mapping's text, in the order of its lines. Raises ``SyntaxError`` for no Python."""
    found = []
    for target, function, key in _targets(ast.parse(source)):
        for number, (node, fault, _) in enumerate(_faults(function, key)):
            tree = ast.parse(source)
            twin = next(one for name, one, _ in _targets(tree) if name == target)
            other, _, edit = list(_faults(twin, key))[number]
            edit(other)
            text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
            found.append(MappingMutant(target, getattr(node, "lineno", function.lineno), fault, text))
    return sorted(found, key=lambda one: (one.line, one.fault))


def _targets(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef, frozenset[str]]]:
    """Functions with ``@mapping.target("name", key=...)``: the name, the function, its key columns."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        for call in node.decorator_list:
            if (
                isinstance(call, ast.Call)
                and isinstance(call.func, ast.Attribute)
                and call.func.attr == "target"
                and call.args
                and isinstance(call.args[0], ast.Constant)
            ):
                keys = [word.value for word in call.keywords if word.arg == "key"]
                texts = {
                    str(one.value) for key in keys for one in ast.walk(key) if isinstance(one, ast.Constant)
                }
                yield str(call.args[0].value), node, frozenset(texts)


def _faults(function: ast.FunctionDef, key: frozenset[str]) -> Iterator[tuple[ast.AST, str, Edit]]:
    """Places in a function, the fault that can be put there, and what puts it there."""
    for node in ast.walk(function):
        if not isinstance(node, ast.Call):
            continue
        yield from _of_grain(node)
        if not isinstance(node.func, ast.Attribute):
            continue
        name = node.func.attr
        if name in _FILTERS and len(node.args) == 1 and not node.keywords:
            yield node, f"the filter {ast.unparse(node.args[0])} is dropped", _without_filter
        elif name == "select":
            yield from _of_select(node, key)
        elif name == "join":
            yield from _of_join(node)
        elif name == "groupBy" and len(node.args) > 1:
            for place, one in enumerate(node.args):
                yield node, f"{ast.unparse(one)} is not grouped by", _without(place)


def _of_grain(call: ast.Call) -> Iterator[tuple[ast.AST, str, Edit]]:
    for word in call.keywords:
        if word.arg == "grain" and isinstance(word.value, _LISTS) and len(word.value.elts) > 1:
            for place, one in enumerate(word.value.elts):
                yield word.value, f"the grain lacks {ast.unparse(one)}", _without_element(place)


def _of_select(call: ast.Call, key: frozenset[str]) -> Iterator[tuple[ast.AST, str, Edit]]:
    names = [_named(one) for one in call.args]
    for place, (one, name) in enumerate(zip(call.args, names, strict=True)):
        if name and name not in key and len(call.args) > 1:
            yield one, f"the column {name} is dropped", _dropped(call, place)
    aliases = [
        place
        for place, (one, name) in enumerate(zip(call.args, names, strict=True))
        if name and name not in key and isinstance(one, ast.Call)
    ]
    for first, second in pairwise(aliases):
        said = f"the columns {names[first]} and {names[second]} are swapped"
        yield call, said, _swapped(first, second)


def _of_join(call: ast.Call) -> Iterator[tuple[ast.AST, str, Edit]]:
    places = [1] if len(call.args) > 1 else []
    for place in places:
        condition = call.args[place]
        if isinstance(condition, _LISTS) and len(condition.elts) > 1:
            for number, one in enumerate(condition.elts):
                yield condition, f"the join lacks {ast.unparse(one)}", _without_element(number)
        elif isinstance(condition, ast.BinOp) and isinstance(condition.op, ast.BitAnd):
            for left in (True, False):
                gone = condition.left if left else condition.right
                yield call, f"the join lacks {ast.unparse(gone)}", _one_side(place, keep_left=not left)


def _named(node: ast.expr) -> str:
    """The name of a column in a select; empty where it isn't plain."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "alias":
        [first, *_] = node.args or [ast.Constant("")]
        return str(first.value) if isinstance(first, ast.Constant) else ""
    return ""


def _without_filter(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Attribute)
    node.func, node.args = ast.Attribute(node.func.value, "select", ast.Load()), [ast.Constant("*")]


def _without(place: int) -> Edit:
    def edit(node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        del node.args[place]

    return edit


def _without_element(place: int) -> Edit:
    def edit(node: ast.AST) -> None:
        assert isinstance(node, _LISTS)
        del node.elts[place]

    return edit


def _dropped(call: ast.Call, place: int) -> Edit:
    def edit(_: ast.AST) -> None:
        del call.args[place]

    return edit


def _swapped(first: int, second: int) -> Edit:
    def edit(node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        one, other = node.args[first], node.args[second]
        assert isinstance(one, ast.Call)
        assert isinstance(other, ast.Call)
        one.args, other.args = copy.deepcopy(other.args), copy.deepcopy(one.args)

    return edit


def _one_side(place: int, *, keep_left: bool) -> Edit:
    def edit(node: ast.AST) -> None:
        assert isinstance(node, ast.Call)
        condition = node.args[place]
        assert isinstance(condition, ast.BinOp)
        node.args[place] = condition.left if keep_left else condition.right

    return edit


def survivors(table: Sequence[tuple[MappingMutant, Sequence[bool]]]) -> list[MappingMutant]:
    """The variants that no judge noticed."""
    return [mutant for mutant, noticed in table if not any(noticed)]
