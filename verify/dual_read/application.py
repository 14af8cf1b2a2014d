"""Dual read inside an application: the old answer is returned, the new one is compared on the side.

    dual = DualRead(old=old_engine, new=new_engine, migration="shop")
    rows = dual.query("open orders", "SELECT ... :customer", "SELECT ... :customer", {"customer": 7})
    total = dual.call("total", lambda: old_repository.total(7), lambda: new_repository.total(7))

No failure of the new side or of the comparison is ever raised into the application. An inline comparison keeps it
waiting for ``limit_s`` at most, one in the background doesn't keep it waiting at all; that one works on a copy of the
old answer, for the application may change the answer that it got. Exceptions of the *old* side pass unchanged.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookTooLong
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from sqlalchemy import Engine, text

from migrator.errors import ConfigError
from migrator.own_modules import own
from verify.dual_read.answer import Answer, answer_of
from verify.dual_read.callable_side import CallableReads, EngineReads, Positions, failure
from verify.dual_read.engine_side import NewEngine, OldEngine
from verify.dual_read.result import DualReadResult
from verify.dual_read.settle import LedgerWatch, Reads, settle
from verify.dual_read.tally import Tally
from verify.dual_read.verdict import Failure, Outcome, Read, Rules, Verdict, first_verdict
from verify.verdict import overall_verdict

_log = logging.getLogger(own("verify.dual_read"))
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits to the cost of comparisons.

    Attributes:
        sample: share of calls that are compared, 0 to 1.
        threads: that ask the new side.
        queue: calls that may wait for a thread; one more is dropped and counted.
        limit_s: the longest an inline comparison may keep the caller waiting.
        settle_s: the longest a difference is followed.
        follow_ups: differences of one name that are followed; further ones are unknown at once.
    """

    sample: float = 1.0
    threads: int = 2
    queue: int = 100
    limit_s: float = 1.0
    settle_s: float = 60.0
    follow_ups: int = 50

    def __post_init__(self) -> None:
        wrong = [
            f"sample={self.sample!r} is not from 0 to 1" if not 0 <= self.sample <= 1 else "",
            *[
                f"{name}={getattr(self, name)!r} is not above 0" if getattr(self, name) <= 0 else ""
                for name in ("threads", "queue", "limit_s", "settle_s", "follow_ups")
            ],
        ]
        if any(wrong):
            raise ConfigError("a limit of the dual read is wrong", where="; ".join(filter(None, wrong)))


