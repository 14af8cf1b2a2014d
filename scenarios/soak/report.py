"""The report of a soak: as JSON, and as the table that the documents show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from scenarios.soak.judgement import MIB, Finding, overall
from scenarios.soak.play import Order, Played
from verify.history.result import Outcome

_WORDS = {Outcome.HOLDS: "bounded", Outcome.VIOLATED: "GROWS", Outcome.UNKNOWN: "unknown"}


def outcome(played: Played, findings: Sequence[Finding]) -> Outcome:
    """Everything bounded, the last process ended well, and the databases equal."""
    final = Outcome.UNKNOWN if played.final is None else played.final.outcome
    ended = Outcome.HOLDS if played.exit_code == 0 else Outcome.VIOLATED
    found = {overall(findings), final, ended}
    order = (Outcome.VIOLATED, Outcome.UNKNOWN)
    return next((outcome for outcome in order if outcome in found), Outcome.HOLDS)


def document(order: Order, played: Played, findings: Sequence[Finding], machine: str) -> dict[str, Any]:
    """The whole of it, with every sample."""
    final = played.final
    return {
        "format": 1,
        "outcome": outcome(played, findings).value,
        "machine": machine,
        "order": asdict(order),
        "seconds": round(played.seconds, 1),
        "row_changes": played.row_changes,
        "kills": played.kills,
        "requests": played.requests,
        "exit_code": played.exit_code,
        "verify": None if final is None else {"outcome": final.outcome.value, "rows": final.checked},
        "findings": [{**asdict(finding), "outcome": finding.outcome.value} for finding in findings],
        "samples": [asdict(sample) for sample in played.samples],
    }


def text(order: Order, played: Played, findings: Sequence[Finding], machine: str) -> str:
    """Writes the report for a terminal, and as it is for a document."""
    final = played.final
    said = (
        "not asked"
        if final is None
        else "; ".join(
            filter(None, [f"{final.outcome.value}, {final.checked:,} rows compared", final.reason])
        )
    )
    lines = [
        f"{played.seconds / 60:.1f} minutes, {order.engine}, {played.row_changes:,} row changes,"
        f" {played.kills} kills, {played.requests} dump requests; {machine}",
        f"last process: exit code {played.exit_code}; verify says equal: {said}",
        "",
        "| Figure | At the stretch's begin | Growth over it | Allowed | Stretch, s | Samples | |",
        "| --- | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for finding in findings:
        cells = [
            _amount(finding.figure, finding.level),
            f"{finding.growth / _unit(finding.figure):+,.1f}",
            _amount(finding.figure, finding.allowed),
        ]
        lines.append(
            f"| {_title(finding.figure)} | {' | '.join(cells)} | {finding.stretch_s:.0f} | {finding.samples} |"
            f" {_WORDS[finding.outcome]} |"
        )
    return "\n".join([*lines, "", outcome(played, findings).value.upper()])


def _title(figure: str) -> str:
    return figure.replace("_bytes", ", MiB").replace("_", " ")


def _unit(figure: str) -> int:
    return MIB if figure.endswith("_bytes") else 1


def _amount(figure: str, value: float) -> str:
    return f"{value / _unit(figure):,.1f}"
