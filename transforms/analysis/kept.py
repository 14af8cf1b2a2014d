"""Plans of an earlier start, taken over by this one without analysing the mapping's functions again.

A plan is kept under a signature of all that it was read from: the declaration, the tables of both sides, the
project's code, versions and settings. A function may read more than that (a file, the environment). So whoever maps
rows by such a plan has it proved first: its fingerprint is taken from the function as it is now, and compared. That
says nothing of the columns that are kept beside the fingerprint, so each record has a digest of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from migrator.model.target import TargetColumn
from transforms.analysis.fingerprint import Fingerprint
from transforms.analysis.grain import reaches
from transforms.analysis.plan import MappingKind, MappingPlan, between
from transforms.registry import TargetMapping

Prove = Callable[[MappingPlan], None]
Record = dict[str, Any]
"""A kept plan as plain values for JSON."""


def proved(_: MappingPlan) -> None:
    """The proof of plans that this process has analysed itself: there is nothing to prove."""


def signature(
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    columns: Sequence[TargetColumn],
    references: Sequence[Reference],
    surroundings: str,
) -> str:
    """Returns a text that differs where anything differs from which a plan was read.

    Args:
        target: the mapping, as declared.
        schemas: source tables by name, at least those of ``target.sources``.
        columns: all columns of the target table.
        references: foreign keys between source tables.
        surroundings: the project's code, versions and settings, as one text.
    """
    parts = (
        *(target.name, target.key, target.sources, target.links, target.roles, target.surrogates),
        "computed" if callable(target.grain) else repr(target.grain),
        [(table, name) for table, name, _ in target.values],
        target.where(),
        [schemas.get(name) for name in target.sources],
        tuple(columns),
        sorted(references),
        surroundings,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def record(plan: MappingPlan, signed: str, content: Fingerprint) -> Record | None:
    """Returns what is kept of a plan; None of one that can't be proved by its fingerprint, or that has more to it.

    Computed values and computed grains are looked into by Spark at each start, and so are left out.
    """
    computed = plan.target.values or any(not reach.grain for reach in plan.reaches)
    if computed or not content.text:
        return None
    found = {
        "signature": signed,
        "kind": plan.kind.value,
        "columns": [column.name for column in plan.columns],
        "reads": {name: list(read) for name, read in plan.reads.items()},
        "repeated": list(plan.repeated),
        "content": [content.text, content.basis, content.outline],
    }
    return {**found, "digest": _digest(found)}


def _digest(found: Mapping[str, Any]) -> str:
    """A digest of all parts of a record beside itself."""
    parts = {name: part for name, part in found.items() if name != "digest"}
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def restored(
    kept: Record,
    target: TargetMapping,
    schemas: Mapping[str, TableSchema],
    columns: Sequence[TargetColumn],
    references: Sequence[Reference],
) -> MappingPlan:
    """Returns the plan that a record was taken of. Arguments as of ``signature``, with the same signature.

    Raises ``KeyError``, ``TypeError``, ``ValueError`` for a record of another form, or a damaged one.
    """
    if kept["digest"] != _digest(kept):
        raise ValueError("the record isn't the one that was written")
    kind, repeated = MappingKind(kept["kind"]), tuple(map(str, kept["repeated"]))
    written = {str(name) for name in kept["columns"]}
    linked = between(references, repeated) if kind is MappingKind.GRAIN else []
    return MappingPlan(
        target=target,
        kind=kind,
        columns=tuple(column for column in columns if column.name in written),
        schemas={name: schemas[name] for name in target.sources},
        reads={str(name): tuple(map(str, read)) for name, read in kept["reads"].items()},
        reaches=reaches(target, schemas, linked) if kind is MappingKind.GRAIN else (),
        repeated=repeated,
        kept=content_of(kept).text,
    )


def content_of(kept: Record) -> Fingerprint:
    """Returns the fingerprint of the plan that a record was taken of. Raises as ``restored``."""
    text, basis, outline = map(str, kept["content"])
    return Fingerprint(text, basis, outline)
