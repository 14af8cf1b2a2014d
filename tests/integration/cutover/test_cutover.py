"""Cut-overs of a run that is a process of its own, beside clients that find the open side by themselves."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from migrator.errors import CutoverError
from migrator.model.cutover.record import Side
from tests.integration.cutover.clients import Clients, as_application
from tests.integration.cutover.led import leading, open_side, ready, record_of
from tests.integration.cutover.two_way import TwoWay, made
from tests.integration.waiting import await_true

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("engine", ["pg-pg", "maria-pg", "maria-maria"])
def test_there_and_back_and_there_again_loses_nothing_that_was_acknowledged(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun(engine, request, tmp_path)
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", "300") == 0
        assert open_side(project) is Side.NEW
        with Clients(project) as clients:
            clients.write_for(2)
            assert project.command("cutover", "back", "--wait", "300") == 0
            assert open_side(project) is Side.OLD
            clients.write_for(2)
        clients.check()
        # What the new side's own application hasn't kept up is right again, by a mirror that followed both sides.
        await_true(lambda: project.differing() == {}, "both sides are equal", 30)
        with Clients(project, first=500_000) as others:
            others.write_for(1)
            assert project.command("cutover", "start", "--wait", "300") == 0
            others.write_for(2)
        others.check()
        await_true(lambda: project.differing("spending") == {}, "both sides are equal", 30)
        assert project.command("cutover", "status") == 0


def begun(engine: str, request: pytest.FixtureRequest, tmp_path: Path, more: str = "") -> TwoWay:
    """The project, dumped, found equal, its plan accepted."""
    project = made(engine, request, tmp_path / "project")
    project.config.write_text(project.config.read_text() + more)
    project.run_here()
    assert project.command("verify") == 0
    assert project.command("cutover", "plan", "--accept") == 0
    return project


def test_what_cannot_be_done_now_is_refused_by_name(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = made("pg-pg", request, tmp_path / "project")
    with pytest.raises(CutoverError, match="no plan of a cut-over was accepted"):
        project.command("cutover", "start")
    project.run_here()
    assert project.command("cutover", "plan", "--accept") == 0
    for others in (("reset", "--yes"), ("remap", "spending"), ("dump", "start", "--table", "orders")):
        with pytest.raises(CutoverError, match="can't be done while a cut-over is planned or under way"):
            project.command(*others)
    for wanted in ("back", "abort"):
        with pytest.raises(CutoverError, match=f"can't take '{wanted}' now"):
            project.command("cutover", wanted)
    assert project.command("cutover", "start", "--wait", "0.5") == 3, "nobody leads"
    with pytest.raises(CutoverError, match="start is under way"):
        project.command("cutover", "start")
    assert project.command("cutover", "abort", "--wait", "5") == 0, "which needs nobody who leads"
    capsys.readouterr()
    assert project.command("cutover", "status") == 0
    assert "old side open; an operator aborted it before it began" in capsys.readouterr().out


def test_a_hook_that_fails_undoes_the_switch(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """It is called for the way there, and once more to point back; its words are in the record."""
    said = tmp_path / "said"
    script = tmp_path / "hook.sh"
    script.write_text(
        f'cat >> {said}; echo >> {said}; test "$MIGRATOR_SIDE" = old || (echo no way >&2; exit 3)\n'
    )
    project = begun("pg-pg", request, tmp_path, f'\n[cutover]\nhook = "sh {script}"\n')
    application = as_application(project.old)
    with leading(project):
        ready(project)
        assert project.command("cutover", "start", "--wait", "300") == 1
        assert open_side(project) is Side.OLD
        assert "exit code 3: no way" in record_of(project).reason
        application.execute("UPDATE customer SET name = 'still here' WHERE customer_id = 1")
        assert [line.count('"side": "new"') for line in said.read_text().splitlines()] == [1, 0]
        script.write_text("exit 0\n")
        assert project.command("cutover", "start", "--wait", "300") == 0
        assert open_side(project) is Side.NEW
        with pytest.raises(psycopg.Error, match="handed over: write to"):
            application.execute("UPDATE customer SET name = 'late' WHERE customer_id = 1")


def test_an_open_transaction_is_waited_for_and_the_switch_undone_in_time(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path, "\n[cutover]\npause_s = 3.0\n")
    application = as_application(project.old)
    connection = application.connect()
    with leading(project):
        ready(project)
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("UPDATE customer SET name = 'open' WHERE customer_id = 1")
            assert project.command("cutover", "start", "--wait", "300") == 1
            assert open_side(project) is Side.OLD
            assert "took more than 3 s" in (reason := record_of(project).reason)
            assert "of application" in reason, "whoever is in the way is named"
            cursor.execute("COMMIT")
        connection.close()
        assert project.command("cutover", "start", "--wait", "300") == 0
    assert project.new.query("SELECT full_name FROM person WHERE person_id = 1") == [("open",)]


def test_a_way_back_that_loses_something_is_refused_unless_it_was_accepted_by_name(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    project = made("pg-pg", request, tmp_path / "project")
    reverse = project.config.parent / "reverse.py"
    exact = 'F.col("full_name").alias("name")'
    assert exact in reverse.read_text()
    reverse.write_text(reverse.read_text().replace(exact, 'F.upper("full_name").alias("name")'))
    project.run_here()
    capsys.readouterr()
    assert project.command("cutover", "plan", "--accept", "--json") == 2
    refused = json.loads(capsys.readouterr().out)
    assert (refused["refusals"], refused["accepted"], refused["plan"]) == (1, False, None)
    (loss,) = [item for way in refused["ways"] for item in way["items"] if item["outcome"] == "lossy"]
    assert loss["subject"] == "customer.name"
    with pytest.raises(CutoverError, match="no plan of a cut-over was accepted"):
        project.command("cutover", "start")
    project.config.write_text(project.config.read_text() + '\n[back]\naccept_lossy = ["customer.name"]\n')
    assert project.command("cutover", "plan", "--accept", "--json") == 0
    taken = json.loads(capsys.readouterr().out)
    assert (taken["refusals"], taken["accepted"]) == (0, True)
    assert [side["side"] for side in taken["sides"]] == ["old", "new"]
    assert all(side["by_hand"] for side in taken["sides"])


def test_a_plan_that_is_given_up_leaves_nothing_of_the_way_back_and_another_may_follow(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path)
    application = as_application(project.new)
    slots = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
    with leading(project):
        ready(project)
        assert project.new.query(slots) == [("migrator_shop_back",)]
        with pytest.raises(psycopg.Error, match="handed over: write to"):
            application.execute("UPDATE person SET full_name = 'no' WHERE person_id = 1")
        assert project.command("cutover", "finish", "--wait", "300") == 0
        assert project.new.query(slots) == []
        assert project.old.query("SELECT count(*) FROM migrator.ledger WHERE migration = 'shop_back'") == [
            (0,)
        ]
        application.execute("UPDATE person SET full_name = 'name 1' WHERE person_id = 1")
        assert project.command("cutover", "plan", "--accept") == 0
        ready(project)
        assert project.command("cutover", "start", "--wait", "300") == 0
        assert open_side(project) is Side.NEW
