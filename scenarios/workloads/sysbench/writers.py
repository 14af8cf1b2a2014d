"""Short runs of sysbench's ``oltp_write_only`` on its own tables, amid our writers of ``probe``.

One of its transactions updates two rows, deletes one and inserts it again. It knows nothing of provenance, so its
table is not tracked but compared as a whole in the end (`migrator verify`). sysbench comes with no Python package:
without it this workload says so by name.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.base import Tracked
from scenarios.workloads.probe import PROBE, probe_actions, probe_table
from scenarios.workloads.program import find, run_as_client, run_to_set_up
from scenarios.workloads.tables import create_tables

_REMEDY = "install sysbench 1.0 (Debian and Ubuntu: apt-get install sysbench)"
_SCRIPT = "oltp_write_only"
_ROWS_A_TRANSACTION = 4


class Sysbench:
    """Options: ``rows`` of its table (5,000), ``clients`` (2) and ``transactions`` (25) of each run."""

    name = "sysbench"
    tracked: Sequence[Tracked] = (PROBE,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """sysbench's own table ``sbtest1``, made by itself."""
        program, rows = find("sysbench", _REMEDY), int(spec.options.get("rows", 5000))
        with settings(old, [f"table-size={rows}"]) as file:
            run_to_set_up([program, f"--config-file={file}", _SCRIPT, "prepare"], {})
        if old.kind == "postgresql":
            with old.postgres() as connection:
                connection.execute("ALTER TABLE sbtest1 REPLICA IDENTITY FULL")
        create_tables(old, [probe_table(spec)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """One run of sysbench to some twenty transactions of ours."""
        program, rows = find("sysbench", _REMEDY), int(spec.options.get("rows", 5000))
        clients, transactions = int(spec.options.get("clients", 2)), int(spec.options.get("transactions", 25))

        def bench(session: Session) -> None:
            lines = [
                f"table-size={rows}",
                f"threads={clients}",
                f"events={transactions}",
                "time=0",
                f"rand-seed={session.rng.randrange(1, 2**31)}",
            ]
            with settings(session.database, lines) as file:
                run_as_client([program, f"--config-file={file}", _SCRIPT, "run"], {})
            session.row_changes += transactions * _ROWS_A_TRANSACTION

        return [Action("sysbench", 1, bench), *probe_actions(spec)]


@contextmanager
def settings(database: Database, lines: Sequence[str]) -> Iterator[str]:
    """A file with all options, because everybody can read a command line, and there is a password among them."""
    driver = "pgsql" if database.kind == "postgresql" else "mysql"
    login = {
        "host": database.host,
        "port": database.port,
        "db": database.database,
        "user": database.user,
        "password": database.password,
    }
    with tempfile.NamedTemporaryFile("w", prefix="sysbench-", suffix=".cfg") as file:
        file.write(f"db-driver={driver}\n")
        file.writelines(f"{driver}-{name}={value}\n" for name, value in login.items() if value != "")
        file.writelines(f"{line}\n" for line in lines)
        file.flush()
        yield file.name
