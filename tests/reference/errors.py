"""Every error and finding that the code can print, found by its syntax: an anchor, a text, remedies for each."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from migrator import errors
from tests.reference.blocks import table
from tests.remedies.texts import HOLE, PACKAGES, ROOT, TABLES, texts_of

PAGES: Mapping[str, tuple[str, ...]] = {
    "reference/errors-of-sources.md": ("migrator/adapters/sources", "migrator/connections"),
    "reference/errors-of-targets.md": ("migrator/adapters/targets", "migrator/schema"),
    "reference/errors-of-the-mapping.md": ("transforms",),
    "reference/errors-of-verify.md": ("verify",),
    "reference/errors-of-runs.md": ("migrator",),
}
"""The page of a place in the code: the first whose folders hold it."""
_CLASSES = {
    name
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, errors.MigratorError)
} | {"_Problem"}
_FINDING = "Finding"
_NAMED_HOLE = re.compile(r"\{[a-z_]+\}")
"""A place where ``format`` puts a value in."""


@dataclass(frozen=True)
class Entry:
    """One error's first line with ``{}`` where a value stands, where it is made, and the remedies beside it."""

    place: str
    text: str
    remedies: tuple[str, ...] = ()

    def anchor(self) -> str:
        """Words of the text, joined: it stays while the text stays."""
        return "-".join(re.findall(r"[a-z0-9]+", _NAMED_HOLE.sub(HOLE, self.text).replace("'", "").lower()))


@cache
def entries() -> tuple[Entry, ...]:
    """All of them by text, each once a page."""
    trees = {
        file.relative_to(ROOT).as_posix(): ast.parse(file.read_text("utf-8"))
        for package in PACKAGES
        for file in sorted((ROOT / package).rglob("*.py"))
        if not {"embedded", "memory"} & set(file.parts)
    }
    makers = {name: index for tree in trees.values() for name, index in _makers(tree)}
    found: dict[tuple[str, str], Entry] = {}
    for file, tree in trees.items():
        for text, remedies in _texts(tree, makers):
            before = found.get((_page(file), text))
            told = dict.fromkeys([*(before.remedies if before else ()), *remedies])
            found[_page(file), text] = Entry(before.place if before else file, text, tuple(told))
    return tuple(sorted(found.values(), key=lambda entry: entry.text.lower().lstrip("{}' ")))


def lines(page: str) -> list[str]:
    """A row for each error of a page."""
    seen: Counter[str] = Counter()
    rows = []
    for entry in entries():
        if _page(entry.place) != page:
            continue
        anchor = entry.anchor()
        seen[anchor] += 1
        name = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
        rows.append((f'<a id="{name}"></a>{_shown(entry.text)}', "; or: ".join(map(_shown, entry.remedies))))
    return table(("Error", "Remedy"), rows)


def _page(file: str) -> str:
    return next(page for page, folders in PAGES.items() if file.startswith(folders))


def _shown(text: str) -> str:
    plain = " ".join(_NAMED_HOLE.sub(HOLE, text).replace(HOLE, "…").split())
    return (
        plain.replace("<", "&lt;")
        .replace("*", "\\*")
        .replace("`", "")
        .replace("[", "\\[")
        .replace("_", "\\_")
    )


def _makers(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Functions that put a parameter ``what`` into an error: their names, and its place among the arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            names = [argument.arg for argument in node.args.args if argument.arg not in ("self", "cls")]
            raises = any(isinstance(one, ast.Call) and _name(one.func) in _CLASSES for one in ast.walk(node))
            if "what" in names and raises:
                yield node.name, names.index("what")


def _texts(tree: ast.Module, makers: Mapping[str, int]) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            yield from _rows(node)
        if not isinstance(node, ast.Call):
            continue
        name = _name(node.func)
        words = {word.arg: word.value for word in node.keywords if word.arg}
        if name in _CLASSES:
            what = node.args[0] if node.args else words.get("what")
        elif name == _FINDING:
            what = node.args[2] if len(node.args) > 2 else words.get("problem")
        elif name in makers and len(node.args) > makers[name]:
            what = node.args[makers[name]]
        else:
            continue
        remedy = words.get("remedy") or (node.args[3] if name == _FINDING and len(node.args) > 3 else None)
        remedies = [text for _, text in texts_of(remedy)] if remedy is not None else []
        for _, text in texts_of(what) if what is not None else ():
            yield text, remedies


def _rows(table: ast.Assign | ast.AnnAssign) -> Iterator[tuple[str, list[str]]]:
    """Rows of a table of causes: of the texts in each the last but one says what is wrong, the last the remedy."""
    targets = table.targets if isinstance(table, ast.Assign) else [table.target]
    if not any(isinstance(target, ast.Name) and TABLES.search(target.id) for target in targets):
        return
    for row in ast.walk(table.value or table):
        if isinstance(row, ast.Tuple):
            found = [
                text for cell in row.elts for _, text in texts_of(cell) if not isinstance(cell, ast.Tuple)
            ]
            if len(found) > 1:
                yield found[-2], [found[-1]]


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Name):
        return function.id
    return function.attr if isinstance(function, ast.Attribute) else ""
