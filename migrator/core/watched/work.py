"""Troubles of the work itself: who leads, how runs end, what stands still, falls behind or falls off, wrong rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from migrator.model.observed.bounds import Bounds
from migrator.model.observed.hour import Hour, Look
from migrator.model.observed.observation import LEADER, STANDBY, STOPPED, STREAMING, Observation
from migrator.model.observed.trouble import ACT, LOOK, Trouble

HOT_LAG_S = 60.0
_MANY_ERRORS = 10
_HOT_MINUTES = 5
_UNLED_US, _UNKNOWN_US, _TOOK_OVER_US, _ENDED_US = 120_000_000, 300_000_000, 600_000_000, 3_600_000_000
_ERRORS_US = 600_000_000
_QUIET_S = 60.0
_OUTAGE_LOOKS = 3
"""Looks without an answer: the half minute of the alerts."""
_OF_THE_MAPPING = ("MappingError", "MappingErrors", "SchemaError", "ReplacedError")
_STANDS_STILL = "Spark, the mapping or a lock in the target stands still"
_LOOK_THERE = (
    "look at Spark's log in the state folder (spark.log), for locks in the target; a restart loses nothing"
)
_SHOWN = 3
_LONG = 300


def nobody_leads(seen: Observation, hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """Processes that stand by while none leads."""
    if (
        seen.role == STANDBY
        and seen.phase != STOPPED
        and not seen.leader
        and seen.at_us - seen.started_us > _UNLED_US
    ):
        yield Trouble(
            "NobodyLeads",
            ACT,
            "processes run, and none leads",
            hour.since(lambda look: look.role == STANDBY and look.phase == seen.phase),
            "nothing is captured or applied; the source keeps its log, up to its bounds",
            "look at the lines of the processes, and at ZooKeeper where [coordination] names one",
            "several-machines",
        )


def ended_by_error(seen: Observation, _hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """The error by which the run before this one ended, for an hour."""
    ended = seen.ended
    if ended is None or not ended.error or seen.at_us - ended.at_us > _ENDED_US:
        return
    mapping = ended.error in _OF_THE_MAPPING
    yield Trouble(
        "EndedByError",
        ACT,
        f"the run before this one was ended by {ended.error}: {ended.words[:_LONG]}",
        ended.at_us,
        "if it comes again, nothing is applied; positions are kept, nothing is skipped",
        "correct the mapping as it says, then start the run again"
        if mapping
        else "do what it says; `migrator history` has the stops before",
        "change-the-mapping" if mapping else "errors",
    )


def different(seen: Observation, _hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """Rows that a verification found wrong, and answers of dual reads that lag doesn't explain."""
    wrong = [one for one in seen.judged.verified if one.verdict == "different"]
    if wrong:
        keys = sum(one.differing for one in wrong)
        yield Trouble(
            "Different",
            ACT,
            f"rows of {_some([one.table for one in wrong])} differ from what the mapping makes of the source"
            + (f": {keys:,} keys" if keys else ""),
            min(one.at_us for one in wrong) or None,
            "the target has wrong rows: written by someone else, or lost",
            "read the report that `migrator status` names, then `migrator repair`; don't cut over before",
            "repair",
            tuple(one.table for one in wrong),
        )
    answers = dict(seen.judged.reads).get("wrong", 0)
    if answers:
        yield Trouble(
            "DualReadWrong",
            LOOK,
            f"{answers:,} dual reads had different answers that lag doesn't explain",
            seen.judged.wrong_us,
            "applications would read something else from the new side",
            "read the dual read's report: it names the queries",
            "dual-read",
        )


