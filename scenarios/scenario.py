"""A scenario: migration project + seeded workload + faults + expectations, as one frozen value.

``scenarios.play.catalog_files`` reads it from YAML; nothing here knows files or servers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Engine = Literal["postgresql", "mariadb", "mysql"]
PER_CHANGE: tuple[Engine, ...] = ("postgresql", "mariadb")
"""Engines of the subset for every change. Debian has MySQL in a suite that moves: a change must not wait for it."""
Ending = Literal["resumes", "restarts", "halts", "refused"]
"""The ending that a run must have: it goes on unaided and ends equal; does so once it was started again after a named
error, as after a crash; stops with a named error, the target a consistent cut; or preflight refuses to begin."""
WORK_TO_COME = (
    "schema changes carried through",
    "rows set aside instead of a stop",
    "cascades that the log lacks carried through",
)
"""All that a scenario may wait for; what has come is taken out, and the scenarios that waited for it are played."""
Verified = Literal["", "equal", "different"]
"""The verdict that ``migrator verify`` must give in the end; with "" it isn't asked."""


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """The writers of a scenario: which, how many, how fast.

    Attributes:
        name: of ``scenarios.workloads``.
        keys: rows (or accounts, items) before the run.
        sessions: concurrent clients.
        changes: row changes after which the writers stop by themselves.
        rate_per_s: row changes per second over all clients.
        hot_percent: of the writes that go to one hot key.
        options: what only this workload knows.
    """

    name: str
    keys: int = 500
    sessions: int = 4
    changes: int = 2000
    rate_per_s: float = 400.0
    hot_percent: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """One fault: what, where, when.

    Attributes:
        do: name of a fault in ``scenarios.faults``.
        at: named point and count (``capture.chunk:3``), or "" for ``after_changes``.
        after_changes: fires once the writers have made so many row changes (only without ``at``).
        heal_after_s: when to undo it; None leaves it to the fault.
        options: what only this fault knows (``side: target``, ``bytes: 20000``, ``sql: ...``).
    """

    do: str
    at: str = ""
    after_changes: int = 0
    heal_after_s: float | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Expectation:
    """The result that a scenario must have.

    Attributes:
        ending: see ``Ending``.
        error: regular expression that the named error must match (all but ``resumes``).
        checks: codes of the checkers that must hold.
        verify: see ``Verified``; only asked where the run catches up.
    """

    ending: Ending = "resumes"
    error: str = ""
    checks: tuple[str, ...] = ("D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8")
    verify: Verified = ""


CUT_OVER_CHECKS = ("S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8")
"""Codes of the checkers of a cut-over, of which all that have something to look at must hold."""
_AT_THE_END = ("S1", "S6")
Asked = Literal[
    "plan",
    "start",
    "back",
    "abort",
    "finish",
    "open the old side by hand",
    "dual read",
    "reads to new",
    "reads to old",
]
"""The words of an operator in a cut-over; the plan is accepted before the first of them anyhow."""
NUMBERED = "numbered"
"""Option of a workload whose rows are numbered by the servers."""
Answered = Literal["opens", "undone", "refused", "waits", "stays"]
"""The end of a step: the side asked for opens; the switch is undone; the word is refused with an error; it is
taken and nobody carries it out; whatever side was open is open still, and nothing was refused."""


@dataclass(frozen=True, slots=True)
class Step:
    """One word of an operator in a cut-over, and what must come of it. Clients write behind each.

    Attributes:
        ask: see ``Asked``.
        ends: see ``Answered``.
        said: regular expression that the tool's words, or the record's reason, must match; empty: anything.
    """

    ask: Asked
    ends: Answered = "opens"
    said: str = ""


@dataclass(frozen=True, slots=True)
class CutOver:
    """The part of a scenario that is a cut-over: clients fail over by themselves, an operator says what he wants.

    Attributes:
        way: number of the way in which cut-overs broke elsewhere (docs/explanation/cut-over-ways.md).
        steps: in their order.
    """

    way: int
    steps: tuple[Step, ...]

    @property
    def reads_alone(self) -> bool:
        """Returns whether reads are pointed without the writes."""
        return any(step.ask.startswith("reads ") for step in self.steps)

    @property
    def given_up(self) -> bool:
        """Returns whether the way back is given up in the end."""
        return any(step.ask == "finish" for step in self.steps)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One hazard.

    Attributes:
        name: file name without ``.yaml``; begins with ``fail_`` where refusal is right.
        title: the hazard in one sentence.
        hazards: numbers of the fault catalogue it exercises.
        engines: sources it runs on, one run each.
        workload: the writers.
        faults: in any order.
        expect: see ``Expectation``.
        settings: sections of ``migration.toml`` over the defaults, e.g. ``{"capture": {"chunk_rows": 100}}``.
        server: settings of the source server over the defaults, e.g. ``{"wal_keep_size": "0"}``.
        waits_for: the work that will make it come true, one of ``WORK_TO_COME``; until then it isn't played.
        until_then: the scenario that shows what happens today in its place: a stop by name.
        grants: words of statements that ``migrator grants`` prints as comments, to be run as well.
        per_change: runs for every change (the subset in CI).
        cut_over: see ``CutOver``; None for a run that only goes the way there.
    """

    name: str
    title: str
    workload: WorkloadSpec
    hazards: tuple[int, ...] = ()
    engines: tuple[Engine, ...] = ("postgresql",)
    faults: tuple[FaultSpec, ...] = ()
    expect: Expectation = field(default_factory=Expectation)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    server: Mapping[str, str] = field(default_factory=dict)
    waits_for: str = ""
    until_then: str = ""
    grants: tuple[str, ...] = ()
    per_change: bool = False
    cut_over: CutOver | None = None


def cut_over_checks(ending: Ending, cut_over: CutOver, workload: WorkloadSpec) -> tuple[str, ...]:
    """Returns the codes of the checkers of a cut-over: those of its end where both ways come to one, and those of
    reads and of numbers where there are any."""
    without = set(_AT_THE_END) if ending == "halts" else set()
    without |= {"S6"} if cut_over.given_up else set()
    without |= set() if cut_over.reads_alone else {"S7"}
    without |= set() if workload.options.get(NUMBERED) else {"S8"}
    return tuple(code for code in CUT_OVER_CHECKS if code not in without)
