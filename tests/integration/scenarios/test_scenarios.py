"""Whole runs of scenarios on real servers: recorded, judged, replayed, and a bundle that was tampered with."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from migrator.embedded.debian import DebianServer, PackagesUnavailable
from migrator.errors import MigratorError, VerifyError
from scenarios.commands import scenario as command
from scenarios.play import bundle, catalog_files
from scenarios.play.replay import replay
from scenarios.play.run_result import FAILS, HALTS, REFUSED, RESUMES, RunResult
from scenarios.play.runner import run
from scenarios.scenario import Engine
from verify.history.history import PUT, load_history
from verify.history.result import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.spark]

KILLED = """\
title: The pipeline is killed between the target's commit and its knowledge of it
workload: {name: registers, keys: 100, changes: 250, rate_per_s: 100, sessions: 2}
faults: [{do: kill_pipeline, at: "target.committed:2"}]
"""
QUIET = """\
title: Nothing but writers
engines: [mariadb]
workload: {name: bank, keys: 60, changes: 250, rate_per_s: 100, sessions: 2}
"""
STOPS = """\
title: A row that the target refuses
workload: {name: registers, keys: 60, changes: 100, rate_per_s: 60, sessions: 1}
faults:
  - {do: sql, side: source, after_changes: 60, sql: "UPDATE register SET fee = '-1.00', writer = 90, write_no = 1"}
expect: {ending: halts, error: "refuses a row of .*gauge", checks: [D1, D2, D3, D4, D5, D6]}
"""
REFUSES = """\
title: Before images would be incomplete
workload: {name: registers, keys: 20}
faults: [{do: sql, side: source, sql: ALTER TABLE register REPLICA IDENTITY DEFAULT}]
expect: {ending: refused, error: replica identity}
"""


def played(folder: Path, name: str, yaml: str, engine: Engine = "postgresql") -> RunResult:
    path = folder / f"{name}.yaml"
    path.write_text(yaml)
    result = run(catalog_files.load(path), engine, 3, folder / "out", yaml)
    print(json.dumps(dict(result.counts)), result.ending, result.error, result.reason)
    if (result.bundle / bundle.LOG).exists():
        print((result.bundle / bundle.LOG).read_text())
    return result


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return played(tmp_path_factory.mktemp("killed"), "killed", KILLED)


def test_without_a_mysql_server_the_run_says_so_and_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unavailable(_: DebianServer) -> Path:
        raise PackagesUnavailable("a MySQL server can't be had on this machine", cause="no mirror")

    monkeypatch.setattr(DebianServer, "install", unavailable)
    found = played(tmp_path, "quiet", QUIET, "mysql")
    assert (found.ending, found.outcome, found.checks) == (FAILS, Outcome.UNKNOWN, ())
    assert "a MySQL server can't be had on this machine; cause: no mirror" in found.reason


@pytest.mark.slow
def test_a_run_that_is_killed_goes_on_and_every_checker_holds(killed: RunResult) -> None:
    assert (killed.ending, killed.error, killed.reason) == (RESUMES, "", "")
    assert killed.outcome is Outcome.HOLDS
    assert {check.code: check.outcome for check in killed.checks} == dict.fromkeys(
        ("D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8"), Outcome.HOLDS
    )
    assert killed.counts["faults fired"] == 1
    assert killed.counts["processes"] == 2
    assert killed.counts["epochs"] == 2
    assert killed.counts["row changes"] >= 250
    assert killed.counts["chunks"] >= 15
    assert killed.counts["target commits"] >= 3
    assert killed.counts["observed snapshots"] >= 10
    assert killed.counts["segments missed"] == 0


def test_the_record_agrees_with_the_pipeline_about_positions(killed: RunResult) -> None:
    """The recorder's own reading of the log and the event log name the same order for the same write."""
    history = load_history(killed.bundle / bundle.HISTORY)
    names = ["table", "key", "session", "number", "kind", "order"]
    recorded = {tuple(row.values()) for row in history.log.select(names).to_pylist()}
    delivered = [
        tuple(row.values())
        for row in history.deliveries.filter(pa.compute.equal(history.deliveries["origin"], "log"))
        .select(names)
        .to_pylist()
    ]
    assert len(delivered) >= 250
    assert set(delivered) <= recorded


