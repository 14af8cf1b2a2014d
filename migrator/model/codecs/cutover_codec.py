"""The record of a cut-over as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from migrator.model.codecs.codec import check_number, damaged
from migrator.model.cutover.fence import FenceKind, FencePlan
from migrator.model.cutover.record import CutoverPlan, Phase, Record, Side, Took, Verify, Wanted
from migrator.model.table import TableId

CUTOVER_FORMAT = 4
"""Number of the record's layout. Format 1 knew no reads apart from writes: they were where the writes are; and no
comparisons: neither their settings, nor how far they came. Format 2 didn't know what tables were like,
format 3 had keys of hooks that another record had as well."""


def record_to_json(record: Record) -> dict[str, Any]:
    """The document of a record."""
    plan = record.plan
    return {
        "format": CUTOVER_FORMAT,
        "number": record.number,
        "turn": record.turn,
        "open_side": record.open_side.value,
        "phase": record.phase.value,
        "wanted": record.wanted.value,
        "since_s": record.since_s,
        "hooked": record.hooked,
        "reason": record.reason,
        "took": [[one.phase.value, one.seconds] for one in record.took],
        "equal_old": record.equal_old,
        "equal_new": record.equal_new,
        "reads": record.reads.value,
        "reads_wanted": None if record.reads_wanted is None else record.reads_wanted.value,
        "reads_turn": record.reads_turn,
        "reads_said": record.reads_said,
        "follows": record.follows,
        "structure": [list(one) for one in record.structure],
        "token": record.token,
        "plan": plan_to_json(plan),
    }


def plan_to_json(plan: CutoverPlan) -> dict[str, Any]:
    """The plan within a document."""
    return {
        "old": _fence(plan.old),
        "new": _fence(plan.new),
        "hook": plan.hook,
        "hook_s": plan.hook_s,
        "pause_s": plan.pause_s,
        "grace_s": plan.grace_s,
        "end_transactions": plan.end_transactions,
        "verify": plan.verify.value,
        "verify_s": plan.verify_s,
        "reads_hook": plan.reads_hook,
    }


def record_from_json(document: Mapping[str, Any]) -> Record:
    """Inverse of ``record_to_json``. Raises ``FormatError`` for a newer version's, or one that makes no sense."""
    try:
        check_number("cut-over", int(document["format"]), CUTOVER_FORMAT)
        reads_wanted = document.get("reads_wanted")
        return Record(
            _to_plan(document["plan"]),
            number=int(document["number"]),
            turn=int(document["turn"]),
            open_side=Side(document["open_side"]),
            phase=Phase(document["phase"]),
            wanted=Wanted(document["wanted"]),
            since_s=float(document["since_s"]),
            hooked=bool(document["hooked"]),
            reason=str(document["reason"]),
            took=tuple(Took(Phase(phase), float(seconds)) for phase, seconds in document["took"]),
            equal_old=int(document.get("equal_old", 0)),
            equal_new=int(document.get("equal_new", 0)),
            reads=Side(document.get("reads", document["open_side"])),
            reads_wanted=None if reads_wanted is None else Side(reads_wanted),
            reads_turn=int(document.get("reads_turn", 0)),
            reads_said=str(document.get("reads_said", "")),
            follows=bool(document.get("follows", False)),
            structure=tuple((str(name), str(digest)) for name, digest in document.get("structure", ())),
            token=str(document.get("token", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("cut-over", error) from error


def _to_plan(document: Mapping[str, Any]) -> CutoverPlan:
    return CutoverPlan(
        _to_fence(document["old"]),
        _to_fence(document["new"]),
        hook=str(document["hook"]),
        hook_s=float(document["hook_s"]),
        pause_s=float(document["pause_s"]),
        grace_s=float(document["grace_s"]),
        end_transactions=bool(document["end_transactions"]),
        verify=Verify(document.get("verify", Verify.CHANGED)),
        verify_s=float(document.get("verify_s", 10.0)),
        reads_hook=str(document.get("reads_hook", "")),
    )


def _fence(plan: FencePlan) -> dict[str, Any]:
    return {
        "kind": plan.kind.value,
        "tables": [[table.schema, table.name] for table in plan.tables],
        "login": plan.login,
        "message": plan.message,
        "roles": list(plan.roles),
        "accepted": sorted(plan.accepted),
    }


def _to_fence(document: Mapping[str, Any]) -> FencePlan:
    return FencePlan(
        FenceKind(document["kind"]),
        tuple(TableId(schema, name) for schema, name in document["tables"]),
        document["login"],
        document["message"],
        tuple(document["roles"]),
        frozenset(document["accepted"]),
    )
