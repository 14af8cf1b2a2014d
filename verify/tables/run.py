"""``migrator verify``: reads both sides, compares them, explains differences, and writes the report."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from pyspark.sql import SparkSession

from migrator.errors import VerifyError
from migrator.model.remaps.remap import in_force
from transforms import nexts
from transforms.load import load_mapping
from transforms.registry import TargetMapping
from verify.readers.engines import JUDGED, source_reader, target_reader
from verify.readers.snapshot import SourceSnapshot
from verify.settings import ServerSettings
from verify.tables.compare.compare import Counts
from verify.tables.compare.key_maps import KeyMapReader, numbered
from verify.tables.compare.spark_failure import named_failure
from verify.tables.findings.differing import DIFFERING_FILE, write_differing
from verify.tables.findings.explain import EXPLAINED_ROWS_MAX, explain
from verify.tables.findings.samples import SAMPLES_MAX, finished_samples, take_samples
from verify.tables.report import MEND, write_reports
from verify.tables.result import CANNOT_DETECT, Sample, TableResult, VerifyResult, table_verdict
from verify.tables.rounds.live import MAX_ROUNDS, Limits, LiveComparison, Round, Step
from verify.tables.rounds.named_keys import NamedKeys
from verify.tables.rounds.progress import TableProgress
from verify.tables.rounds.watch import WITHIN_S, Watch
from verify.tables.sweeps.chunk_sweep import CHUNK_ROWS
from verify.tables.sweeps.lanes import LANES
from verify.tables.unsettled import not_judged, not_migrated, not_settled, settled_by
from verify.verdict import Verdict, overall_verdict

_SPARK_REMEDY = "see Spark's log; if memory or disk ran out, give it more, or verify fewer tables at once"


def verify(
    source: ServerSettings,
    target: ServerSettings,
    migration: str,
    mapping_path: Path,
    tables: Sequence[str] | None,
    spark: Callable[[], SparkSession],
    report_dir: Path,
    *,
    wait_s: float = 60.0,
    max_rounds: int = MAX_ROUNDS,
    chunk_rows: int = CHUNK_ROWS,
    lanes: int = LANES,
    within_s: float | None = WITHIN_S,
    say: Callable[[str], None] = lambda _: None,
    mend: str = MEND,
    acts: Sequence[str] = (),
    step: Step = lambda _: None,
    named: NamedKeys | None = None,
) -> VerifyResult:
    """Compares mapping(source) with the target and writes ``verify.txt``, ``verify.json`` and ``verify.html``.

    Args:
        source, target: the old database and the new one.
        migration: name in the ledger, and of slot and publication on PostgreSQL sources.
        mapping_path: the user's mapping file.
        tables: target tables to verify; None means all.
        spark: starts Spark on first use; made by ``transforms.on_spark.session`` (UTC, ANSI).
        report_dir: gets the reports and, while it runs, the snapshots.
        wait_s: longest wait for the pipeline per round.
        max_rounds: rounds at most; below 10 a difference under live writes can only be set aside.
        chunk_rows: source rows in a piece, where a table can be verified so; 0 compares one snapshot of each side.
        lanes: pairs of sessions that hash a large table at once, at most.
        within_s: the time for everything; None for no limit. When it is up, what isn't settled is unknown.
        say: prints what it does, every ten seconds at most.
        mend: the beginning of the reports' repair command (``verify.tables.report.repair_command``).
        acts: the latest acts on the migration, for the reports.
        step: hook at named points, for tests.
        named: keys to compare, of each of ``tables``; None: all keys.

    Raises ``VerifyError``, ``MappingError``, ``ConnectionFailed``: the comparison can't be made (exit code 2).
    """
    watch = Watch(math.inf if within_s is None else within_s, say)
    limits = Limits(wait_s, max_rounds, chunk_rows, lanes, named is not None and named.at_rest)
    began = _begin(target, migration, mapping_path)
    targets = _chosen(mapping_path, tables, spark, target, migration, began.switched)
    scratch = _scratch(report_dir)
    try:
        with named_failure("the comparison failed in Spark", "", _SPARK_REMEDY):
            live = _comparison(source, target, migration, spark, scratch, limits, step, watch)
            found, rounds, snapshot = live.run(targets, named)
            _refuse_switch(began.switched, _begin(target, migration, mapping_path).switched)
            results = tuple(_table(spark, table, rounds, snapshot, scratch) for table in found)
            listed = write_differing(migration, found, report_dir / DIFFERING_FILE)
    finally:
        rmtree(scratch, ignore_errors=True)
    outcome = _result(migration, (source, target), began, results, rounds, listed)
    result = replace(outcome, acts=tuple(acts), within_s=within_s)
    write_reports(result, report_dir, mend)
    return result


def _result(
    migration: str,
    sides: tuple[ServerSettings, ServerSettings],
    began: _Beginning,
    tables: tuple[TableResult, ...],
    rounds: Sequence[Round],
    listed: tuple[int, int],
) -> VerifyResult:
    return VerifyResult(
        migration=migration,
        verdict=overall_verdict(table.verdict for table in tables),
        started_at=began.at,
        elapsed_s=time.monotonic() - began.clock_s,
        segment=began.segment,
        source=sides[0].server.url(),
        target=sides[1].server.url(),
        tables=tables,
        rounds=tuple(rounds),
        remedy=_remedy(tables),
        cannot_detect=CANNOT_DETECT,
        differing_file=DIFFERING_FILE,
        differing_listed=listed[0],
        differing_left_out=listed[1],
        judged_by=began.judged_by,
    )


def _scratch(report_dir: Path) -> Path:
    """A folder for snapshots, below that of the reports, which may hold rows too."""
    report_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    return Path(mkdtemp(prefix="verify-", dir=report_dir))


def _comparison(
    source: ServerSettings,
    target: ServerSettings,
    migration: str,
    spark: Callable[[], SparkSession],
    scratch: Path,
    limits: Limits,
    step: Step,
    watch: Watch,
) -> LiveComparison:
    return LiveComparison(
        source_reader(source, migration),
        target_reader(target, migration),
        JUDGED[source.server.kind].schema(source.server),
        (source.server.kind, target.server.kind),
        lambda: _checked(spark()),
        scratch,
        limits,
        step,
        watch,
    )


def _checked(spark: SparkSession) -> SparkSession:
    """The session, if it prints and casts as the rules of ``verify.tables.compare.normalise`` need it."""
    wanted = {"spark.sql.session.timeZone": "UTC", "spark.sql.ansi.enabled": "true"}
    wrong = {name: found for name, value in wanted.items() if (found := spark.conf.get(name)) != value}
    if wrong:
        raise VerifyError(
            "the Spark session would change what values mean",
            where=", ".join(f"{name}={value}" for name, value in wrong.items()),
            remedy="use the session made by transforms.on_spark.session",
        )
    return spark


def _chosen(
    mapping_path: Path,
    tables: Sequence[str] | None,
    spark: Callable[[], SparkSession],
    server: ServerSettings,
    migration: str,
    switched: frozenset[str],
) -> list[TargetMapping]:
    """Returns the functions to judge by; ``switched``: targets that their next functions make by now."""
    mapping, maps = load_mapping(mapping_path, spark), KeyMapReader(server, migration)
    if mapping.nexts:
        mapping = nexts.in_force(mapping, switched)
    if tables is None:
        return [numbered(target, maps.entries) for target in mapping.targets]
    unknown = [name for name in tables if name not in mapping]
    if unknown or not tables:
        raise VerifyError(
            "the mapping makes no such target table" if unknown else "no table was named",
            where=", ".join(unknown),
            remedy=f"choose from {', '.join(target.name for target in mapping)}",
        )
    return [numbered(mapping[name], maps.entries) for name in dict.fromkeys(tables)]


def judged_by(mapping_path: Path, switched: frozenset[str]) -> str:
    """Returns a digest of the functions that judge: of the mapping file, and of which next ones are in force."""
    digest = sha256(mapping_path.read_bytes())
    digest.update(json.dumps(sorted(switched)).encode())
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The state of things when a verification began.

    Attributes:
        at: wall clock, ISO 8601 in UTC.
        clock_s: the monotonic clock.
        segment: the segment at which the ledger stood.
        switched: the targets whose next functions were in force.
        judged_by: see ``VerifyResult``.
    """

    at: str
    clock_s: float
    segment: int
    switched: frozenset[str]
    judged_by: str


