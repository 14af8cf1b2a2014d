"""``migrator dual-read run``: pairs of queries from a file, each with its parameters, compared by a few threads."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, text

from migrator.errors import ConfigError, MigratorError
from verify.dual_read.callable_side import EngineReads
from verify.dual_read.engine_side import NewEngine, OldEngine, engine_of
from verify.dual_read.log_files import read_log
from verify.dual_read.queries import QueryPair
from verify.dual_read.query_log import match_log
from verify.dual_read.result import DualReadResult, PairResult
from verify.dual_read.settle import LedgerWatch, settle
from verify.dual_read.tally import Tally
from verify.dual_read.verdict import Failure, Outcome, Read, Verdict
from verify.readers.engines import source_reader
from verify.readers.pending import Pending
from verify.readers.snapshot import LedgerState, LogPlace
from verify.settings import ServerSettings
from verify.verdict import Verdict as Answered
from verify.verdict import overall_verdict


@dataclass(frozen=True, slots=True)
class Plan:
    """The number of queries that a dual read asks, and how it asks them.

    Attributes:
        limit: sets of parameters per pair.
        repeat: how often each set is asked.
        workers: comparisons at a time.
        seed: of the choice and order of parameters, and of which side is asked first.
        settle_s: the longest a difference is followed.
        timeout_s: the longest a query may take on a server.
        follow_ups: wrong comparisons of one pair after which further differences stay unknown.
    """

    limit: int = 1000
    repeat: int = 1
    workers: int = 4
    seed: int = 1
    settle_s: float = 120.0
    timeout_s: float = 30.0
    follow_ups: int = 20


@dataclass(frozen=True, slots=True)
class CapturedLog:
    """A query log that parameters are taken from; ``form`` is one of ``query_log.FORMATS``."""

    file: Path
    form: str


def run(
    source: ServerSettings,
    target: ServerSettings,
    migration: str,
    pairs: Sequence[QueryPair],
    plan: Plan,
    log: CapturedLog | None = None,
) -> DualReadResult:
    """Compares all pairs. Nothing is written on either side.

    Raises ``ConfigError`` for parameters that don't come together, ``ConnectionFailed`` and ``VerifyError`` where a
    side can't be asked at all.
    """
    began, started = datetime.now(UTC), time.monotonic()
    old, new = engine_of(source, plan.workers + 1), engine_of(target, plan.workers + 1)
    try:
        sides = _Sides(old, new, source, migration, plan)
        sides.check()
        chance = random.Random(plan.seed)
        sets, notes = _parameters(pairs, sides, plan, chance, log)
        results = _compared(pairs, sets, sides, plan, chance)
    finally:
        old.dispose()
        new.dispose()
    verdict = overall_verdict(pair.verdict for pair in results)
    return DualReadResult(
        migration=migration,
        verdict=verdict,
        started_at=began.isoformat(timespec="seconds"),
        elapsed_s=time.monotonic() - started,
        source=source.server.url(),
        target=target.server.url(),
        seed=plan.seed,
        pairs=results,
        notes=tuple(notes),
        remedy=_remedy(verdict),
    )


def _remedy(verdict: Answered) -> str:
    return {
        Answered.EQUAL: "",
        Answered.DIFFERENT: "see the samples; if `migrator verify` says equal, the query is wrong, else the row is",
        Answered.UNKNOWN: "start `migrator run`, wait until it has caught up, or raise --wait, and run it again",
    }[verdict]


class _Sides:
    """The two engines and the ledger, as all comparisons use them."""

    def __init__(self, old: Engine, new: Engine, source: ServerSettings, migration: str, plan: Plan):
        self.old = OldEngine(old, source.change_tables, plan.timeout_s)
        self.new = NewEngine(new, migration, plan.timeout_s)
        self._engines = {"old": old, "new": new}
        reader = source_reader(source, migration)

        def pending(ledger: LedgerState, upto: LogPlace) -> Pending:
            dumps = ledger.checkpoint.dumps if ledger.checkpoint else ()
            return reader.pending(ledger, upto, [dump.table.name for dump in dumps])

        self.watch = LedgerWatch(self.new.ledger, pending)

    def check(self) -> None:
        """Raises the error of a side that can't answer any query."""
        self.old.view()
        self.new.ledger()

    def drawn(self, pair: QueryPair, limit: int) -> list[dict[str, Any]]:
        """Returns the sets of parameters that a query draws. Raises ``ConfigError``, ``VerifyError``."""
        assert pair.draw is not None
        with self._engines[pair.draw.side].connect() as connection:
            result = connection.execute(text(pair.draw.query))
            if set(result.keys()) != pair.names():
                raise ConfigError(
                    f"{pair.name}: draw.query gives {', '.join(result.keys())}",
                    where=f"the queries need {', '.join(sorted(pair.names())) or 'no parameters'}",
                    remedy="name the columns like the parameters (SELECT id AS customer ...)",
                )
            return [dict(row) for row in result.mappings().fetchmany(limit)]


