"""The command line: what it writes, what it says, and its exit codes. Whole runs are in tests/integration."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.cli import cli, main
from migrator.cli.options import spark_options
from migrator.cli.run.run import refuse_unaccepted, summary
from migrator.cli.status.words import last_change
from migrator.config.project import load
from migrator.errors import MappingError, MigratorError
from migrator.model.requests.request import RequestBook, Scope
from migrator.model.table import TableId
from migrator.run.progress import Progress
from migrator.wiring.observed.status import Status
from transforms import Mapping
from transforms.load import load_mapping


def invoked(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of ``migrator ...`` as a process would have it."""
    monkeypatch.setattr(sys, "argv", ["migrator", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.parametrize("source", ["postgresql", "mariadb"])
def test_init_writes_a_project_that_loads(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "my-shop"
    done = CliRunner().invoke(cli, ["init", str(folder), "--source", source])
    assert done.exit_code == 0, done.output
    settings = load(folder / "migration.toml", {})
    assert (settings.name, settings.source.kind) == ("my_shop", source)
    assert [target.name for target in load_mapping(settings.mapping)] == ["person"]
    compile((folder / "alembic" / "versions" / "0001_new_schema.py").read_text(), "revision", "exec")
    compile((folder / "tests" / "test_mapping.py").read_text(), "test", "exec")


def test_init_never_overwrites(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mapping.py").write_text("mine")
    assert invoked(monkeypatch, "init", str(tmp_path), "--name", "shop") == 2
    assert "already holds mapping.py" in capsys.readouterr().err
    assert (tmp_path / "mapping.py").read_text() == "mine"
    assert not (tmp_path / "migration.toml").exists()


def test_a_users_mistake_is_a_message_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoked(monkeypatch, "run", "--config", str(tmp_path / "none.toml")) == 2
    first, shown = capsys.readouterr().err.split("\n", 1)
    assert first.endswith("run: starting"), "a command that takes seconds says at once that it began"
    assert shown.startswith("error: ")
    assert "remedy: " in shown
    assert "Traceback" not in shown


def test_a_fault_of_ours_has_not_the_exit_code_of_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("migrator.config.project.load", lambda file: 1 // 0)
    assert invoked(monkeypatch, "status") == 2
    assert "fault of the tool" in capsys.readouterr().err


def test_status_shows_warnings_to_people_and_to_machines(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = Status("", None, 0, 0, (), RequestBook(), (), warnings=("capture waits: full",))
    monkeypatch.setattr("migrator.wiring.observed.status.status", lambda settings: found)
    done = CliRunner().invoke(cli, ["init", str(tmp_path / "shop")])
    (config,) = (tmp_path / "shop").glob("migration.toml")
    done = CliRunner().invoke(cli, ["status", "--config", str(config)])
    assert "warning    capture waits: full" in done.output
    done = CliRunner().invoke(cli, ["status", "--json", "--config", str(config)])
    assert json.loads(done.output)["warnings"] == ["capture waits: full"]


def test_an_unknown_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoked(monkeypatch, "run", "--until", "tomorrow") == 2
    assert invoked(monkeypatch, "run", "--help") == 0


def test_only_targets_of_the_mapping_can_be_accepted_and_only_with_a_reason() -> None:
    mapping = Mapping()
    mapping.target("late", key="id")(lambda orders: orders)
    refuse_unaccepted((), mapping, "")
    refuse_unaccepted(("late",), mapping, "they are the same")
    with pytest.raises(MappingError, match="makes no target table 'lat'") as caught:
        refuse_unaccepted(("late", "lat"), mapping, "they are the same")
    assert caught.value.cause == "it makes late"
    with pytest.raises(MappingError, match="without a reason") as caught:
        refuse_unaccepted(("late",), mapping, " ")
    assert "migrator run --accept-mapping late --reason" in caught.value.remedy


def test_spark_options_are_key_and_value() -> None:
    assert spark_options(("spark.a=1", "spark.b=x=y")) == {"spark.a": "1", "spark.b": "x=y"}
    with pytest.raises(Exception, match="KEY=VALUE"):
        spark_options(("spark.a",))


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "migrator", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for command in ("init", "check", "explain", "run", "status", "verify", "demo", "bench"):
        assert command in done.stdout


def test_the_summary_tells_lag_only_when_there_was_one() -> None:
    progress = Progress()
    assert "lag" not in summary(progress)
    progress.committed(1)
    assert "lag" in summary(progress)


# -- dump
# -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose source nobody can reach: what is wrong in itself must be found without it."""
    CliRunner().invoke(cli, ["init", str(tmp_path / "shop")])
    file = tmp_path / "shop" / "migration.toml"
    file.write_text("\n".join(line for line in file.read_text().splitlines() if "password_env" not in line))
    return file


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["start", "--table", "nope"], "captures no table 'nope'"),
        (["start", "--key", "1"], "--key needs exactly one --table"),
        (["start", "--from", "1"], "--from/--to needs exactly one --table"),
        (
            ["start", "--table", "customer", "--key", "1", "--where", "x"],
            "--key and --where don't go together",
        ),
        (["start", "--table", "customer", "--where", "  "], "the predicate is empty"),
        (["start", "--table", "customer", "--keys-file", "no-such-file"], "the file of keys can't be read"),
        (["pause", "r1"], "there is no dump request 'r1'"),
        (["restart", "r1"], "there is no dump request 'r1'"),
    ],
)
def test_a_wrong_dump_request_is_refused_with_place_and_remedy(
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    shown: str,
) -> None:
    assert invoked(monkeypatch, "dump", *arguments, "--config", str(project)) == 2
    said = capsys.readouterr().err
    assert shown in said
    assert "where: " in said
    assert "remedy: " in said
    assert "Traceback" not in said
    assert not (project.parent / ".migrator" / "requests.json").exists()


@pytest.mark.parametrize(
    "option",
    [
        ("--chunk-rows", "-1"),
        ("--delay", "soon"),
        ("--p95", "-0.1"),
        ("--share", "2"),
        ("--delay", "inf"),
        ("--max-lag", "nan"),
    ],
)
def test_a_wrong_pace_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, option: tuple[str, str]
) -> None:
    assert invoked(monkeypatch, "dump", "pace", *option, "--config", str(project)) == 2


def test_an_empty_file_of_keys_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    empty = project.parent / "keys.txt"
    empty.write_text("\n\n")
    options = ("start", "--table", "customer", "--keys-file", str(empty), "--config", str(project))
    assert invoked(monkeypatch, "dump", *options) == 2
    assert "the file of keys is empty" in capsys.readouterr().err


def test_requests_and_pace_are_changed_and_shown_without_any_server(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileRequests(project.parent / ".migrator")
    store.update(lambda old: old.start((TableId("public", "customer"),), Scope(low=("1",), high=(b"\xff",))))
    (project.parent / ".migrator" / "eventlog" / "segments").mkdir(parents=True)
    monkeypatch.setattr("migrator.wiring.parts.peek", lambda target: None)

    def shown(*arguments: str) -> str:
        done = CliRunner().invoke(cli, ["dump", *arguments, "--config", str(project)])
        assert done.exit_code == 0, done.output
        return done.output

    assert "r1  paused  customer: keys from 1 to ff" in shown("pause", "r1")
    assert "r1  running" in shown("resume", "r1")
    assert "r1  cancelled" in shown("cancel", "r1")
    assert "r1  running" in shown("restart", "r1")
    assert shown("pace") == "pace: chunks adapt, 0 s between chunks\n"
    assert "50 rows a chunk, 0.5 s between" in shown("pace", "--chunk-rows", "50", "--delay", "0.5")
    assert "0.5 s between chunks, p95 below 2 s" in shown("pace", "--p95", "2")
    assert "p95 below 2 s, 3 worker(s)" in shown("pace", "--workers", "3")
    assert "3 worker(s), 50% of the time while others work" in shown("pace", "--share", "0.5")
    assert "of the time" not in shown("pace", "--share", "0")  # as configured
    slowed = shown("pace", "--max-active", "40", "--max-lag", "2.5")
    assert "at most 40 active session(s), at most 2.5 s of replica lag" in slowed
    assert "r1  running  customer: keys from 1 to ff" in shown("list")
    document = json.loads(shown("list", "--json"))
    assert document["book"]["requests"][0]["generation"] == 2
    assert document["book"]["requests"][0]["state"] == "running"
    assert document["book"]["pace"] == {
        "chunk_rows": 50,
        "delay_s": 0.5,
        "p95_s": 2.0,
        "workers": 3,
        "active_sessions": 40,
        "replica_lag_s": 2.5,
        "share": 0.0,
    }


def test_a_silent_table_is_told_by_the_age_of_its_last_change() -> None:
    assert last_change(None, 5.0) == "no change seen yet"
    told = last_change(1_700_000_000_000_000, 1_700_001_234.0)
    assert told == "last change 2023-11-14 22:13:20 UTC, 1,234 s ago"
    assert last_change(2_000_000, 1.0).endswith(" 0 s ago"), "clocks may differ"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify", "--wait", "nan"], "not a finite number"),
        (["verify", "--wait", "inf"], "not a finite number"),
        (["verify", "--wait=-1"], "not in the range"),
        (["verify", "--max-rounds", "0"], "not in the range"),
        (["repair", "--wait", "nan"], "not a finite number"),
        (["dual-read", "run", "queries.yaml", "--wait", "nan"], "not a finite number"),
        (["dual-read", "run", "queries.yaml", "--timeout", "inf"], "not a finite number"),
    ],
)
def test_bounds_that_bound_nothing_are_refused(words: list[str], said: str) -> None:
    """Whatever is waited for until NaN seconds have passed is waited for without an end."""
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, said in done.output) == (2, True), done.output


def test_a_librarys_second_line_leaves_no_gap_in_a_message() -> None:
    error = MigratorError("the target can't be reached", cause="Connection refused \tIs the server running?")
    assert error.lines()[1] == "cause: Connection refused Is the server running?"
    assert "\t" not in str(error)
