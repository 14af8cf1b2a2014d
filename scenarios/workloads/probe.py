"""A small tracked table beside the tables of a foreign client, so that cuts can be judged while that one writes."""

from __future__ import annotations

from collections.abc import Sequence

from scenarios.scenario import WorkloadSpec
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key, some_keys
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable
from verify.history.history import TrackedTable

PROBE = Tracked(
    TrackedTable("probe", fold=True),
    Columns("probe", ("id",), "writer", "write_no", "beat"),
    Columns("pulse", ("pulse_id",), "client", "client_no", "beat"),
)


def probe_table(spec: WorkloadSpec) -> OldTable:
    """Probes 1 to ``spec.keys``."""
    columns = (
        '"id" bigint PRIMARY KEY, "beat" bigint NOT NULL, "writer" int NOT NULL, "write_no" int NOT NULL'
    )
    return OldTable("probe", columns, "n, n, 0, n", spec.keys)


def probe_actions(spec: WorkloadSpec) -> Sequence[Action]:
    """Single and joint updates, upserts, removals."""
    rows = Rows(PROBE.old)

    def write(session: Session) -> None:
        for key in some_keys(session.rng, spec.keys, session.rng.randint(1, 3), spec.hot_percent):
            rows.add(session, key, session.rng.randint(1, 10**9))

    def put(session: Session) -> None:
        rows.put(session, some_key(session.rng, spec.keys, spec.hot_percent), session.rng.randint(1, 10**9))

    def remove(session: Session) -> None:
        rows.delete(session, some_key(session.rng, spec.keys))

    return [Action("write", 14, write), Action("put", 4, put), Action("remove", 2, remove)]
