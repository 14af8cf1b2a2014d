"""The rules for the length of documents."""

from __future__ import annotations

from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
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
