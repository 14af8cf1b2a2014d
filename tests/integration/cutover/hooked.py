"""Cut-overs whose hook is a script that users copy, as it stands in the documents."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import psycopg
import pytest

from migrator.embedded.debian import DebianServer, PackagesUnavailable
from migrator.model.cutover.record import Side
from tests.integration.cutover.led import leading, open_side, ready, record_of
from tests.integration.cutover.pooled import Application, same_words
from tests.integration.cutover.two_way import TwoWay, made
from tests.integration.waiting import await_true
from tests.servers import Database

HOOKS = Path(__file__).parents[3] / "docs" / "how-to" / "hooks"
REFUSED = "handed over: write to"
"""What a fence says."""


def unpacked(server: DebianServer) -> Path:
    """The server's packages, or a skipped test that says why this machine can't have them."""
    try:
        return server.install()
    except PackagesUnavailable as error:
        pytest.skip(str(error))


def called(
    script: str, settings: dict[str, str], side: str, to: Database, key: str, what: str = "writes"
) -> str:
    """A hook as the leader calls it; what it says, and its exit code before it."""
    told = {
        "MIGRATOR_SIDE": side,
        "MIGRATOR_WHAT": what,
        "MIGRATOR_HOST": to.host,
        "MIGRATOR_PORT": str(to.port),
        "MIGRATOR_DATABASE": to.database,
        "MIGRATOR_KEY": key,
    }
    done = subprocess.run(
        ["sh", HOOKS / script], env={**os.environ, **settings, **told}, capture_output=True, text=True, timeout=30,
        check=False,
    )  # fmt: skip
    return f"{done.returncode} {done.stderr}"


def port_behind(conninfo: str) -> int:
    """The port of the server that answers."""
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=10) as connection:
        row = connection.execute("SELECT inet_server_port()").fetchone()
    assert row is not None
    return int(row[0])


def hook_of(script: str, settings: dict[str, str]) -> str:
    """The project's settings with a script as its hook."""
    assignments = " ".join(f'{name}="{value}"' for name, value in settings.items())
    return f"\n[cutover]\nhook = '{assignments} sh {HOOKS / script}'\npause_s = 60.0\nmax_lag_s = 20.0\n"


def begun_with(hook: str, request: pytest.FixtureRequest, tmp_path: Path) -> TwoWay:
    """The project with the application's words on both sides, dumped, found equal, its plan accepted."""
    project = made("pg-pg", request, tmp_path / "project")
    same_words(project)
    project.config.write_text(project.config.read_text() + hook)
    project.run_here()
    assert project.command("verify") == 0
    assert project.command("cutover", "plan", "--accept") == 0
    return project


def there_and_back(project: TwoWay, conninfo: str, documented: tuple[str, ...]) -> Application:
    """Both switches under the application; what clients saw is documented, and nothing is lost."""
    with leading(project):
        ready(project)
        with Application(conninfo) as application:
            application.writes_arrive("old")
            for wanted, side in (("start", Side.NEW), ("back", Side.OLD)):
                assert project.command("cutover", wanted, "--wait", "120") == 0, record_of(project).reason
                assert open_side(project) is side
                application.writes_arrive(side.value)
        await_true(lambda: project.differing("spending") == {}, "both sides are equal", 60)
    application.check(project)
    odd = [one for one in application.failures if not any(known in one for known in documented)]
    assert odd == []
    return application
