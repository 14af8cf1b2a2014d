"""The outline of a mapping: short digests of its parts, by which two mappings are compared in words.

A fingerprint says that two mappings differ, their outlines in what: a column, a filter, a join. Each part is taken
with what it stands on, down to columns of the source. So a step in between that reaches nothing changes none, nor
does the order in which columns are written: two mappings of one outline make the same rows.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

MOST = 4000
"""Most characters of an outline's parts; of a longer one less is kept: the ledger is written with each batch."""
EXACT, ORDER, FUNCTIONS, LITERALS = range(4)
"""Ways to look at a part: as it is; whatever the order of a struct's fields; whatever Python functions do; whatever
the literals are."""
CONSTANTS, SHAPE, UNKNOWN = "constants", "shape", "unknown"
"""Names of parts that aren't kinds of nodes: constant rows, the steps one in another, and the whole plan where it has
a column that comes from nowhere: nothing else tells two such columns apart."""
VERSION = 1
"""Number of the way of drawing: outlines drawn in different ways can't be compared."""
_WAYS = (EXACT, ORDER, FUNCTIONS, LITERALS)
_LONG, _SHORT = 8, 4
_BETWEEN = re.compile(r"#\d+")
_TYPED = re.compile(r"(.*?) ([\"{].*)", re.DOTALL)
_SHARED = re.compile(r"(shared \d+ \d+)\.(.*)", re.DOTALL)

Digests = tuple[str, str, str, str]
Tree = tuple[str, dict[str, Any], list[Any]]


@dataclass(frozen=True)
class Drawn:
    """The parts of one plan.

    Attributes:
        columns: what each column of the result is.
        parts: the other parts, by name: kinds of nodes, ``CONSTANTS``, ``SHAPE``.
    """

    columns: Mapping[str, Digests]
    parts: Mapping[str, Digests]

    def whole(self) -> Digests:
        """One for all."""
        return _joined("whole", [digests for _, digests in sorted({**self.columns, **self.parts}.items())])


def drawn(plan: Any, functions: Collection[int]) -> Drawn:
    """Draws a plan.

    Args:
        plan: as a fingerprint has it: the nodes, and name, meaning and type of each column of the result.
        functions: ``id`` of each part of it that is a Python function's content.
    """
    nodes, columns = plan
    pen = _Pen(functions)
    shape = pen.node(nodes)
    meanings = {name: pen.meaning(meant) for name, meant, _ in columns}
    parts = {kind: _joined(kind, found) for kind, found in pen.parts.items()}
    parts[SHAPE] = _same(_digest(shape))
    if pen.unknown:
        parts[UNKNOWN] = _same(_digest(plan))
    return Drawn(meanings, parts)


def outline(
    main: Drawn, more: Mapping[str, Digests], declared: Mapping[str, object], types: Collection[str]
) -> str:
    """Returns an outline as JSON.

    Args:
        main: the mapping function's plan.
        more: other parts, by name in words.
        declared: what the mapping declares, by name in words.
        types: source columns that are read, each with its type after a space.
    """
    parts = {
        **{name: _written(one) for name, one in main.parts.items()},
        **{name: _written(one) for name, one in more.items()},
        **{name: _digest(value)[:_LONG] for name, value in declared.items() if value},
    }
    read = [found.groups() for one in sorted(types) if (found := _TYPED.fullmatch(one))]
    reads = {column: _digest(type_)[:_SHORT] for column, type_ in read}
    for columns in (
        {name: _written(one) for name, one in main.columns.items()},
        {name: one[EXACT][:_LONG] for name, one in main.columns.items()},
    ):
        text = _json({"columns": columns, "parts": parts, "reads": reads, "version": VERSION})
        if len(_json([columns, parts])) <= MOST:
            return text
    every = _joined("columns", [main.columns[name] for name in sorted(main.columns)])
    parts["columns"] = every[EXACT][:_LONG]
    return _json({"parts": parts, "reads": reads, "version": VERSION})


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:22]


def _same(digest: str) -> Digests:
    return digest, digest, digest, digest


def _joined(name: str, digests: Sequence[Digests]) -> Digests:
    exact, order, functions, literals = (_digest([name, *(one[way] for one in digests)]) for way in _WAYS)
    return exact, order, functions, literals


def _written(digests: Digests) -> str:
    """Returns the exact digest, and the starts of the others that differ from it."""
    exact = digests[EXACT]
    others = ["" if one == exact else one[:_SHORT] for one in digests[1:]]
    return ",".join([exact[:_LONG], *others]).rstrip(",")


