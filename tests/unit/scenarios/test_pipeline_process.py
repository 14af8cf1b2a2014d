"""The pipeline's process as the runner sees it: which endings count as named errors."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from migrator.run.failure import Stopping
from scenarios.pipeline import Exit, PipelineProcess


@pytest.mark.parametrize(
    ("printed", "error"),
    [
        ("error: the disk is full\n  where: /state\n", "the disk is full; where: /state"),
        (
            "Traceback (most recent call last):\nOSError\nerror: this is a fault of the tool; please report\n",
            "",
        ),
    ],
)
def test_an_apology_is_no_named_error(printed: str, error: str, tmp_path: Path) -> None:
    package = tmp_path / "migrator"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(f"import sys\nsys.stderr.write({printed!r})\nsys.exit(2)\n")
    pipeline = PipelineProcess(
        tmp_path / "migration.toml", tmp_path / "log", lambda: {"PYTHONPATH": str(tmp_path)}
    )
    try:
        pipeline.start()
        assert ended(pipeline) == Exit(2, error)
    finally:
        pipeline.close()


def ended(pipeline: PipelineProcess) -> Exit | None:
    waiting, deadline = Stopping(), time.monotonic() + 30
    while (exited := pipeline.exited()) is None and time.monotonic() < deadline:
        waiting.wait(0.02)
    return exited
