"""Measured tables go into a file between two marks; a file without them is refused before anything is measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import MigratorError
from scenarios.bench.bed import Report
from scenarios.bench.capture.commands import capturebench
from scenarios.bench.pipeline import bench, write_reports

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"


@pytest.mark.parametrize("command", [bench, capturebench])
@pytest.mark.parametrize("text", [None, "", f"{END}\n", f"{BEGIN}\n"])
def test_a_file_that_cannot_take_the_table_is_refused_at_once(
    tmp_path: Path, command: object, text: str | None
) -> None:
    file = tmp_path / "table.md"
    if text is not None:
        file.write_text(text)
    done = CliRunner().invoke(command, ["--write", str(file)])  # type: ignore[arg-type]
    assert isinstance(done.exception, MigratorError)
    assert "table.md can't take the table" in str(done.exception)
    assert done.output == ""


def test_the_table_replaces_what_stood_between_the_marks(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    file.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    report = Report("mysql")
    report.add("dump", "5 rows/s")
    write_reports(file, [report], 1_000)
    text = file.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "5 rows/s" in text
    assert "old" not in text