def test_a_bundle_is_whole(killed: RunResult) -> None:
    document = json.loads((killed.bundle / bundle.RESULT).read_text())
    assert document["command"] == "migrator scenario run killed --engine postgresql --seed 3"
    assert {"dbmigrator", "pyspark", "source", "target", "python"} <= set(document["versions"])
    assert (killed.bundle / "killed.yaml").read_text() == KILLED
    assert (killed.bundle / bundle.LOG).read_text().count("--- process") == 2
    assert bundle.read_result(killed.bundle) == killed


def test_a_replay_needs_no_server_and_gives_the_recorded_verdict(killed: RunResult) -> None:
    replayed = replay(killed.bundle)
    assert replayed.same
    assert replayed.found.outcome is Outcome.HOLDS
    told = CliRunner().invoke(command, ["replay", str(killed.bundle)], standalone_mode=False)
    assert told.return_value == 0
    assert "the verdict is the recorded one" in told.output


def test_a_tampered_record_is_found_out(killed: RunResult, tmp_path: Path) -> None:
    folder = tmp_path / killed.bundle.name
    folder.mkdir()
    for path in killed.bundle.rglob("*"):
        if path.is_file():
            goal = folder / path.relative_to(killed.bundle)
            goal.parent.mkdir(exist_ok=True)
            goal.write_bytes(path.read_bytes())
    changes = folder / bundle.HISTORY / "changes.parquet"
    table = pq.read_table(changes)
    values, kinds = table["value"].to_pylist(), table["kind"].to_pylist()
    values[max(place for place, kind in enumerate(kinds) if kind == PUT)] += 1  # one row of one commit
    place = table.schema.get_field_index("value")
    pq.write_table(table.set_column(place, table.schema.field(place), pa.array(values, pa.int64())), changes)
    replayed = replay(folder)
    assert not replayed.same
    assert replayed.found.outcome is Outcome.VIOLATED
    told = CliRunner().invoke(command, ["replay", str(folder)], standalone_mode=False)
    assert told.return_value == 1
    assert "NOT THE RECORDED ONE" in told.output


@pytest.mark.slow
def test_mariadb_is_recorded_and_judged_likewise(tmp_path: Path) -> None:
    result = played(tmp_path, "quiet", QUIET, "mariadb")
    assert (result.ending, result.reason, result.outcome) == (RESUMES, "", Outcome.HOLDS)
    assert result.counts["observed snapshots"] >= 5
    assert not (result.bundle / bundle.SEGMENTS).exists()


@pytest.mark.slow
def test_a_halt_by_name_is_what_was_expected(tmp_path: Path) -> None:
    result = played(tmp_path, "stops", STOPS)
    assert result.ending == HALTS
    assert (result.outcome, result.reason) == (Outcome.HOLDS, "")
    assert "gauge" in result.error
    assert load_history(result.bundle / bundle.HISTORY).description.halted == result.error


@pytest.mark.slow
def test_a_refusal_leaves_no_trace(tmp_path: Path) -> None:
    result = played(tmp_path, "refuses", REFUSES)
    assert result.ending == REFUSED
    assert result.outcome is Outcome.HOLDS
    assert [check.code for check in result.checks] == ["REFUSED"]
    assert result.checks[0].checked >= 5
    with pytest.raises(VerifyError, match="refused before anything was written"):
        replay(result.bundle)
    accepted = played(tmp_path, "accepts", REFUSES.replace("faults:", "server: {}\n#"))
    assert (accepted.ending, accepted.outcome) == (RESUMES, Outcome.VIOLATED)
    assert "replication slot: none before, migrator_scenario" in accepted.checks[0].witnesses[0].headline


def test_a_run_that_can_not_be_played_is_unknown(tmp_path: Path) -> None:
    wrong = QUIET.replace("engines: [mariadb]\n", "server: {wal_level: nonsense}\n")
    path = tmp_path / "wrong.yaml"
    path.write_text(wrong)
    result = run(catalog_files.load(path), "postgresql", 1, tmp_path / "out", wrong)
    assert result.outcome is Outcome.UNKNOWN
    assert "wal_level" in result.error
    assert bundle.read_result(result.bundle) == result
    with pytest.raises(VerifyError, match="no history"):
        replay(result.bundle)


def test_a_folder_that_is_no_bundle_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine-postgresql-1").mkdir()
    (tmp_path / "mine-postgresql-1" / "thesis.txt").write_text("years of work")
    with pytest.raises(MigratorError, match="is no bundle"):
        bundle.create(tmp_path, "mine", "postgresql", 1, "", "")
    with pytest.raises(VerifyError, match="no bundle can be read"):
        replay(tmp_path)
