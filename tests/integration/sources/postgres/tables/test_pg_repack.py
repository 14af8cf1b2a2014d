"""pg_repack gives a table another file and keeps its number: nothing is read again, and no change is lost.

Needs Debian's packages of a server and of pg_repack (postgresql-15-repack, say) on the machine; skipped without.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.embedded import postgres
from migrator.embedded.postgres import EmbeddedPostgres
from migrator.embedded.process import scratch_directory
from migrator.model.limits import CaptureLimits
from migrator.model.table import TableId
from tests.integration.capturing import capturing
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.slow]

T = TableId("public", "t")
INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/lib/pg_repack.so"))


@pytest.fixture
def repacked() -> Iterator[tuple[Database, Path]]:
    """A database with the extension, and the program."""
    if not INSTALLED:
        pytest.skip("no server with pg_repack is installed (Debian: postgresql-15-repack)")
    home = INSTALLED[-1].parent.parent
    with pytest.MonkeyPatch.context() as patch, scratch_directory("migrator-repack-") as folder:
        patch.setattr(postgres, "postgres_installation", lambda _: home)
        with EmbeddedPostgres(folder / "server", version=int(home.name)) as server:
            database = Database(server.host, server.port, "postgres", server.superuser, "", "postgresql")
            database.execute("CREATE EXTENSION pg_repack")
            yield database, home / "bin" / "pg_repack"


def repack(database: Database, program: Path) -> None:
    login = ["-h", database.host, "-p", str(database.port), "-U", database.user, "-d", database.database]
    done = subprocess.run(
        [program, *login, "--table", "public.t", "--wait-timeout", "20"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("running", [True, False], ids=["beside a run", "while stopped"])
def test_a_repacked_table_goes_on(
    repacked: tuple[Database, Path], monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.2)
    database, program = repacked
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text, big text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT g, 'a', repeat(md5(g::text), 200) FROM generate_series(1, 3000) g",
        "DELETE FROM t WHERE k % 3 = 0",
    )
    capture = capturing(database, ["t"], CaptureLimits(linger_s=0.01))
    capture.run(capture.dumped)
    rows = capture.progress.snapshot().dumps[0].rows

    def beside() -> None:
        for k in range(1, 600):
            database.execute(
                f"UPDATE t SET v = 'b{k}' WHERE k = {k * 2}",
                f"DELETE FROM t WHERE k = {k * 4 + 1}",
                f"INSERT INTO t VALUES ({10_000 + k}, 'n', 'new')",
            )

    def happen() -> None:
        writer = threading.Thread(target=beside)
        writer.start()
        repack(database, program)
        writer.join()

    if running:
        thread = threading.Thread(target=happen)
        thread.start()
        capture.run(lambda: not thread.is_alive())
    else:
        happen()
    capture.run(capture.caught_up())
    assert capture.held()[T] == capture.source(T)
    assert capture.progress.snapshot().dumps[0].rows == rows, "no row was read again"
