"""A report on the terminal, or as the one document on standard output."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.cli.options import print_report


def test_for_people_its_text_and_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_report(tmp_path, "verify", ["EQUAL", "2 tables"], as_json=False)
    files = "verify.html, verify.json, verify.xml, verify.txt"
    assert capsys.readouterr().out == f"EQUAL\n2 tables\nreports: {tmp_path}/{files}\n"


def test_for_programs_the_document_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "verify.json").write_text('{"verdict": "größer"}', "utf-8")
    print_report(tmp_path, "verify", ["EQUAL"], as_json=True)
    assert capsys.readouterr() == ('{"verdict": "größer"}\n', "")
