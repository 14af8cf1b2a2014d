"""The report as one JSON document, for machines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from scenarios.play.bundle import HISTORY
from scenarios.report.blind_spots import BLIND_SPOTS
from scenarios.report.facts import Fact
from scenarios.report.tables import Table, Tables
from scenarios.report.verdict import CONTROL_SAID, EXIT_CODES, control, is_control, verdict
from verify.history.result import CheckResult

FORMAT = 1


def document(facts: Sequence[Fact], tables: Tables, made_at: str, version: str) -> dict[str, Any]:
    """The document: the verdict, then every run with its checks, witnesses, faults, counts and replay command."""
    outcome = verdict([fact.run for fact in facts], tables)
    return {
        "format": FORMAT,
        "verdict": outcome.value,
        "exit_code": EXIT_CODES[outcome],
        "made_at": made_at,
        "version": version,
        "runs": [_run(fact) for fact in facts],
        "kill_table": _table(tables.kill),
        "kill_table_on_servers": _table(tables.servers),
        "code_mutants": _table(tables.code),
        "simulation": _table(tables.simulation),
        "torture": _table(tables.torture),
        "waiting": _table(tables.waiting),
        "cannot_detect": [{"what": what, "why": why} for what, why in BLIND_SPOTS],
    }


def _run(fact: Fact) -> dict[str, Any]:
    run, recorded = fact.run, fact.recorded
    return {
        "scenario": run.scenario.name,
        "title": run.scenario.title,
        "hazards": list(run.scenario.hazards),
        "engine": run.engine,
        "seed": run.seed,
        "outcome": run.outcome.value,
        "reason": run.reason,
        "mutant": run.mutant,
        "mutant_is": CONTROL_SAID[control(run)].lower() if is_control(run) else None,
        "expected_ending": run.scenario.expect.ending,
        "ending": run.ending,
        "error": run.error,
        "elapsed_s": run.elapsed_s,
        "checks": [_check(check) for check in run.checks],
        "faults": [asdict(fault) for fault in recorded.faults],
        "counts": dict(recorded.counts),
        "versions": dict(recorded.versions),
        "bundle": str(run.bundle),
        "replay": recorded.command
        if recorded.command and not (run.bundle / HISTORY).is_dir()
        else f"migrator scenario replay {run.bundle}",
        "command": recorded.command,
        "problem": recorded.problem,
    }


def _check(check: CheckResult) -> dict[str, Any]:
    return {**asdict(check), "outcome": check.outcome.value}


def _table(table: Table | None) -> dict[str, Any] | None:
    if table is None:
        return None
    rows = [
        {
            **dict(zip(table.head, row.cells, strict=True)),
            "outcome": row.outcome.value if row.outcome else None,
        }
        for row in table.rows
    ]
    return {"title": table.title, "note": table.note, "rows": rows}
