"""The judge of a project: its two sides, and a comparison of those rows that changed since the last verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.adapters.event_log.changed_keys import ChangedKeysRead
from migrator.config.project import Settings
from migrator.errors import CutoverError, MigratorError, VerifyError
from migrator.model.cutover.record import Effort
from migrator.model.ledger import Ledger
from migrator.model.remaps.remap import in_force
from migrator.ports.changed_keys import ChangedKeysReader
from migrator.wiring import parts as wiring
from migrator.wiring.target import peek
from verify.settings import ServerSettings
from verify.tables.coverage import Coverage, read_coverage
from verify.tables.result import TableResult, VerifyResult
from verify.tables.rounds.named_keys import NamedKeys
from verify.tables.run import judged_by, verify
from verify.verdict import Verdict

_AGAIN = "verify while users write (`migrator verify`), and start once it says equal"
_NAMED = 5


def sides(settings: Settings) -> tuple[ServerSettings, ServerSettings]:
    """Returns source and target of the project as the judge takes them."""
    source = ServerSettings(
        settings.source,
        change_tables=settings.log == "change_tables",
        text_columns=settings.text_columns,
    )
    return source, ServerSettings(settings.target)


class ChangedRows:
    """The rows of one way that changed since the last verdict of their table.

    A verdict is that of a verification, or of a switch. The way back needs none to begin with: its target had its
    rows before, and only what it carries is compared.

    Args:
        settings: of the way.
        spark: a running session.
    """

    def __init__(self, settings: Settings, spark: Callable[[], SparkSession]):
        self._settings, self._spark = settings, spark
        self._keys: ChangedKeysReader = ChangedKeysRead(settings.changed_keys())
        self._equal: dict[str, int] = {}

    def compare(self, since: int, effort: Effort) -> int:
        """See ``ports.cutover.CutoverSide``."""
        ledger = self._ledger()
        changed = self.changed(since)
        found = self._verified(changed, effort) if changed else ()
        different = [one for one in found if one.verdict is Verdict.DIFFERENT]
        unsettled = [one for one in found if one.verdict is Verdict.UNKNOWN]
        if different or (unsettled and effort.all_of_it):
            raise self._refusal(different or unsettled)
        for name in self._names():
            if name not in {one.target for one in unsettled}:
                self._equal[name] = ledger.segment
        return since if unsettled else ledger.segment

    def changed(self, since: int) -> dict[str, pa.Table]:
        """Returns the keys that changed since the last verdict, by table; of tables that have some.

        Raises ``CutoverError`` for tables without a verdict, or of which not all keys are known.
        """
        ledger = self._ledger()
        bases = self._bases(since, ledger)
        if lacking := [name for name, base in bases.items() if base is None]:
            raise CutoverError(
                "not all of the new side's rows were found equal yet",
                where=", ".join(lacking[:_NAMED]),
                cause="there is no verdict on the tables named by the mapping as it is now, or it wasn't equal",
                remedy=_AGAIN,
            )
        keys = {name: self._keys.since(base or 0, name, ledger.epoch) for name, base in bases.items()}
        if unknown := [name for name, found in keys.items() if found is None]:
            raise CutoverError(
                "it isn't known which rows changed since the last verdict",
                where=", ".join(unknown[:_NAMED]),
                cause="rows were dumped or filled since, another machine led, this one was started anew, or too much"
                " changed",
                remedy=_AGAIN,
            )
        return {name: found for name, found in keys.items() if found is not None and found.num_rows}

    def _names(self) -> list[str]:
        return [target.name for target in wiring.mapping(self._settings)]

    def _ledger(self) -> Ledger:
        ledger = peek(self._settings)
        if ledger is None or ledger.checkpoint is None:
            raise CutoverError("nothing was applied yet", remedy="wait for `migrator run`")
        return ledger

    def _bases(self, since: int, ledger: Ledger) -> Mapping[str, int | None]:
        """Returns the segment of each table's last verdict; None where it has none."""
        assert ledger.checkpoint is not None
        judge = judged_by(self._settings.mapping, in_force(ledger.checkpoint.remaps))
        coverage = read_coverage(self._settings.reports()) or Coverage()
        found: dict[str, int | None] = {}
        for name in self._names():
            table = coverage.of(name)
            equal = table.verdict == Verdict.EQUAL.value and table.judged_by == judge
            bases = [since, self._equal.get(name, 0), table.segment if equal else 0]
            found[name] = max(bases) or (0 if self._settings.reversed else None)
        return found

    def _verified(self, changed: Mapping[str, pa.Table], effort: Effort) -> tuple[TableResult, ...]:
        try:
            return self._result(changed, effort).tables
        except VerifyError as error:
            if error.retryable:
                raise
            raise CutoverError(
                "what changed since the last verdict can't be compared",
                where=error.where,
                cause="; ".join(filter(None, (error.what, error.cause))),
                remedy=error.remedy or _AGAIN,
            ) from error

    def _result(self, changed: Mapping[str, pa.Table], effort: Effort) -> VerifyResult:
        settings = self._settings
        # A leader that took over in the middle of a switch still starts it: that isn't the comparison's time.
        running = self._spark()
        return verify(
            *sides(settings),
            settings.name,
            settings.mapping,
            list(changed),
            lambda: running,
            self._reports(settings),
            wait_s=effort.limit_s,
            within_s=effort.limit_s,
            max_rounds=1,  # at rest there is nothing to wait for, else the next comparison has what is left
            named=NamedKeys(changed, effort.at_rest),
        )

    def _refusal(self, found: list[TableResult]) -> CutoverError:
        differ = found[0].verdict is Verdict.DIFFERENT
        return CutoverError(
            "rows differ that changed since the last verdict"
            if differ
            else "not all rows could be compared in time that changed since the last verdict",
            where=", ".join(one.target for one in found[:_NAMED]),
            cause="; ".join(_words(one) for one in found[:_NAMED]),
            remedy=f"see {self._reports(self._settings) / 'verify.txt'}; `migrator repair` mends what differs"
            if differ
            else 'give it more time (`[cutover] verify_s`, below `pause_s`), or set verify = "in_time" there, accept'
            " that plan, and start again",
        )

    @staticmethod
    def _reports(settings: Settings) -> Path:
        return settings.reports() / "cutover"


@dataclass(frozen=True, slots=True)
class LastVerdict:
    """The last verdict on a target table.

    Attributes:
        table: its name.
        verdict: in one word; empty: it was never verified.
        at_us: when it was found, in microseconds since 1970; 0: never.
    """

    table: str
    verdict: str
    at_us: int


@dataclass(frozen=True, slots=True)
class LastVerdicts:
    """The last verdicts on all target tables; ``unknown``: why they can't be read, empty where they can."""

    tables: tuple[LastVerdict, ...]
    unknown: str = ""


def last_verdicts(settings: Settings) -> LastVerdicts:
    """Returns the last verdict on each target table; raises nothing."""
    try:
        coverage = read_coverage(settings.reports()) or Coverage()
        names = [target.name for target in wiring.mapping(settings)]
    except MigratorError as error:
        return LastVerdicts((), str(error))
    tables = [(name, coverage.of(name)) for name in names]
    return LastVerdicts(tuple(LastVerdict(name, table.verdict, table.at_us) for name, table in tables))


def _words(table: TableResult) -> str:
    counts = table.counts
    differ = counts.different + counts.missing + counts.extra + counts.duplicate + counts.bad_rows
    said = f"{table.target}: {differ:,} of {counts.compared + counts.set_aside:,} keys differ"
    return f"{said}; {table.reason}" if table.reason else said