class DualRead:
    """Asks both sides, compares their answers, and returns the old one.

    Args:
        old: the old database's engine; needed for ``query`` and for positions.
        new: the new one's.
        migration: its name in the ledger.
        change_tables: whether a PostgreSQL source is captured by triggers.
        inline: compare before the answer is returned instead of in the background.
        limits: bounds.
        seed: of sampling and of the order in which the two sides are asked; None for another one each time.

    Raises ``ConfigError``, here only.
    """

    def __init__(
        self,
        old: Engine | None = None,
        new: Engine | None = None,
        migration: str = "",
        *,
        change_tables: bool = False,
        inline: bool = False,
        limits: Limits | None = None,
        seed: int | None = None,
    ):
        if (old is None) != (new is None) or (old is not None and not migration):
            raise ConfigError(
                "a dual read with positions needs both engines and the migration's name",
                remedy="give old=, new= and migration=, or none of them (differences are then unknown, never a bug)",
            )
        self._limits, self._inline = limits or Limits(), inline
        self._old = OldEngine(old, change_tables) if old is not None else None
        self._new = NewEngine(new, migration) if new is not None else None
        self._engine = old
        self._about = migration, _shown(old), _shown(new)
        self._watch = LedgerWatch(self._new.ledger) if self._new else LedgerWatch(lambda: None)
        self._chance, self._seed = random.Random(seed), seed or 0
        self._pool = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="dual-read")
        self._followers = ThreadPoolExecutor(self._limits.threads, thread_name_prefix="dual-read-again")
        self._follow_room = threading.BoundedSemaphore(self._limits.threads + self._limits.queue)
        self._room = threading.BoundedSemaphore(self._limits.threads + self._limits.queue)
        self._lock = threading.Lock()
        self._tallies: dict[str, Tally] = {}
        self._started, self._began = datetime.now(UTC), time.monotonic()

    def call(self, name: str, old: Callable[[], T], new: Callable[[], Any], rules: Rules | None = None) -> T:
        """Calls ``old`` and returns what it returns; ``new`` is compared. Both must only read, and be
        callable again.

        ``rules`` says how answers are compared; the order of rows counts, ties are named, unless it says otherwise.
        """
        positions = Positions(self._old.view, self._watch.now) if self._old else None
        return self._both(name, old, CallableReads(old, new, positions), rules or Rules(), {})

    def query(
        self,
        name: str,
        old: str,
        new: str,
        parameters: Mapping[str, Any] | None = None,
        rules: Rules | None = None,
    ) -> list[dict[str, Any]]:
        """Runs ``old`` with ``:name`` parameters on the old engine and returns its rows; ``new`` is compared."""
        if self._old is None or self._new is None or self._engine is None:
            raise ConfigError("query() needs engines", remedy="give old= and new= to DualRead, or use call()")
        values = dict(parameters or {})
        clause, engine = text(old), self._engine

        def ask() -> list[dict[str, Any]]:
            with engine.connect() as connection:
                return [dict(row) for row in connection.execute(clause, values).mappings()]

        return self._both(
            name, ask, EngineReads(self._old, self._new, clause, text(new), values), rules or Rules(), values
        )

    def result(self) -> DualReadResult:
        """Returns what the comparisons found so far, with the verdict of each pair and of all pairs."""
        with self._lock:
            pairs = tuple(tally.result() for _, tally in sorted(self._tallies.items()))
        migration, source, target = self._about
        return DualReadResult(
            migration=migration,
            verdict=overall_verdict(pair.verdict for pair in pairs),
            started_at=self._started.isoformat(timespec="seconds"),
            elapsed_s=time.monotonic() - self._began,
            source=source,
            target=target,
            seed=self._seed,
            pairs=pairs,
            notes=(),
            remedy="",
        )

    def close(self, wait: bool = True) -> None:
        """Ends the threads; with ``wait``, calls that wait are compared first. Later calls ask the old side only."""
        self._pool.shutdown(wait=wait, cancel_futures=not wait)
        self._followers.shutdown(wait=wait, cancel_futures=not wait)

    def _both(
        self, name: str, old: Callable[[], T], reads: Reads, rules: Rules, values: Mapping[str, Any]
    ) -> T:
        tally = self._tally(name)
        with self._lock:
            chosen, new_first = self._chance.random() < self._limits.sample, self._chance.random() < 0.5
        if not chosen:
            return old()
        if not self._room.acquire(blocking=False):
            tally.drop()
            return old()
        job = _Job(tally, reads, rules, values, Future())
        running = self._submit(job) if new_first else None
        try:
            began = time.perf_counter()
            result = old()
            elapsed_s = time.perf_counter() - began
        except BaseException as error:
            job.old.set_exception(error)  # the comparison hears of it; the application gets it as it is
            if running is None and not new_first:
                self._room.release()
            raise
        job.old.set_result((_copied(result), elapsed_s))
        if not new_first:
            running = self._submit(job)
        if self._inline and running is not None:
            with suppress(TookTooLong, CancelledError):
                running.result(timeout=self._limits.limit_s)
        return result

    def _submit(self, job: _Job) -> Future[None] | None:
        try:
            return self._pool.submit(self._compare, job)
        except RuntimeError:  # closed, or the interpreter is going down
            self._room.release()
            job.tally.drop()
            return None

    def _compare(self, job: _Job) -> None:
        """Compares the first answers, in a thread of ours. Answers that differ are followed in another thread, so
        that no other call waits until the target has caught up."""
        try:
            new = job.reads.new()
            answer, elapsed_s = job.old.result()
            job.tally.timed("old", elapsed_s)
            if not isinstance(answer, Answer):
                raise answer
            if not isinstance(new.result, Failure):
                job.tally.timed("new", new.elapsed_s)
            old = Read(answer, None, self._old.view().high if self._old else None, elapsed_s)
            found = first_verdict(old, new, job.rules) or self._follow(job, old, new)
            if found is not None:
                job.tally.take(found, job.values, old, new)
        except (
            BaseException
        ) as error:  # also of sys.exit(): the thread is ours, an inline caller would get it
            self._failed(job, error)
        finally:
            self._room.release()

    def _follow(self, job: _Job, old: Read, new: Read) -> Verdict | None:
        """Hands a difference to the threads that follow; returns a verdict if it can't be followed."""
        if self._new is None:
            return Verdict(Outcome.UNKNOWN, "they differ, and without engines nobody can tell lag from a bug")
        if job.tally.wrong_so_far() >= self._limits.follow_ups:
            return Verdict(Outcome.UNKNOWN, "not followed: so many were wrong already")
        if not self._follow_room.acquire(blocking=False):
            return Verdict(Outcome.UNKNOWN, "not followed: too many differences at a time")
        try:
            self._followers.submit(self._settle, job, old, new)
        except RuntimeError:
            self._follow_room.release()
            return Verdict(Outcome.UNKNOWN, "not followed: the dual read was closed")
        return None

    def _settle(self, job: _Job, old: Read, new: Read) -> None:
        try:
            deadline = time.monotonic() + self._limits.settle_s
            job.tally.take(
                settle(job.reads, old, new, job.rules, self._watch, deadline), job.values, old, new
            )
        except BaseException as error:  # as above
            self._failed(job, error)
        finally:
            self._follow_room.release()

    def _failed(self, job: _Job, error: BaseException) -> None:
        text = failure(error).text
        _log.warning("dual read of %s: the comparison failed: %s", job.tally.name, text)
        job.tally.take(Verdict(Outcome.UNKNOWN, f"the comparison failed: {text}"), job.values, None, None)

    def _tally(self, name: str) -> Tally:
        with self._lock:
            return self._tallies.setdefault(name, Tally(name, seed=self._seed))


@dataclass(frozen=True, slots=True)
class _Job:
    """One call that is compared; ``old`` will hold what the application got, and its time."""

    tally: Tally
    reads: Reads
    rules: Rules
    values: Mapping[str, Any]
    old: Future[tuple[Answer | Exception, float]]


def _copied(result: Any) -> Answer | Exception:
    """The application's answer as it is now, or why it can't be compared."""
    try:
        return answer_of(result)
    except Exception as error:
        return error


def _shown(engine: Engine | None) -> str:
    return engine.url.render_as_string(hide_password=True) if engine is not None else ""
