"""The table of places in docs/README.md names files that are there, and what is defined in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
HEADING = "## Where it happens\n"


def rows(document: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Question, files and names of each row of the table."""
    section = document.partition(HEADING)[2].partition("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and cells[0] not in {"Question", "---"}:
            yield cells[0], re.findall(r"\]\(([^)]+)\)", cells[1]), re.findall(r"`([^`]+)`", cells[2])


def defined(source: str) -> set[str]:
    """Names of a module's classes, functions and values, and of its classes' members, with and without the class."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        found |= names_of(node)
        if isinstance(node, ast.ClassDef):
            members = {name for statement in node.body for name in names_of(statement)}
            found |= members | {f"{node.name}.{name}" for name in members}
    return found


def names_of(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    if isinstance(node, ast.Assign):
        return {target.id for target in node.targets if isinstance(target, ast.Name)}
    return set()


def missing(folder: Path, files: list[str], names: list[str]) -> list[str]:
    """What a row promises and its files don't have: each name is in one of them, each file has one of the names."""
    paths = [folder / file for file in files]
    gone = [str(path) for path in paths if not path.is_file()]
    if gone or not names:
        return gone
    has = {path: defined(path.read_text()) for path in paths}
    return [name for name in names if not any(name in found for found in has.values())] + [
        str(path) for path, found in has.items() if not found & set(names)
    ]


ROWS = list(rows((DOCS / "README.md").read_text()))


ASKED = (
    "chunk row dropped",
    "batch committed",
    "verify do first",
    "setting mean",
    "add an engine",
    "test do I write",
)
"""What a newcomer asks first."""


def test_the_table_has_rows() -> None:
    assert len(ROWS) > 10
    assert all(files for _, files, _ in ROWS)
    questions = [question for question, _, _ in ROWS]
    assert [asked for asked in ASKED if not any(asked in question for question in questions)] == []


@pytest.mark.parametrize(("question", "files", "names"), ROWS, ids=[question for question, _, _ in ROWS])
def test_it_happens_there(question: str, files: list[str], names: list[str]) -> None:
    assert missing(DOCS, files, names) == [], question


def test_what_has_moved_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        "LIMIT: int = 1\n\n\nclass Loop:\n    def run(self) -> None:\n        pass\n"
    )
    table = "| Question | File | Name there |\n| --- | --- | --- |\n| Where? | [a](a.py) | `Loop.run` |\n"
    document = f"# x\n\n{HEADING}\n{table}"
    [(question, files, names)] = rows(document + "\n## Next\n\n| Else | [b](b.py) | `c` |\n")
    assert (question, files, names) == ("Where?", ["a.py"], ["Loop.run"])
    assert missing(tmp_path, files, names) == []
    assert missing(tmp_path, files, ["Loop.stop", "LIMIT"]) == ["Loop.stop"]
    assert missing(tmp_path, ["b.py"], names) == [str(tmp_path / "b.py")]
