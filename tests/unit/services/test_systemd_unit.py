"""The unit of systemd: everything in it is known to systemd, and it says what documents promise."""

from __future__ import annotations

import configparser
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
UNIT = ROOT / "docker" / "systemd" / "migrator@.service"
PROGRAM = "/opt/migrator/bin/migrator"


def complaints(folder: Path, text: str) -> str:
    """All that systemd says of a unit whose program is there. Its exit code tells little: unknown keys end with 0."""
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze isn't on this machine")
    file = folder / "migrator@.service"
    file.write_text(text.replace(PROGRAM, "/bin/sh"))
    done = subprocess.run([program, "verify", "--man=no", file], capture_output=True, text=True)
    return done.stdout + done.stderr


def test_systemd_has_nothing_to_say_of_it(tmp_path: Path) -> None:
    assert complaints(tmp_path, UNIT.read_text()) == ""


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("KillMode=mixed", "KilMode=mixed"),
        ("WatchdogSec=120", "WatchdogSec=often"),
        ("ProtectSystem=strict", "ProtectSystem=very"),
        ("SystemCallFilter=@system-service", "SystemCallFilter=@no-such-group"),
    ],
)
def test_a_wrong_line_is_noticed(tmp_path: Path, line: str, wrong: str) -> None:
    assert complaints(tmp_path, UNIT.read_text().replace(line, wrong)) != ""


def test_it_stops_and_starts_as_a_run_wants_it() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read_string(UNIT.read_text())
    service = unit["Service"]
    assert service["ExecStart"] == f"{PROGRAM} run --plain"
    assert (service["Type"], service["NotifyAccess"], service["KillMode"]) == ("notify", "main", "mixed")
    assert int(service["WatchdogSec"]) >= 60, "a machine that is busy isn't dead"
    assert int(service["TimeoutStopSec"]) > int(service["WatchdogSec"])
    assert "MemoryDenyWriteExecute" not in service, "Java compiles while it runs"
    assert unit["Unit"]["StartLimitIntervalSec"] == "0"