def _begin(server: ServerSettings, migration: str, mapping_path: Path) -> _Beginning:
    at, clock_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    ledger = target_reader(server, migration).ledger()
    known = None if ledger is None else ledger.checkpoint
    segment = 0 if ledger is None or known is None else ledger.segment
    switched = in_force(() if known is None else known.remaps)
    return _Beginning(at, clock_s, segment, switched, judged_by(mapping_path, switched))


def _refuse_switch(before: frozenset[str], after: frozenset[str]) -> None:
    """Raises ``VerifyError`` where a target got rows of its next function meanwhile."""
    if before != after:
        raise VerifyError(
            "a target got rows of its next mapping while it was compared",
            where=", ".join(sorted(before ^ after)),
            cause="a remap ended meanwhile, and rows were judged by the function that was in force before",
            remedy="verify again",
        )


def _table(
    spark: Callable[[], SparkSession],
    table: TableProgress,
    rounds: Sequence[Round],
    snapshot: SourceSnapshot | None,
    scratch: Path,
) -> TableResult:
    counts = _apart(table)
    differing, shape = table.differing(), table.shape
    columns = explain(differing, shape, table.columns) if differing is not None and shape else ()
    samples: tuple[Sample, ...] = ()
    aside = table.aside_sample(SAMPLES_MAX, scratch / f"aside-{table.target.name}")
    if shape and (differing is not None or aside is not None):
        taken = take_samples(differing, aside, shape)
        samples = finished_samples(spark(), table.target, taken, shape, table.columns, snapshot)
    reason = not_judged(table)
    verdict = table_verdict(counts, reason)
    if verdict is Verdict.UNKNOWN and not reason:
        reason = not_settled(table, counts, rounds)
    elif counts.bad_rows:
        reason = "; ".join(filter(None, (reason, not_migrated(table.bad_rows))))
    return TableResult(
        target=table.target.name,
        sources=table.target.sources,
        key=table.target.key,
        verdict=verdict,
        reason=reason,
        counts=counts,
        mapped_rows=table.mapped_rows,
        target_rows=table.target_rows,
        uncompared_columns=table.uncompared,
        columns=columns,
        explained_rows_cap=EXPLAINED_ROWS_MAX,
        samples=samples,
        method=table.method,
        remedy=settled_by(table, rounds) if verdict is Verdict.UNKNOWN else "",
    )


def _apart(table: TableProgress) -> Counts:
    """The numbers, rows that are set aside counted as such alone."""
    counts = table.counts()
    return replace(counts, missing=counts.missing - table.missing_bad_rows()) if counts.bad_rows else counts


def _remedy(tables: Sequence[TableResult]) -> str:
    verdicts = {table.verdict for table in tables}
    if Verdict.DIFFERENT in verdicts:
        return "see the samples; correct the cause, then `migrator repair --from verify.json` shows what it would do"
    return "; ".join(dict.fromkeys(table.remedy for table in tables if table.remedy))
