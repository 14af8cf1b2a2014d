"""The plans of a run, kept beside its state: the next start takes them over where nothing has changed.

To analyse twenty-five joined functions costs a JVM that has just started ten seconds. The file is no part of the
migration's state: without it, or with one that can't be read, all functions are analysed.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from migrator.errors import KeptPlanError
from migrator.model.reach import Reference
from migrator.model.table import TableSchema
from migrator.model.target import TargetColumn
from transforms.analysis.fingerprint import Fingerprint, fingerprint
from transforms.analysis.kept import Record, content_of, record, restored, signature
from transforms.analysis.plan import MappingPlan
from transforms.declared_grain import GrainProblem
from transforms.registry import TargetMapping

_FORMAT = 1


class KeptPlans:
    """Plans by target table, as far as an earlier start kept them, and those that this one will keep.

    Args:
        path: the file.
        surroundings: the project's code, versions and settings, as one text; asked once for each ``begin``.
        spark: the session, started on the first call.

    Threads may prove plans at the same time.
    """

    def __init__(self, path: Path, surroundings: Callable[[], str], spark: Callable[[], SparkSession]):
        self._path = path
        self._surroundings = surroundings
        self._spark = spark
        self._text = ""
        self._found: dict[str, Record] = {}
        self._signed: dict[str, str] = {}
        self._contents: dict[str, Fingerprint] = {}
        self._proving = threading.Lock()
        self._proved: set[str] = set()
        self._wrong: set[str] = set()

    def begin(self) -> None:
        """Reads the file anew, for another start in this process."""
        self._text = self._surroundings()
        self._found = self._read()
        self._signed, self._contents, self._proved = {}, {}, set()

    def find(
        self,
        target: TargetMapping,
        schemas: Mapping[str, TableSchema],
        columns: Sequence[TargetColumn],
        references: Sequence[Reference],
    ) -> MappingPlan | None:
        """Returns a target's plan if it was kept, with nothing changed since then that it was read from."""
        signed = signature(target, schemas, columns, references, self._text)
        self._signed[target.name] = signed
        kept = self._found.get(target.name)
        if kept is None or kept.get("signature") != signed:
            return None
        try:
            plan, content = restored(kept, target, schemas, columns, references), content_of(kept)
        except (KeyError, TypeError, ValueError, AttributeError, GrainProblem):
            return None
        if plan.kept in self._wrong:
            return None
        self._contents[target.name] = content
        return plan

    def content(self, plan: MappingPlan) -> Fingerprint:
        """Returns a plan's fingerprint: of a kept one as it was kept."""
        name = plan.target.name
        if name not in self._contents or self._contents[name].text != plan.kept:
            self._contents[name] = fingerprint(self._spark(), plan)
        return self._contents[name]

    def keep(self, plans: Mapping[str, MappingPlan]) -> None:
        """Writes plans for the next start, as far as they can be kept. A disk that refuses only costs that start."""
        records = {
            name: found
            for name, plan in plans.items()
            if name in self._signed and name in self._contents
            if (found := record(plan, self._signed[name], self._contents[name])) is not None
        }
        beside = self._path.with_suffix(".new")
        with suppress(OSError):
            beside.write_text(json.dumps({"format": _FORMAT, "plans": records}), "utf-8")
            os.replace(beside, self._path)

    def prove(self, plan: MappingPlan) -> None:
        """Compares a kept plan with its function as it is now, once.

        Raises ``KeptPlanError``: the function makes other rows by now. What was kept is gone then, so the
        next start analyses it.
        """
        name = plan.target.name
        with self._proving:
            if not plan.kept or name in self._proved:
                return
            if fingerprint(self._spark(), plan).text != plan.kept:
                self._wrong.add(plan.kept)  # for a file that can't be removed
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)
                raise KeptPlanError(
                    f"the function of target table {name!r} isn't the one whose plan was kept",
                    where=plan.target.where(),
                    cause="it depends on something beside its code, tables and settings: a file, the environment",
                    remedy="start again: all functions are analysed anew, and a changed one is named; no row was"
                    " mapped by the plan that was kept",
                )
            self._proved.add(name)

    def _read(self) -> dict[str, Record]:
        try:
            kept = json.loads(self._path.read_text("utf-8"))
            if kept["format"] != _FORMAT:
                return {}
            return {str(name): dict(found) for name, found in kept["plans"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
