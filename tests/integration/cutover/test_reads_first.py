"""Reads alone on real servers: the gate by dual reads, the hook for reads, and reads back while writes are new."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from migrator.errors import CutoverError
from migrator.model.cutover.record import Side
from tests.integration.cutover.clients import as_application
from tests.integration.cutover.led import leading, open_side, ready, record_of
from tests.integration.cutover.test_cutover import begun

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

QUERIES = """
format: 1
queries:
  - name: one order
    old: SELECT order_id, cents FROM orders WHERE order_id = :id
    new: >-
      SELECT purchase_id AS order_id, CAST(amount * 100 AS int) {wrong} AS cents
      FROM purchase WHERE purchase_id = :id
    parameters:
      id: {{from: 1, to: 40}}
"""
SETTINGS = """
[cutover]
hook = "sh {hook}"
reads_hook = "sh {hook}"
reads_comparisons = 40
reads_slower = 1000.0
"""


def test_reads_go_first_once_the_gate_is_met_and_come_back_at_any_time(
    request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, hook, queries = tmp_path / "said", tmp_path / "hook.sh", tmp_path / "queries.yaml"
    hook.write_text(f'echo "$MIGRATOR_WHAT $MIGRATOR_SIDE" >> {said}\n')
    project = begun("pg-pg", request, tmp_path, SETTINGS.format(hook=hook))
    assert "reads stay on the old side: no dual read was kept" in capsys.readouterr().out
    with leading(project):
        ready(project)
        queries.write_text(QUERIES.format(wrong="+ 1"))
        assert project.command("dual-read", "run", str(queries), "--wait", "60") == 1
        with pytest.raises(CutoverError, match="reads can't go to the new side yet") as raised:
            project.command("cutover", "reads", "--to", "new")
        assert "wrong" in raised.value.cause
        assert raised.value.remedy == "look at `migrator cutover reads`"
        assert project.command("cutover", "reads") == 1
        queries.write_text(QUERIES.format(wrong=""))
        assert project.command("cutover", "reads") == 1, "the file has changed since"
        assert project.command("dual-read", "run", str(queries)) == 0
        capsys.readouterr()
        assert project.command("cutover", "reads") == 0
        assert "the gate of reads is met" in capsys.readouterr().out

        assert project.command("cutover", "reads", "--to", "new") == 0
        assert said.read_text().splitlines() == ["reads new"]
        assert open_side(project) is Side.OLD
        as_application(project.old).execute("UPDATE customer SET name = 'old' WHERE customer_id = 1")
        with pytest.raises(psycopg.Error, match="handed over: write to"):
            as_application(project.new).execute("UPDATE person SET full_name = 'no' WHERE person_id = 1")
        with pytest.raises(CutoverError, match="the plan can't be changed now"):
            project.command("cutover", "plan", "--accept")

        assert project.command("cutover", "start", "--wait", "60") == 0
        assert said.read_text().splitlines()[1:] == ["writes new"], "reads were there"
        assert project.command("cutover", "reads", "--to", "old") == 0
        assert (open_side(project), record_of(project).reads) == (Side.NEW, Side.OLD)
        with pytest.raises(CutoverError, match="can't take 'finish' now"):
            project.command("cutover", "finish")
        assert project.command("cutover", "back", "--wait", "60") == 0
        assert said.read_text().splitlines()[2:] == ["reads old", "writes old"]
        capsys.readouterr()
        assert project.command("cutover", "status") == 0
        assert "reads go to the old side" in capsys.readouterr().out
        assert project.command("cutover", "start", "--wait", "60") == 0
        assert said.read_text().splitlines()[4:] == ["writes new", "reads new"], "they follow"


def test_reads_that_nothing_can_point_are_refused_and_the_remedy_works(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    project = begun("pg-pg", request, tmp_path)
    with pytest.raises(CutoverError, match="reads can't be pointed alone") as raised:
        project.command("cutover", "reads", "--to", "old")
    assert raised.value.remedy == "set reads_hook in [cutover], then `migrator cutover plan --accept`"
    project.config.write_text(project.config.read_text() + '\n[cutover]\nreads_hook = "true"\n')
    assert project.command("cutover", "plan", "--accept") == 0
    assert project.command("cutover", "reads", "--to", "old", "--wait", "0.5") == 3, "nobody leads"
    with leading(project):
        assert project.command("cutover", "reads", "--to", "old") == 0
