"""A writer killed at every named point of its transaction: the rows are always those of the ledger's segment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from migrator.schema import MYSQL_LEDGER
from tests.servers import Database

pytestmark = pytest.mark.integration

POINTS = ["target.begun", "target.loaded:2", "target.merged", "target.moved:2", "target.committed"]
LAST = 12

# Batch n adds row n, and moves the unique mark to it: applied twice or by half, rows and ledger would differ.
WRITER = """
import json, os, sys
import pyarrow as pa
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.model.server import Server
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.steps import step_hook
from tests.contract.targets.target_under_test import checkpoint

target = MysqlTargetWriter(MysqlTarget(Server(**json.loads(sys.argv[1])), "killed"), step_hook(os.environ))
ledger = target.open(int(sys.argv[2]))
(table,) = target.tables(["t"])

def rows(*pairs):
    ids, marks = zip(*pairs)
    return pa.table({"id": pa.array(ids, pa.int64()), "mark": pa.array(marks, pa.string())})

for n in range(ledger.segment + 1, int(sys.argv[3]) + 1):
    before = rows((n - 1, "here")) if n > 1 else None
    after = rows((n - 1, None), (n, "here")) if n > 1 else rows((n, "here"))
    target.apply(TargetBatch(n, checkpoint(n), (TargetRows(table, None, before, after, True),)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["new_maria", "new_mysql"])
def test_killed_at_every_point_every_batch_is_applied_once(
    engine: str, request: pytest.FixtureRequest
) -> None:
    new: Database = request.getfixturevalue(engine)
    new.execute("CREATE TABLE t (id bigint PRIMARY KEY, mark varchar(9) UNIQUE)")
    for epoch, point in enumerate(POINTS, 1):
        assert write(new, epoch, point) == -signal.SIGKILL, f"{point} was never reached"
        check(new)
    assert write(new, len(POINTS) + 1, "") == 0
    assert check(new) == LAST


def write(new: Database, epoch: int, crash_at: str) -> int:
    """Applies batches up to the last one in a process of its own; its exit code."""
    place = {"kind": new.kind, "host": new.host, "port": new.port, "database": new.database}
    login = {"user": new.user, "password": new.password}
    done = subprocess.run(
        [sys.executable, "-c", WRITER, json.dumps({**place, **login}), str(epoch), str(LAST)],
        env={**os.environ, "MIGRATOR_CRASH_AT": crash_at, "PYTHONPATH": str(Path(__file__).parents[4])},
        timeout=120,
        check=False,
    )
    return done.returncode


def check(new: Database) -> int:
    """The ledger's segment; the rows must be those of it."""
    ((segment,),) = new.query(f"SELECT segment FROM {MYSQL_LEDGER}")
    rows = new.query("SELECT id, mark FROM t ORDER BY id")
    assert rows == [(n, "here" if n == segment else None) for n in range(1, segment + 1)]
    return int(segment)
