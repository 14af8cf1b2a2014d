"""Writes a report into a folder: ``report.html``, ``junit.xml``, ``report.json``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from scenarios.report import terminal
from scenarios.report.document import document
from scenarios.report.facts import facts
from scenarios.report.junit import junit
from scenarios.report.page import page
from scenarios.report.tables import Table
from scenarios.run_result import RunResult


def write(
    results: Sequence[RunResult], folder: Path, kill_table: Table | None = None, torture: Table | None = None
) -> str:
    """Writes the three files and returns the terminal's summary of the same.

    Args:
        results: one per run; broken variants (``mutant``) among them are negative controls.
        folder: made if it doesn't exist.
        kill_table: what became of the broken variants in simulation.
        torture: what other tools did under the same hazards.
    """
    folder.mkdir(parents=True, exist_ok=True)
    known = facts(results)
    made_at = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    tool = version("dbmigrator")
    (folder / "report.html").write_text(page(known, kill_table, torture, made_at, tool), encoding="utf-8")
    (folder / "junit.xml").write_text(junit(known, kill_table), encoding="utf-8")
    found = document(known, kill_table, torture, made_at, tool)
    (folder / "report.json").write_text(
        json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    return terminal.text(known, kill_table)
