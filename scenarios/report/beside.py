"""Results that other commands have left in the folder of the bundles, as tables of the report.

``migrator scenario simulate --json OUT/simulation.json``, the same with ``--mutant all --json OUT/mutants.json``,
``migrator scenario mutants --json OUT/mutants_on_servers.json``, ``migrator scenario code-mutants --json
OUT/code_mutants.json``, and the torture suite's ``OUT/torture/torture.json``. Each table says when it was measured.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from migrator.errors import VerifyError
from scenarios.report.tables import Row, Table, Tables
from verify.history.result import Outcome

_SAID = {Outcome.HOLDS: "caught", Outcome.VIOLATED: "SURVIVED", Outcome.UNKNOWN: "unknown"}


def tables_beside(out: Path) -> Tables:
    """The tables whose files exist. Raises ``VerifyError`` for a file that none of these commands has written."""
    return Tables(
        kill=_read(out / "mutants.json", _kill_table),
        servers=_read(out / "mutants_on_servers.json", _kill_table_on_servers),
        code=_read(out / "code_mutants.json", _code_mutants),
        simulation=_read(out / "simulation.json", _simulation),
        torture=_read(out / "torture" / "torture.json", _torture),
    )


def _read(path: Path, table_of: Any) -> Table | None:
    if not path.exists():
        return None
    try:
        measured = f"Measured {datetime.fromtimestamp(path.stat().st_mtime, UTC):%Y-%m-%d %H:%M} UTC."
        table: Table = table_of(json.loads(path.read_text()), measured)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VerifyError(
            "a table of the report can't be read",
            where=str(path),
            cause=f"{type(error).__name__}: {error}",
            remedy="remove the file, or write it again with the command that made it",
        ) from error
    return table


def _kill_table(document: Mapping[str, Any], measured: str) -> Table:
    rows = []
    for mutant in document["mutants"]:
        outcome = Outcome(mutant["outcome"])
        caught = [f"{code} {number:,}" for code, number in sorted(mutant["caught_by"].items())]
        caught += [f"halted {mutant['halted']:,}"] if mutant["halted"] else []
        cells = (
            f"{_SAID[outcome]}: {mutant['mutant']}",
            mutant["broken"],
            ", ".join(mutant["must_catch"]),
            "–" if mutant["first"] is None else f"{mutant['first']:,}",
            f"{mutant['rate']:.1%} of {mutant['seeds']:,}",
            ", ".join(caught) or "nobody",
        )
        rows.append(Row(cells, outcome))
    note = (
        "One rule of the product is broken at a time, in simulation; the checkers must catch it within its budget of"
        f" seeds. A survivor would mean that a pass proves nothing. {measured}"
    )
    head = (
        "broken variant",
        "what is broken",
        "must be caught by",
        "after seeds",
        "rate",
        "caught by, seeds",
    )
    return Table("Kill table", note, head, tuple(rows))


def _kill_table_on_servers(document: Mapping[str, Any], measured: str) -> Table:
    rows = []
    for mutant in document["mutants"]:
        outcome = Outcome(mutant["outcome"])
        cells = (
            f"{_SAID[outcome]}: {mutant['mutant']}",
            mutant["broken"],
            f"{mutant['scenario']} [{mutant['engine']}]",
            " or ".join(mutant["must_catch"]),
            ", ".join(mutant["caught_by"]) or "nobody" + "".join(f"; {why}" for why in mutant["why"]),
            f"{mutant['runs']} of {mutant['budget']}",
            f"{mutant['elapsed_s']:.0f}",
        )
        rows.append(Row(cells, outcome))
    note = (
        "The same in whole runs between real servers, each in the scenario that shows it best; that scenario must"
        f" hold without the broken rule. A stop or a crash is no catch. {measured}"
    )
    head = ("broken variant", "what is broken", "scenario", "must be caught by", "caught by", "runs", "s")
    return Table("Kill table on servers", note, head, tuple(rows))


def _code_mutants(document: Mapping[str, Any], measured: str) -> Table:
    """A row for each file, then one for each survivor. Survivors below the limit don't change the verdict."""
    mutants = document["mutants"]
    outcome = Outcome(document["outcome"])
    rows = [Row((f"{_SAID[outcome]}: all files", *_counted(mutants)), outcome)]
    for path in dict.fromkeys(mutant["path"] for mutant in mutants):
        rows.append(Row((path, *_counted([mutant for mutant in mutants if mutant["path"] == path]))))
    for mutant in mutants:
        if Outcome(mutant["outcome"]) is not Outcome.HOLDS:
            said = _SAID[Outcome(mutant["outcome"])]
            rows.append(Row((f"{said}: {mutant['path']}", "", "", f"{mutant['name']} ({mutant['said']})")))
    note = (
        f"Single changes to the code; the fast tests must notice each. {len(document['equivalent'])} more change"
        f" nothing that could be noticed. {measured}"
    )
    return Table("Code mutants", note, ("file", "mutants", "killed", "which"), tuple(rows))


def _counted(mutants: Sequence[Mapping[str, Any]]) -> tuple[str, str, str]:
    killed = sum(Outcome(mutant["outcome"]) is Outcome.HOLDS for mutant in mutants)
    return f"{len(mutants):,}", f"{killed:,}", ""


def _simulation(document: Mapping[str, Any], measured: str) -> Table:
    seeds = document["seeds"]
    rows = []
    for code, counts in document["checks"].items():
        outcome = next(
            (outcome for outcome in (Outcome.VIOLATED, Outcome.HOLDS) if counts[outcome.value]),
            Outcome.UNKNOWN,
        )
        numbers = [
            f"{counts[outcome.value]:,}" for outcome in (Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNKNOWN)
        ]
        rows.append(Row((f"{outcome.value}: {code}", *numbers, f"{counts['checked']:,}"), outcome))
    failed = document["failed"]
    said = (
        f"Seed {failed['seed']} fails: {failed['why']}. Replay: migrator scenario simulate --first"
        f" {failed['seed']} --seeds 1."
        if failed
        else f"None of {seeds:,} seeds fails: with 95% confidence fewer than {min(3 / seeds, 1):.2%} of such seeds"
        " do."
    )
    if failed:
        rows.insert(
            0, Row((f"violated: seed {failed['seed']}", "", "1", "", failed["why"]), Outcome.VIOLATED)
        )
    note = f"{document['commits']:,} target commits, {document['faults']:,} faults fired. {said} {measured}"
    head = ("checker", "holds under", "violated under", "unknown under", "compared")
    return Table(f"Simulation: {seeds:,} seeds", note, head, tuple(rows))


def _torture(document: Mapping[str, Any], measured: str) -> Table:
    """Rows about other tools. They have no outcome: another tool's violations don't change this report's verdict."""
    rows = []
    for row in document["rows"]:
        ended = row["ended"]
        cells = (
            f"{row['hazard']}: {row['title']}",
            f"{row['tool']} on {row['server']}",
            f"{row['rows_read']:,}",
            f"{row['stale_reads']:,}",
            f"{row['stale_events']:,}",
            "not comparable" if ended else f"{row['wrong_keys']:,}",
            row["verdict"] + (f"; ended by itself: {ended}" if ended else ""),
        )
        rows.append(Row(cells))
    note = (
        "A stale row is one delivered after a newer version of its key. What a tool delivers is judged, and the end"
        f" state that the simplest consumer makes of it. {measured}"
    )
    head = (
        "hazard",
        "tool",
        "rows read in chunks",
        "stale chunk rows",
        "stale events",
        "keys wrong at the end",
        "verdict",
    )
    return Table("The same hazards elsewhere", note, head, tuple(rows))
