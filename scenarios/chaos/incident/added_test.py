"""The test of a project that an incident becomes: a file of pytest beside a copy of the incident."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from migrator.errors import ConfigError
from scenarios.chaos.incident.failure import Failure
from scenarios.chaos.incident.incident_file import unpacked

_TEXT = '''"""An incident that must not come back: replayed on throw-away servers with the project as it is now.

Written by `migrator incident add`. Seen then:
{seen}
"""


def test_{name}(migration):
    migration.replay("{file}")
    migration.assert_mended()
'''


def added(file: Path, folder: Path, name: str = "") -> tuple[Path, Path]:
    """Copies an incident into a folder of tests and writes its test; returns both files.

    Args:
        file: the incident.
        folder: of the tests, made if missing.
        name: of the test; by default that of the file.

    Raises ``ConfigError`` for a file that is no incident, or holds no failure, and where the test is there.
    """
    incident = unpacked(file)
    if not incident.failure.anything():
        raise ConfigError(
            "the incident holds no failure, so its test could not fail",
            where=str(file),
            remedy="run `migrator verify` and collect again, or collect with --halted",
        )
    word = re.sub(r"\W+", "_", name or file.stem).strip("_").lower() or "incident"
    test, copy = folder / f"test_{word}.py", folder / "incidents" / f"{word}.zip"
    if test.exists():
        raise ConfigError(
            "a test of this name is there already", where=str(test), remedy="give another --name"
        )
    copy.parent.mkdir(parents=True, exist_ok=True)
    if copy.resolve() != file.resolve():
        shutil.copyfile(file, copy)
    test.write_text(_TEXT.format(name=word, file=f"incidents/{copy.name}", seen=_seen(incident.failure)))
    return test, copy


def _seen(failure: Failure) -> str:
    lines = failure.lines()[:5]
    return "\n".join(f"    {line}".replace("\\", "\\\\").replace('"""', "'''") for line in lines)
