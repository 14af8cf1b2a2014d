"""The old database of a torture run: one table with provenance, and writers that no tool can influence.

The writers are ``pgbench``, PostgreSQL's own load generator: each of its clients is a session, whose writes it
numbers by itself (a variable of the script that rises with every transaction).
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from migrator.embedded.postgres import postgres_installation
from migrator.embedded.process import plain_environment
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.workloads.base import Columns, Tracked
from verify.history.history import TrackedTable

TABLE = "register"
COLUMNS = Columns(TABLE, ("id",), "session", "number", "value")
TRACKED = Tracked(TrackedTable(TABLE), COLUMNS, COLUMNS)
_STOP_TIMEOUT_S = 60

UPDATE = f"""
\\set n :n + 1
\\set id random(1, :keys)
UPDATE {TABLE} SET session = :client_id + 1, number = :n, value = value + 1 WHERE id = :id;
"""
_OWN_KEYS = """
\\set n :n + 1
\\set share :keys / :clients
\\set id :client_id * :share + random(1, :share)
"""
"""A key of the client's own share: it never collides with another client's move or insert."""
OWN_UPDATE = f"""{_OWN_KEYS}
UPDATE {TABLE} SET session = :client_id + 1, number = :n, value = value + 1 WHERE id = :id;
"""
MOVE = f"""{_OWN_KEYS}
\\set free :client_id * :share + random(1, :share)
UPDATE {TABLE} SET id = :free, session = :client_id + 1, number = :n WHERE id = :id
  AND NOT EXISTS (SELECT FROM {TABLE} WHERE id = :free);
"""
REMOVE = f"""{_OWN_KEYS}
DELETE FROM {TABLE} WHERE id = :id;
"""
INSERT = f"""{_OWN_KEYS}
INSERT INTO {TABLE} VALUES (:id, :client_id + 1, :n, 0) ON CONFLICT (id) DO NOTHING;
"""


def create(old: Database, keys: int) -> None:
    """Creates the table with ``keys`` rows: session 0, numbers rising, complete before images."""
    with old.postgres(autocommit=True) as connection:
        connection.execute(
            f'CREATE TABLE "{TABLE}" (id int PRIMARY KEY, session int NOT NULL, number int NOT NULL,'
            " value bigint NOT NULL)"
        )
        connection.execute(f'ALTER TABLE "{TABLE}" REPLICA IDENTITY FULL')
        connection.execute(f'INSERT INTO "{TABLE}" SELECT g, 0, g, 0 FROM generate_series(1, %s) g', [keys])
        connection.execute(f'ANALYZE "{TABLE}"')


@dataclass(frozen=True, slots=True)
class Writing:
    """The work of the writers.

    Attributes:
        scripts: script of one transaction -> its weight.
        clients: concurrent sessions.
        keys: of the table.
        rate_per_s: transactions per second over all clients; 0 is as fast as they go.
    """

    scripts: Mapping[str, int] = field(default_factory=lambda: {UPDATE: 1})
    clients: int = 16
    keys: int = 200
    rate_per_s: int = 1000


class Writers:
    """A running ``pgbench``.

    Args:
        old: where it writes.
        writing: what.
        seconds: how long, if it isn't stopped before.
        seed: of its random keys.
        folder: gets its scripts and its output.
        after: each session numbers its writes from here on.
    """

    def __init__(
        self, old: Database, writing: Writing, seconds: int, seed: int, folder: Path, after: int = 0
    ):
        self._log = folder / "pgbench.log"
        command = [
            str(postgres_installation() / "bin" / "pgbench"),
            *("--host", old.host, "--port", str(old.port), "--username", old.user, old.database),
            *("--no-vacuum", "--protocol=prepared", "--random-seed", str(seed)),
            *("--client", str(writing.clients), "--jobs", "2", "--time", str(seconds)),
            *_defined({"n": after, "keys": writing.keys, "clients": writing.clients}),
            *(("--rate", str(writing.rate_per_s)) if writing.rate_per_s else ()),
            *_files(writing.scripts, folder),
        ]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=plain_environment()
            )

    @property
    def running(self) -> bool:
        """Returns whether the program still writes."""
        return self._process.poll() is None

    def wait(self) -> None:
        """Waits for its end. Raises MigratorError with the end of its output if it failed."""
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        finally:
            self.kill()
        if self._process.returncode != 0:
            raise MigratorError(
                f"pgbench ended with exit code {self._process.returncode}",
                where=str(self._log),
                cause="\n".join(self._log.read_text().splitlines()[-5:]),
                remedy="see its output",
            )

    def kill(self) -> None:
        """Ends it if it still runs."""
        if self.running:
            self._process.kill()
            self._process.wait()


def _defined(variables: Mapping[str, int]) -> list[str]:
    return [word for name, value in variables.items() for word in ("--define", f"{name}={value}")]


def _files(scripts: Mapping[str, int], folder: Path) -> Sequence[str]:
    words = []
    for place, (script, weight) in enumerate(scripts.items()):
        file = folder / f"writer-{place}.sql"
        file.write_text(script)
        words += ["--file", f"{file}@{weight}"]
    return words
