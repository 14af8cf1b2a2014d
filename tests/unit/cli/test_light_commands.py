"""What is imported before a command is called: nothing that costs a second."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import click
import pytest

from migrator.cli import cli
from migrator.cli.docs import docs

HEAVY = {"adbc_driver_manager", "alembic", "datacompy", "kazoo", "numpy", "pandas", "psycopg", "pyarrow", "pymysql",
         "pymysqlreplication", "pyspark", "py4j", "sqlalchemy", "yaml"}  # fmt: skip
_PROGRAM = """
import atexit, json, sys
sys.argv[:] = json.loads(sys.argv[1])
from migrator.cli import cli
from migrator.cli.docs import docs
try:
    cli.main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported(*words: str) -> set[str]:
    """The packages that a fresh process has imported after a command."""
    command = [sys.executable, "-c", _PROGRAM, json.dumps(["migrator", *words])]
    done = subprocess.run(command, capture_output=True, text=True)
    return {module.partition(".")[0] for module in json.loads(done.stderr.splitlines()[-1])}


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_asking_the_tool_itself_imports_no_library(option: str) -> None:
    found = imported(option)
    assert "click" in found
    assert found & HEAVY == set()


def test_the_version_costs_little_processor_time() -> None:
    """The least of three: what other processes do to caches is no part of it."""
    spent_s = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-m", "migrator", "--version"], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent_s) < 0.3


def test_a_command_imports_what_it_uses() -> None:
    """The control: what isn't imported above is imported here."""
    assert {"pyspark", "sqlalchemy"} <= imported("verify", "--help")


def test_each_line_of_the_list_is_the_commands_own() -> None:
    context = click.Context(cli)
    names = cli.list_commands(context)
    assert len(names) > 25
    for name in names:
        command = cli.get_command(context, name)
        assert command is not None
        assert cli.summary(context, name) == command.get_short_help_str(), name


def test_completion_knows_commands_and_their_texts() -> None:
    found = cli.shell_complete(click.Context(cli), "re")
    assert [item.value for item in found] == ["rehearse", "remap", "repair", "reset"]
    assert all(item.help for item in found)
    assert "--version" in [item.value for item in cli.shell_complete(click.Context(cli), "--")]


def test_names_of_documents_and_of_files_to_take_are_completed() -> None:
    (parameter,) = docs.params[:1]
    typed = {
        begun: [one.value for one in parameter.shell_complete(click.Context(docs), begun)]
        for begun in ("live", "al", "no-such")
    }
    assert typed["live"] == ["live-page", "live.schema.json"]
    assert "alerts.yml" in typed["al"]
    assert typed["no-such"] == []
