"""A whole migration with a peculiar password: nothing that it writes holds the password, or is open to others."""

from __future__ import annotations

import base64
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.embedded.process import scratch_directory
from migrator.wiring import parts as wiring
from scenarios.bench.orders.old_schema import create
from scenarios.project import make_project
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database, embedded_postgres

pytestmark = [pytest.mark.integration, pytest.mark.spark]

CORE = "Zq7Kw9Xy4Bt2"
"""Survives every way to quote the rest of the password."""
PASSWORD = f"a'b\"c\\d%40 {CORE} ä<&>/?#:@"
CONTROL = "Nm5Rt8Vc1Hg6"
"""Another word, which is given away on purpose: what looks for the first one must find this one."""
COMMANDS = (
    ("run", "--until", "caught-up", "--plain"),
    ("status", "--json"),
    ("dump", "start", "--table", "orders", "--from", "1", "--to", "3"),
    ("verify", "--conf", f"spark.migrator.note={CONTROL}"),
)
SPARK = """
[spark]
master = "local[2]"
[spark.conf]
"spark.eventLog.enabled" = "true"
"spark.eventLog.compress" = "false"
"spark.eventLog.dir" = "{events}"
[apply]
staging = "executors"
staging_rows = 1
"""


def finds(folder: Path, word: str) -> list[str]:
    """Files below a folder in which the word stands, as itself or in one of its three forms within Base64."""
    encoded = [base64.b64encode(b"x" * shift + word.encode()).strip(b"=") for shift in range(3)]
    needles = [word.encode(), *(text[4 if shift else 0 : -2] for shift, text in enumerate(encoded))]
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(needle in path.read_bytes() for needle in needles)
    ]


def open_to_others(folder: Path) -> list[str]:
    """Files and folders below a folder, itself included, that group or others have any right to."""
    return [
        f"{path} {path.stat().st_mode:o}"
        for path in (folder, *folder.rglob("*"))
        if path.stat().st_mode & 0o77
    ]


class CommandLines:
    """Looks at the command lines of all processes while commands run; keeps those with a word of ours."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> CommandLines:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                with suppress(OSError):  # it has ended
                    line = file.read_bytes().decode("utf-8", "replace")
                    self.seen |= {word for word in (CORE, CONTROL) if word in line}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Both sides on a server that wants the password; one side has it from a variable, one from a file."""
    with (
        scratch_directory("migrator-secrecy-") as folder,
        embedded_postgres(folder / "pg", auth="scram-sha-256", password=PASSWORD) as server,
    ):
        for name in ("old", "new"):
            server.create_database(name)
        old, new = (
            Database(server.host, server.port, name, server.superuser, PASSWORD, "postgresql")
            for name in ("old", "new")
        )
        create(scenario_database(old), 50)
        monkeypatch.setenv("OLD_PASSWORD", PASSWORD)
        (tmp_path / "new.password").write_text(PASSWORD)
        yield Project(old, new, _configured(tmp_path, old, new))


def _configured(folder: Path, old: Database, new: Database) -> Path:
    events = folder / "spark-events"
    events.mkdir(mode=0o700)
    config = make_project(
        folder / "project", scenario_database(old), scenario_database(new), run_project.PROJECT, "orders"
    )
    text = config.read_text().replace("\n\n[target]", '\npassword_env = "OLD_PASSWORD"\n\n[target]')
    text = text.rstrip() + '\npassword_file = "../new.password"\n' + SPARK.format(events=events)
    config.write_text(text)
    wiring.upgrade_user_target(configuration.load(config))
    return config


def run_command(project: Project, output: Path, *arguments: str) -> int:
    """A command as a process without umask, whose output goes to a file."""
    with output.open("ab") as file:
        done = subprocess.run(
            [sys.executable, "-m", "migrator", *arguments, "--config", str(project.config)],
            stdout=file,
            stderr=file,
            umask=0,
            check=False,
        )
    return done.returncode


@pytest.mark.slow
def test_nothing_that_is_written_holds_the_password_or_is_open_to_others(
    project: Project, tmp_path: Path
) -> None:
    output = tmp_path / "output"
    with CommandLines() as lines:
        for arguments in COMMANDS:
            wanted = 5 if arguments[0] == "status" else 0  # nobody leads
            assert run_command(project, output, *arguments) == wanted, output.read_text()
    (tmp_path / "new.password").write_text(f"wrong {CORE}")  # errors of all kinds of connections
    for command in ("run", "status", "verify"):
        assert run_command(project, output, command) == 2
    text = output.read_text()
    assert "password authentication failed" in text
    assert "equal" in text
    (tmp_path / "new.password").unlink()
    assert finds(tmp_path, CORE) == []
    assert open_to_others(project.config.parent / ".migrator") == []
    # the controls: a word that was given away is found where it must be, and open files are seen
    assert lines.seen == {CONTROL}
    assert [name for name in finds(tmp_path, CONTROL) if name.startswith("spark-events")]
    (tmp_path / "planted").write_bytes(base64.b64encode(f"x{CORE}".encode()))
    assert finds(tmp_path, CORE) == ["planted"]
    (project.config.parent / ".migrator" / "spark.log").chmod(0o604)
    assert len(open_to_others(project.config.parent / ".migrator")) == 1
