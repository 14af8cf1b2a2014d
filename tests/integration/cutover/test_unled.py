"""Switches that their leader cannot go on with: changed tables, a mapping that cannot be read, a lost side."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psycopg
import pytest

from migrator.model.cutover.record import Phase, Side
from scenarios.proxy.proxy import TcpProxy
from tests.integration.cutover.clients import as_application
from tests.integration.cutover.led import leading, open_side, ready, record_of
from tests.integration.cutover.test_cutover import begun
from tests.integration.cutover.two_way import TwoWay
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

_LATE = "UPDATE customer SET name = 'goes on' WHERE customer_id = 1"


def stopped_at(project: TwoWay, step: str) -> None:
    """The leader is killed at a step of the way to the new side."""
    with leading(project, crash_at=f"cutover.{step}") as process:
        ready(project)
        project.command("cutover", "start", "--wait", "0.1")
        process.wait(300)


@pytest.mark.parametrize("engine", ["pg-pg", "maria-pg"])
def test_a_column_renamed_on_the_old_side_while_it_is_fenced_undoes_the_switch_by_name(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """PostgreSQL's log says nothing of it before the next row; MariaDB's ends the run."""
    said, done = tmp_path / "wanted", tmp_path / "done"
    script = tmp_path / "hook.py"
    script.write_text(
        "import os, pathlib, sys, time\n"
        f"said, done = pathlib.Path({str(said)!r}), pathlib.Path({str(done)!r})\n"
        "said.touch()\n"
        "while os.environ['MIGRATOR_SIDE'] == 'new' and not done.exists(): time.sleep(0.05)\n"
    )
    more = f'\n[cutover]\nhook = "{sys.executable} {script}"\npause_s = 100.0\n'
    project = begun(engine, request, tmp_path, more)
    process = project.process("run", "--plain")
    try:
        ready(project)
        project.command("cutover", "start", "--wait", "0.1")
        await_true(said.exists, "the hook is asked to point the application", 120)
        project.old.execute("ALTER TABLE customer RENAME COLUMN email TO address")
        done.touch()
        await_true(lambda: record_of(project).phase is Phase.IDLE, "the switch is undone", 120)
        record = record_of(project)
        assert record.open_side is Side.OLD
        assert "customer" in record.reason, record.reason
        as_application(project.old).execute(_LATE)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        print(process.communicate(timeout=90)[0][-3000:])


def test_a_run_that_cannot_start_again_opens_the_side_that_was_open(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Its mapping can't be read any more: nobody would go on with the switch, whatever its limit."""
    project = begun("pg-pg", request, tmp_path, "\n[cutover]\npause_s = 600.0\n")
    stopped_at(project, "draining")
    with pytest.raises(psycopg.Error, match="handed over"):
        as_application(project.old).execute(_LATE)
    mapping = project.config.parent / "mapping.py"
    mapping.write_text(mapping.read_text() + "\nthis is no Python\n")
    process = project.process("run", "--plain")
    assert process.wait(120) != 0
    print(process.communicate()[0])
    assert open_side(project) is Side.OLD
    assert "SyntaxError" in record_of(project).reason or "mapping.py" in record_of(project).reason
    as_application(project.old).execute(_LATE)


def test_an_abort_needs_no_run(
    request: pytest.FixtureRequest, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    project = begun("pg-pg", request, tmp_path, "\n[cutover]\npause_s = 600.0\n")
    stopped_at(project, "turning")
    capfd.readouterr()
    assert project.command("cutover", "abort", "--wait", "5") == 0
    assert "the old side is open: an operator aborted it" in capfd.readouterr().out
    as_application(project.old).execute(_LATE)
    with pytest.raises(psycopg.Error, match="handed over"):
        as_application(project.new).execute("UPDATE person SET full_name = 'no' WHERE person_id = 1")
    with leading(project):
        await_true(lambda: project.differing() == {}, "the way there goes on", 120)


def test_past_the_limit_the_old_side_opens_though_the_new_one_is_lost(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """No leader can begin without the new side: the run that tries again and again undoes the switch meanwhile."""
    project = begun("pg-pg", request, tmp_path, "\n[cutover]\npause_s = 15.0\n")
    stopped_at(project, "draining")
    text = project.config.read_text()
    source, target = text.split("[target]")
    address = next(line for line in target.splitlines() if line.startswith("port"))
    port = int(address.split("=")[1])
    with TcpProxy("127.0.0.1", port) as proxy:
        project.config.write_text(source + "[target]" + target.replace(address, f"port = {proxy.port}", 1))
        proxy.refuse()
        process = project.process("run", "--plain")
        try:
            await_true(lambda: record_of(project).phase is Phase.IDLE, "the switch is undone", 180)
            assert "more than 15 s" in record_of(project).reason
            as_application(project.old).execute(_LATE)
            assert process.poll() is None, "it goes on trying"
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
            print(process.communicate(timeout=90)[0][-3000:])
