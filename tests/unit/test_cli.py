"""The command line: what it writes, what it says, and its exit codes. Whole runs are in tests/integration."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli import cli, main
from migrator.cli.options import spark_options
from migrator.cli.run import summary
from migrator.config import load
from migrator.run.progress import Progress
from transforms.registry import load_mapping


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
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert "remedy: " in shown
    assert "Traceback" not in shown


def test_a_fault_of_ours_has_not_the_exit_code_of_a_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("migrator.config.load", lambda file: 1 // 0)
    assert invoked(monkeypatch, "status") == 2
    assert "fault of the tool" in capsys.readouterr().err


def test_an_unknown_option_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    assert invoked(monkeypatch, "run", "--until", "tomorrow") == 2
    assert invoked(monkeypatch, "run", "--help") == 0


def test_spark_options_are_key_and_value() -> None:
    assert spark_options(("spark.a=1", "spark.b=x=y")) == {"spark.a": "1", "spark.b": "x=y"}
    with pytest.raises(Exception, match="KEY=VALUE"):
        spark_options(("spark.a",))


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "migrator", "--help"], capture_output=True, text=True)
    assert done.returncode == 0
    for command in ("init", "check", "run", "status", "verify", "demo", "bench"):
        assert command in done.stdout


def test_the_summary_tells_lag_only_when_there_was_one() -> None:
    progress = Progress()
    assert "lag" not in summary(progress)
    progress.committed(1)
    assert "lag" in summary(progress)
