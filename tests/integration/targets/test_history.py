"""Every act is kept in each kind of target, in the transaction that moves the ledger where one does."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner
from sqlalchemy import text

from migrator.cli import cli
from migrator.config.project import Settings, load
from migrator.errors import FencedError
from migrator.run.steps import no_step
from migrator.schema import acts
from migrator.schema.acts import START, STOP, TAKEOVER, Acts
from migrator.wiring import target as wiring_target
from tests.integration import run_project
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture(params=["new_pg", "new_mysql", "new_maria"])
def settings(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database) -> Settings:
    new: Database = request.getfixturevalue(request.param)
    return load(run_project.make(tmp_path / "project", old_pg, new).config)


def led(settings: Settings, epoch: int) -> None:
    """The ledger is taken over, as a run does it first."""
    target, _ = wiring_target.target_writer(settings, no_step)
    try:
        target.open(epoch)
    finally:
        target.close()


def kinds(history: Acts) -> list[str]:
    return [each.act for each in history.newest(100)]


def test_who_leads_is_written_with_the_epoch(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    history = wiring_target.acts(settings)
    assert history.newest(10) == [], "nothing is there before the first act"
    led(settings, 1)
    led(settings, 1)  # connected again, under the same epoch
    led(settings, 2)
    history.stopped("done for today", "it was told to")
    history.stopped("", "twice")
    led(settings, 3)
    monkeypatch.setattr(os, "getpid", lambda: 1)
    led(settings, 4)
    assert kinds(history) == [START, START, STOP, START, TAKEOVER]
    *_, stop, third, last = history.newest(10)
    assert (stop.reason, stop.detail, stop.epoch) == ("done for today", "it was told to", 2)
    assert (last.epoch, last.process) == (4, 1)
    assert f"process {third.process} on {third.host} didn't say that it stopped" in last.detail
    with pytest.raises(FencedError):
        led(settings, 2)
    assert len(kinds(history)) == 5, "what was refused was done by nobody"


def test_the_oldest_are_forgotten(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "KEPT", 3)
    history = wiring_target.acts(settings)
    for number in range(6):
        history.add("dump start", detail=str(number))
    found = [int(each.detail) for each in history.newest(100)]
    assert found[-1] == 5
    assert 3 <= len(found) <= 4


def test_a_reason_of_any_length_and_any_letters_is_kept(settings: Settings) -> None:
    history = wiring_target.acts(settings)
    history.add("remap", "größer \U0001f600 \0 \udcff' -- " + "x" * 5000, "y" * 5000)
    (act,) = history.newest(1)
    assert act.reason.startswith("größer \U0001f600")
    assert act.reason.endswith("...")
    assert (len(act.reason), len(act.detail)) == (500, 2000)


def test_commands_say_who_and_why(settings: Settings) -> None:
    file = ["--config", str(settings.file)]
    run = CliRunner()
    done = run.invoke(cli, ["dump", "pace", "--chunk-rows", "100", "--reason", "gently", *file])
    assert done.exit_code == 0, done.output
    (act,) = json.loads(run.invoke(cli, ["history", "--json", *file]).output)
    assert (act["act"], act["reason"], act["login"]) == ("dump pace", "gently", settings.target.user)
    assert act["host"]
    assert act["os_user"]
    assert act["version"]
    line = run.invoke(cli, ["history", *file]).output
    assert "dump pace by" in line
    assert "because gently" in line


def test_what_can_not_be_kept_is_said_and_stays_done(settings: Settings) -> None:
    """Somebody dropped the table: the command is done all the same, and nobody believes that it was kept."""
    wiring_target.acts(settings).add("pace")
    history = wiring_target.acts(settings)
    with history._engine.begin() as connection:
        connection.execute(text(f"DROP TABLE {history._table}"))
    arguments = ["dump", "pace", "--chunk-rows", "100", "--config", str(settings.file)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0
    assert "warning: the history lacks this dump pace" in done.stderr
