"""Writes a report into a folder: ``report.html``, ``junit.xml``, ``report.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from scenarios.play.run_result import RunResult
from scenarios.report import terminal
from scenarios.report.document import document
from scenarios.report.facts import facts
from scenarios.report.junit import junit
from scenarios.report.page import page
from scenarios.report.tables import Tables


def write(results: Sequence[RunResult], folder: Path, tables: Tables | None = None) -> str:
    """Writes the three files and returns the terminal's summary of the same.

    Args:
        results: one per run; broken variants (``mutant``) among them are negative controls.
        folder: made if it doesn't exist.
        tables: what simulation, broken variants and other tools showed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known, tables = facts(results), tables or Tables()
    made_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    tool = version("dbmigrator")
    (folder / "report.html").write_text(page(known, tables, made_at, tool), encoding="utf-8")
    (folder / "junit.xml").write_text(junit(known, tables), encoding="utf-8")
    found = document(known, tables, made_at, tool)
    (folder / "report.json").write_text(
        json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return terminal.text(known, tables)
