"""The rules for documents: their length, and that what they name is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
CODE = ("migrator", "transforms", "verify", "scenarios", "tests")
FILE = re.compile(r"([\w./-]*\w\.py)(?:::(?:\w+::)*(\w+).*)?")
FOLDER = re.compile(rf"(?:{'|'.join(CODE)})(?:/\w+)+/?")
MODULE = re.compile(rf"(?:{'|'.join(CODE)})(?:\.\w+)*\.(?!(?:html|json|log|md|txt|xml|yml)$)\w+")
MEMBER = re.compile(r"([A-Z][A-Za-z]*[a-z])\.(\w+)")
DEFINED = re.compile(r"^\s*(?:class|def) (\w+)", re.MULTILINE)
ELSEWHERE = {
    "utils.py",
    "reverse.py",
    "SparkContext.addFile",
    "CatalystSqlParser.parseQuery",
    "Dataset.toArrowBatchRdd",
}
"""What others have, and what nobody shall have."""
MAX_NOTE_LINES = 40
MAX_PAGE_LINES = 400

# Pages above the limit, until each is split.
TO_SPLIT: set[str] = set()


def too_long(folder: Path, pattern: str, limit: int) -> dict[str, int]:
    """Documents of a folder that have more lines than the limit, by name."""
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in folder.rglob(pattern)}
    return {name: lines for name, lines in sorted(lengths.items()) if lines > limit}


def test_a_note_of_a_decision_is_short() -> None:
    notes = sorted(DOCS.glob("decisions/[0-9]*.md"))
    assert len(notes) > 80, "the notes are not found any more"
    assert too_long(DOCS / "decisions", "[0-9]*.md", MAX_NOTE_LINES) == {}
    told = " ".join((DOCS / "decisions" / "README.md").read_text("utf-8").split())
    assert f"at most {MAX_NOTE_LINES} lines" in told


def test_a_page_is_short() -> None:
    assert len(list(DOCS.rglob("*.md"))) > 40, "the pages are not found any more"
    assert too_long(DOCS, "*.md", MAX_PAGE_LINES).keys() - TO_SPLIT == set()


def test_only_pages_above_the_limit_wait_to_be_split() -> None:
    assert TO_SPLIT - too_long(DOCS, "*.md", MAX_PAGE_LINES).keys() == set()


def test_a_long_document_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "0001-short.md").write_text("line\n" * MAX_NOTE_LINES)
    (tmp_path / "0002-long.md").write_text("line\n" * (MAX_NOTE_LINES + 1))
    (tmp_path / "page.md").write_text("line\n" * MAX_PAGE_LINES)
    (tmp_path / "reference.md").write_text("line\n" * (MAX_PAGE_LINES + 1))
    assert too_long(tmp_path, "[0-9]*.md", MAX_NOTE_LINES) == {"0002-long.md": MAX_NOTE_LINES + 1}
    assert too_long(tmp_path, "*.md", MAX_PAGE_LINES) == {"reference.md": MAX_PAGE_LINES + 1}


DIARY = re.compile(
    r"\bevening\b|as it was then|once more on|we measured|had been seen|the day before", re.IGNORECASE
)
"""Words of who tells how figures came about: that is for notes of decisions, or for nobody."""


def test_no_page_is_a_diary() -> None:
    pages = [page for page in PAGES if page.parent.name != "decisions"]
    assert len(pages) > 50
    assert {page.name: found for page in pages if (found := DIARY.findall(page.read_text("utf-8")))} == {}
    assert DIARY.findall("Again on the 24th, in the evening, with the program as it was then") == [
        "evening",
        "as it was then",
    ]


@cache
def code() -> dict[str, str]:
    """Every file of the code by its path from the root, with its text."""
    return {
        str(path.relative_to(ROOT)): path.read_text("utf-8")
        for folder in CODE
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@cache
def definitions() -> dict[str, list[str]]:
    """The texts of the files that define a class or function, by its name."""
    found: dict[str, list[str]] = {}
    for text in code().values():
        for name in set(DEFINED.findall(text)):
            found.setdefault(name, []).append(text)
    return found


def stale_names(page: str) -> Iterator[str]:
    """What a page quotes as a file, test, folder, module or member of the code, and the code has not."""
    prose = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    yield from (
        quoted for quoted in re.findall(r"`([^`\n]+)`", prose) if quoted not in ELSEWHERE and is_stale(quoted)
    )


def is_stale(quoted: str) -> bool:
    """Tells whether it has the form of something in the code, and isn't there."""
    if file := FILE.fullmatch(quoted):
        texts = [text for path, text in code().items() if f"/{path}".endswith(f"/{file[1].lstrip('/')}")]
        return not any(f"def {file[2]}(" in text for text in texts) if file[2] else not texts
    if FOLDER.fullmatch(quoted):
        return not (ROOT / quoted).exists()
    if member := MEMBER.fullmatch(quoted):
        return not any(re.search(rf"\b{member[2]}\b", text) for text in definitions().get(member[1], []))
    return MODULE.fullmatch(quoted) is not None and not is_in_a_module(quoted)


def is_in_a_module(dotted: str) -> bool:
    """Tells whether it is a package, a module, or a name in one; SQL's `migrator.ledger` and so on is a table."""
    path, name = dotted.replace(".", "/"), dotted.rpartition(".")[2]
    owner = path.rpartition("/")[0]
    texts = (code().get(f"{owner}.py"), code().get(f"{owner}/__init__.py"))
    return (
        (ROOT / path).is_dir()
        or f"{path}.py" in code()
        or any(text is not None and re.search(rf"\b{name}\b", text) is not None for text in texts)
        or any(f"migrator.{name}" in text for file, text in code().items() if file.startswith("migrator/"))
    )


def test_what_a_page_names_is_in_the_code() -> None:
    stale = {
        str(page.relative_to(ROOT)): found
        for page in PAGES
        if (found := list(stale_names(page.read_text("utf-8"))))
    }
    assert stale == {}


def broken_links(page: Path) -> list[str]:
    """Links of a page to files that aren't there."""
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", prose)
    return [link for link in links if not (page.parent / link).exists()]


def test_what_a_page_links_to_is_there() -> None:
    assert {str(page.relative_to(ROOT)): found for page in PAGES if (found := broken_links(page))} == {}


def test_a_name_that_has_gone_is_noticed(tmp_path: Path) -> None:
    here = "tests/unit/test_tidy_documents.py"
    there = f"`{here}`, `{here}::test_a_page_is_short`, `migrator/core/`, `Capture.on_record`, `verify.json`"
    assert (
        list(
            stale_names(there + ", `migrator.ledger`, `utils.py`, `spark.sql`, `a.b`\n```\n`gone.py`\n```\n")
        )
        == []
    )
    gone = [
        "core/gone.py",
        f"{here}::test_gone",
        "migrator/gone",
        "Capture.gone",
        "Gone.on_record",
        "verify.gone",
    ]
    assert list(stale_names(", ".join(f"`{name}`" for name in gone))) == gone
    page = tmp_path / "page.md"
    page.write_text("[a](page.md#x) [b](gone.md) `[c](gone.md)` [d](https://example.org/gone.md)")
    assert broken_links(page) == ["gone.md"]