def nothing_applied(seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """Captured changes that wait while no batch is applied and the target answers."""
    if seen.target.problem or seen.lag.age_s is None or seen.capture_lag.age_s is None or not hour.looks:
        return
    waits_s = seen.lag.age_s - seen.capture_lag.age_s
    batches = int(sum(number for _, number in seen.work.batches))
    stands_us = hour.since(lambda look: look.batches == batches)
    if waits_s <= bounds.stalled_s or stands_us is None or seen.at_us - stands_us < bounds.stalled_s * 1e6:
        return
    yield Trouble(
        "NothingApplied",
        ACT,
        f"captured changes wait, and no batch is applied: {seen.note or _STANDS_STILL}",
        _behind_since(seen),
        "the backlog fills the disk of the state folder, then the source keeps its log",
        "mend what it says; the run tries again by itself" if seen.note else _LOOK_THERE,
        "stop-and-restart",
    )


def hot_table(seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """One table that has nearly all changes while all wait."""
    if seen.lag.age_s is None or seen.lag.age_s <= HOT_LAG_S:
        return
    changes = hour.changes(_HOT_MINUTES)
    total = sum(changes.values())
    for table, number in changes.items():
        if number > bounds.hot_share * total:
            yield Trouble(
                "HotTable",
                LOOK,
                f"{table} has {number / total:.0%} of all changes, and the target falls behind",
                _behind_since(seen),
                "all tables wait behind it: changes are applied in the order of commits",
                "find out who writes it so much; raise [apply] batch_rows, give Spark more cores, or look for slow"
                " indexes and triggers on its target tables",
                "pace",
                (table,),
            )


def lag(seen: Observation, hour: Hour, bounds: Bounds) -> Iterator[Trouble]:
    """A lag beyond its bound, or one that nobody knows although the source answers."""
    if seen.role != LEADER:
        return
    age_s = seen.lag.age_s
    if seen.phase == STREAMING and age_s is not None and age_s > bounds.max_lag_s:
        yield Trouble(
            "Lag",
            ACT,
            f"the target is {age_s:,.0f} s behind the source; {bounds.max_lag_s:g} s are allowed",
            _behind_since(seen),
            "readers of the target see older rows; the source keeps its log for as long",
            "compare what isn't captured (reading is slow) with what waits in the event log (mapping or target"
            " is slow)",
            "watch",
        )
    if age_s is None and not seen.source.problem and seen.at_us - seen.started_us > _UNKNOWN_US:
        yield Trouble(
            "LagUnknown",
            LOOK,
            f"nobody knows how far the target is behind: {seen.lag.unknown}",
            hour.since(lambda look: look.lag_s is None),
            "a stall would not be seen",
            "run `migrator status`: it says why; before the first batch is applied there is nothing to compare",
            "watch",
        )


def inserts_fell_off(_seen: Observation, hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """Tables that get far fewer new rows than in the hour before."""
    if not hour.fallen:
        return
    tables = [one.table for one in hour.fallen]
    worst = max(hour.fallen, key=lambda one: one.usual - one.now)
    yield Trouble(
        "InsertsFellOff",
        LOOK,
        f"inserts fell off in {_some(tables)}: {worst.table if len(tables) > 1 else 'it'} had at least"
        f" {worst.usual:,.0f} a minute, now {worst.now:,.1f}",
        min(one.since_us for one in hour.fallen),
        "an application that stopped writing, or whose writes no longer reach this table; the migration goes on",
        "ask who writes the table; look at the application's errors and at triggers that were dropped",
        "live-page",
        tuple(tables),
    )


def errors_repeat(_seen: Observation, hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """Errors that the run got over, again and again."""
    looks = hour.within(_ERRORS_US) if hour.looks else ()
    outages = set(_outages(looks))
    met = [
        (now.at_us, now.errors - before.errors)
        for place, (before, now) in enumerate(pairwise(looks), 1)
        if now.errors > before.errors and place not in outages
    ]
    number = sum(risen for _, risen in met)
    if number > _MANY_ERRORS:
        ago_s = (looks[-1].at_us - met[-1][0]) / 1e6
        yield Trouble(
            "ErrorsRepeat",
            LOOK,
            f"{number} errors were met in ten minutes, and got over"
            + (f"; none in the last {ago_s:,.0f} s" if ago_s > _QUIET_S else ""),
            met[0][0],
            "the run gets over them each time, and is slower; they may hide something else",
            "run.log in the state folder names them; `migrator status` has the note of what is retried",
            "log",
        )


def _outages(looks: Sequence[Look]) -> Iterator[int]:
    """Places of looks during which, or just before or behind which, a server was down long enough to be told of:
    errors of these moments are the outage's."""
    for down, group in groupby(
        enumerate(looks), lambda one: one[1].source_s is None or one[1].target_s is None
    ):
        places = [place for place, _ in group]
        if down and len(places) >= _OUTAGE_LOOKS:
            yield from range(places[0], places[-1] + 2)


def processes(seen: Observation, hour: Hour, _bounds: Bounds) -> Iterator[Trouble]:
    """A standby that took over, and a leader without one that had one."""
    if seen.role != LEADER:
        return
    led_us = hour.since(lambda look: look.role == LEADER)
    before = any(look.role == STANDBY and look.phase == "standing by" for look in hour.looks)
    if before and led_us is not None and seen.at_us - led_us < _TOOK_OVER_US:
        yield Trouble(
            "TookOver",
            LOOK,
            "this process stood by and leads now",
            led_us,
            "nothing is lost; there may be no further standby now",
            "find out why the former leader ended (`migrator history`), and start it again as a standby",
            "several-machines",
        )
    if seen.standbys == 0 and any((look.standbys or 0) > 0 for look in hour.looks):
        yield Trouble(
            "NoStandby",
            LOOK,
            "no process stands by any more",
            hour.since(lambda look: look.standbys == 0),
            "if the leader ends, nobody takes over",
            "start `migrator run --ha` on another machine",
            "several-machines",
        )


def _behind_since(seen: Observation) -> int | None:
    """The moment at which the target last had everything."""
    return None if seen.lag.at_most_s is None else seen.at_us - int(seen.lag.at_most_s * 1e6)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