@dataclass
class _Pen:
    """The drawer of one plan.

    Attributes:
        functions: see ``drawn``.
        known: what each column in between is.
        parts: those drawn so far.
        unknown: whether some column comes from nowhere.
    """

    functions: Collection[int]
    known: dict[str, Digests] = field(default_factory=dict)
    parts: dict[str, list[Digests]] = field(default_factory=dict)
    unknown: bool = False

    def meaning(self, name: str) -> Digests:
        """Returns what a column is, down to the source."""
        if name in self.known:
            return self.known[name]
        shared = _SHARED.fullmatch(name)
        if shared is not None:
            return _joined(shared[1], [self.meaning(shared[2])])
        self.unknown = self.unknown or _BETWEEN.search(name) is not None
        return _same(_digest(_BETWEEN.sub("#", name)))

    def node(self, text: Any) -> Any:
        """Draws a node and those below it; returns their kinds, one in another."""
        if isinstance(text, str):
            return text
        if len(text) < 5:
            name, *content = text
            self._add(CONSTANTS, _same(_digest(content)))
            return name
        kind, plain, meant, expressions, children = text
        below = [self.node(child) for child in children]
        trees = [_tree(expression) for expression in expressions]
        found = []
        for tree, more in trees:
            if tree[0] == "Alias":
                self.known[tree[1]["exprId"]] = self._expression(tree, more)
            elif not (tree[0] == "AttributeReference" and self._is_new(tree)):
                found.append(self._expression(tree, more))
        # A union's columns are those of all its parts; other nodes may look at columns that nothing above reads.
        taken = [self.meaning(name) for names in meant for name in names if kind != "Union"]
        own = _joined(_digest([kind, plain]), [*found, *taken])
        for place, (tree, _) in enumerate(trees):
            if tree[0] == "AttributeReference" and self._is_new(tree):
                self.known[tree[1]["exprId"]] = _joined(f"{kind} {place}", [own])
        if kind == "Union":
            self._unite(meant)
        if kind == "Project":
            return below[0]
        self._add(kind, own)
        return [kind, *below]

    def _add(self, name: str, digests: Digests) -> None:
        self.parts.setdefault(name, []).append(digests)

    def _is_new(self, tree: Tree) -> bool:
        name = tree[1]["exprId"]
        return name.startswith("#") and name not in self.known

    def _unite(self, meant: Sequence[Sequence[str]]) -> None:
        """A column of a union is called as its first part's: it is that of all parts."""
        found = [
            _joined("Union", [self.meaning(name) for name in names]) for names in zip(*meant, strict=False)
        ]
        self.known |= dict(zip(meant[0], found, strict=False))

    def _expression(self, tree: Tree, more: Sequence[Any]) -> Digests:
        while tree[0] == "Alias":
            tree = tree[2][0]
        if tree[0] == "AttributeReference" and not more:
            return self.meaning(tree[1]["exprId"])
        exact, order, functions, literals = (
            _digest([self._value(tree, way, {}), *(self._more(one, way) for one in more)]) for way in _WAYS
        )
        return exact, order, functions, literals

    def _value(self, tree: Tree, way: int, numbers: dict[str, str]) -> object:
        kind, fields, children = tree
        if kind == "Alias":
            return self._value(children[0], way, numbers)
        if kind == "AttributeReference":
            return self.meaning(fields["exprId"])[way]
        if kind == "Literal" and way == LITERALS:
            return "literal"
        below = [self._value(child, way, numbers) for child in children]
        if kind == "CreateNamedStruct" and way == ORDER:
            below = sorted(zip(below[::2], below[1::2], strict=False), key=_digest)
        return [kind, self._plain(fields, way, numbers), below]

    def _more(self, part: Any, way: int) -> object:
        """Returns what an expression's JSON leaves out: functions, subqueries, options, bytes."""
        if way == FUNCTIONS and id(part) in self.functions:
            return "function"
        if way == LITERALS and isinstance(part, str):
            return "literal"
        numbers: dict[str, str] = {}
        return _BETWEEN.sub(lambda name: self._called(name[0], way, numbers), json.dumps(part, default=str))

    def _called(self, name: str, way: int, numbers: dict[str, str]) -> str:
        """Returns what a column in between is; of one within the expression alone its number there."""
        if name in self.known:
            return self.known[name][way]
        return numbers.setdefault(name, f"#{len(numbers)}")

    def _plain(self, value: Any, way: int, numbers: dict[str, str]) -> Any:
        """Returns fields, perhaps with structs in one order."""
        if isinstance(value, str) and _BETWEEN.fullmatch(value):
            return self._called(value, way, numbers)
        if isinstance(value, list):
            return [self._plain(one, way, numbers) for one in value]
        if not isinstance(value, dict):
            return value
        plain = {key: self._plain(one, way, numbers) for key, one in value.items()}
        if way == ORDER and isinstance(plain.get("fields"), list):
            plain["fields"] = sorted(plain["fields"], key=_digest)
        return plain


def _tree(expression: Sequence[Any]) -> tuple[Tree, list[Any]]:
    """Returns an expression as a tree, and what comes behind its parts."""
    parts = iter(expression)
    return _branch(parts), list(parts)


def _branch(parts: Iterator[Any]) -> Tree:
    kind, number, fields = next(parts)
    return kind, fields, [_branch(parts) for _ in range(number)]
