"""The whole demo: there, over, back and both verdicts; with a kill in each switch, and with a way back that loses."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest

from scenarios import demo

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

FEW = ("--every", "80", "--new-side", "5")


def test_killed_in_both_switches_it_comes_back_with_all_that_was_acknowledged(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "migrator", "demo", *FEW, "--folder", str(tmp_path / "demo")],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    said, leader, switching, kills = [], 0, False, 0
    try:
        for line in process.stdout or ():
            said.append(line)
            if found := re.search(r"migrator run, process (\d+)", line):
                leader = int(found[1])
            if re.search(r"migrator cutover (start|back): the writers", line):
                switching = True
            elif switching and "step " in line:
                os.kill(leader, signal.SIGKILL)
                switching, kills = False, kills + 1
        assert process.wait() == 0, "".join(said)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(90)
    text = "".join(said)
    assert kills == text.count("was killed; starting it again") == 2, text
    assert "live verdict: equal; at rest: the way there equal, the way back equal" in text
    assert re.search(r"all [\d,]+ acknowledged transactions are on both sides", text)
    for side in ("new", "old"):
        assert int(re.search(rf"(\d+) commits on the {side} side", text)[1]) > 0, text  # type: ignore[index]


def test_a_way_back_that_loses_a_column_fails_the_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A column that nothing carries back is no refusal: old rows keep their value. So the verdict has to tell."""
    project = tmp_path / "flights"
    shutil.copytree(demo.PROJECT, project)
    reverse = project / "reverse.py"
    carried = '        F.col("air_time_min").alias("air_time"),\n'
    assert carried in reverse.read_text()
    reverse.write_text(reverse.read_text().replace(carried, ""))
    monkeypatch.setattr(demo, "PROJECT", project)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    command: click.Command = demo.demo
    code = command.main([*FEW, "--folder", str(tmp_path / "demo")], standalone_mode=False)
    said = capsys.readouterr().out
    assert code == 1, said
    assert "the way there DIFFERENT" in said
    assert "air_time_min" in said
