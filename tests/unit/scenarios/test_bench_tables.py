"""Measured tables go into a file between two marks; a file without them is refused before anything is measured."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from migrator.errors import MigratorError
from scenarios.bench.bed import Report
from scenarios.bench.capture.commands import capturebench
from scenarios.bench.picture import figures, picture
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


def test_a_part_writes_no_table(tmp_path: Path) -> None:
    file = tmp_path / "table.md"
    file.write_text(f"{BEGIN}\n{END}\n")
    done = CliRunner().invoke(bench, ["--only", "application", "--write", str(file)])
    assert done.exit_code == 2
    assert "leave --write out" in done.output


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


@pytest.mark.parametrize("page", ["benchmarks", "benchmarks-capture"])
def test_the_picture_beside_a_page_shows_its_table(page: str) -> None:
    file = Path(__file__).parents[3] / "docs" / "development" / f"{page}.md"
    measured = file.read_text("utf-8").partition(BEGIN)[2].partition(END)[0]
    assert len(list(figures(measured))) >= 8
    assert file.with_suffix(".svg").read_text("utf-8") == picture(measured)


def test_a_bar_is_as_long_as_its_ratio_and_text_stays_text() -> None:
    page = (
        "### a<b\n| plain copy | 10 rows/s | 1.00x |\n| dump | 5 rows/s | 0.50x of the plain copy |\n"
        "| log | 2 rows/s | 0.20x of the plain copy |\n| lag | 9 ms | source commit to target commit |\n"
    )
    assert [(row.what, row.ratio) for row in figures(page)] == [("dump", 0.5), ("log", 0.2)]
    drawn = ElementTree.fromstring(picture(page))
    widths = [float(bar.attrib["width"]) for bar in drawn.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] == pytest.approx(2.5 * widths[1])
    assert "a<b" in {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}


def test_a_figure_beside_another_tool_is_the_row_above() -> None:
    page = "### x\n| log | 20 rows/s | |\n| &nbsp;&nbsp;Other | 4 /s | ours: 5.0x |\n"
    [row] = figures(page)
    assert (row.what, row.measured, row.ratio) == ("log, beside Other", "20 rows/s", 5.0)