def _parameters(
    pairs: Sequence[QueryPair], sides: _Sides, plan: Plan, chance: random.Random, log: CapturedLog | None
) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Returns sets of parameters by pair, and notes for the report about their origin."""
    if log is not None:
        if not any(pair.log for pair in pairs):
            raise ConfigError(
                "no pair of the file has a template",
                where="the field log",
                remedy="add log: SELECT ... with :name where a logged statement has a value",
            )
        found = match_log(read_log(log.file, log.form), pairs, log.form, plan.limit)
        described = found.statements - found.unmatched
        note = f"{log.file.name}: {described:,} of {found.statements:,} SELECTs are described by a pair"
        return found.parameters, [note]
    sets = {}
    for pair in pairs:
        if pair.draw:
            sets[pair.name] = sides.drawn(pair, plan.limit)
        elif pair.parameters or not pair.names():
            sets[pair.name] = combinations(pair.parameters, plan.limit, chance)
    left_out = [pair.name for pair in pairs if pair.name not in sets]
    return sets, [f"{name}: only with --log" for name in left_out]


def combinations(
    values: Mapping[str, Sequence[Any]], limit: int, chance: random.Random
) -> list[dict[str, Any]]:
    """Every combination where there are at most ``limit``, else that many different ones by chance."""
    names = list(values)
    if prod(len(choices) for choices in values.values()) <= limit:
        found = [dict(zip(names, combination, strict=True)) for combination in product(*values.values())]
        chance.shuffle(found)
        return found
    chosen: dict[tuple[int, ...], None] = {}
    while len(chosen) < limit:
        chosen[tuple(chance.randrange(len(values[name])) for name in names)] = None
    return [{name: values[name][i] for name, i in zip(names, places, strict=True)} for places in chosen]


def _compared(
    pairs: Sequence[QueryPair],
    sets: Mapping[str, Sequence[Mapping[str, Any]]],
    sides: _Sides,
    plan: Plan,
    chance: random.Random,
) -> tuple[PairResult, ...]:
    tallies = {
        pair.name: Tally(pair.name, pair.old, pair.new, pair.slower_than, plan.seed)
        for pair in pairs
        if pair.name in sets
    }
    with ThreadPoolExecutor(plan.workers, thread_name_prefix="dual-read") as pool:
        for batch in _batches(_jobs(pairs, sets, plan, chance), plan.workers * 64):
            running: list[Future[None]] = [
                pool.submit(_compare, pair, parameters, new_first, sides, tallies[pair.name], plan)
                for pair, parameters, new_first in batch
            ]
            for comparison in as_completed(running):
                comparison.result()
    return tuple(tally.result() for tally in tallies.values())


Job = tuple[QueryPair, Mapping[str, Any], bool]


def _jobs(
    pairs: Sequence[QueryPair],
    sets: Mapping[str, Sequence[Mapping[str, Any]]],
    plan: Plan,
    chance: random.Random,
) -> Iterator[Job]:
    """All comparisons, the pairs taking turns; which side is asked first is left to chance."""
    for _ in range(plan.repeat):
        longest = max(map(len, sets.values()), default=0)
        for place in range(longest):
            for pair in pairs:
                mine = sets.get(pair.name, ())
                if place < len(mine):
                    yield pair, mine[place], chance.random() < 0.5


def _batches(jobs: Iterator[Job], size: int) -> Iterator[list[Job]]:
    batch: list[Job] = []
    for job in jobs:
        batch.append(job)
        if len(batch) >= size:
            yield batch
            batch = []
    if batch:
        yield batch


def _compare(
    pair: QueryPair, parameters: Mapping[str, Any], new_first: bool, sides: _Sides, tally: Tally, plan: Plan
) -> None:
    reads = EngineReads(sides.old, sides.new, pair.old_clause(), pair.new_clause(), parameters)
    if new_first:
        new = reads.new()
        old = reads.old()
    else:
        old = reads.old()
        new = reads.new()
    for side, read in (("old", old), ("new", new)):
        if not isinstance(read.result, Failure):
            tally.timed(side, read.elapsed_s)
    tally.take(_verdict(reads, old, new, pair, sides, tally, plan), parameters, old, new)


def _verdict(
    reads: EngineReads, old: Read, new: Read, pair: QueryPair, sides: _Sides, tally: Tally, plan: Plan
) -> Verdict:
    enough = tally.wrong_so_far() >= plan.follow_ups
    deadline = time.monotonic() + (0 if enough else plan.settle_s)
    try:
        found = settle(reads, old, new, pair.rules, sides.watch, deadline)
    except (MigratorError, OSError) as error:
        return Verdict(Outcome.UNKNOWN, f"the ledger can't be read: {error}")
    if enough and found.outcome is Outcome.UNKNOWN:
        return Verdict(
            Outcome.UNKNOWN, f"not followed: {plan.follow_ups} comparisons of this pair were wrong already"
        )
    return found
