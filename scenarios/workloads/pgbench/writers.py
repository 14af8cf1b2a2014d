"""Short runs of ``pgbench`` with its standard transaction on its own tables, amid our writers of ``probe``.

pgbench knows nothing of provenance, so its tables are not tracked: they are compared as a whole in the end
(`migrator verify`), and in every consistent state four sums are equal: accounts, tellers, branches, and the
history's deltas.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.base import Tracked
from scenarios.workloads.probe import PROBE, probe_actions, probe_table
from scenarios.workloads.program import as_environment, as_options, find, run_as_client, run_to_set_up
from scenarios.workloads.tables import create_tables

_REMEDY = "pip install 'dbmigrator[embedded]', or put PostgreSQL's client programs on the PATH"
_TABLES = ("pgbench_accounts", "pgbench_tellers", "pgbench_branches", "pgbench_history")
_ROWS_A_TRANSACTION = 4


class Pgbench:
    """Options: ``scale`` (1: 100,000 accounts), ``clients`` (2) and ``transactions`` (25) of each in a run."""

    name = "pgbench"
    tracked: Sequence[Tracked] = (PROBE,)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """pgbench's own tables, made by itself; its history gets a primary key, which a migration needs."""
        if old.kind != "postgresql":
            raise MigratorError(
                "pgbench writes to PostgreSQL only",
                where=f"source {old.kind}",
                remedy="use the workload sysbench",
            )
        program = find("pgbench", _REMEDY)
        scale = str(spec.options.get("scale", 1))
        run_to_set_up(
            [program, "--initialize", "--init-steps=dtGp", f"--scale={scale}", *as_options(old)],
            as_environment(old),
        )
        with old.postgres() as connection:
            connection.execute(
                "ALTER TABLE pgbench_history ADD COLUMN id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
            )
            for table in _TABLES:
                connection.execute(f"ALTER TABLE {table} REPLICA IDENTITY FULL".encode())
        create_tables(old, [probe_table(spec)])

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """One run of pgbench to some twenty transactions of ours."""
        program = find("pgbench", _REMEDY)
        clients, transactions = int(spec.options.get("clients", 2)), int(spec.options.get("transactions", 25))

        def bench(session: Session) -> None:
            run_as_client(
                [
                    program,
                    "--no-vacuum",  # it would also truncate the history
                    f"--client={clients}",
                    f"--transactions={transactions}",
                    f"--random-seed={session.rng.randrange(2**31)}",
                    *as_options(session.database),
                ],
                as_environment(session.database),
            )
            session.row_changes += clients * transactions * _ROWS_A_TRANSACTION

        return [Action("pgbench", 1, bench), *probe_actions(spec)]
