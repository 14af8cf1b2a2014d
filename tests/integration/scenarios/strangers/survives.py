"""A project of ours with an old schema of somebody else's, tested as its users would."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path


def survives(kept: Path, folder: Path, schema: str, kind: str) -> None:
    """Runs the project's own test under hazards with pytest, in a folder of its own. Fails as that fails."""
    project = folder / "project"
    shutil.copytree(kept, project)
    config = project / "migration.toml"
    config.write_text(config.read_text().replace('"postgresql"', f'"{kind}"', 1))
    (project / "tests" / "survives.py").rename(project / "tests" / "test_chaos.py")
    (project / "schema.sql").write_text(schema)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_chaos.py"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
    assert (project / ".scenarios" / "report" / "report.html").exists()
