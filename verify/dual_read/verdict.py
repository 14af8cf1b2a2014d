"""The verdict about one pair of answers, from answers and positions alone. No I/O, no clock.

The target claims to show the old database as it was at one position. So a new answer that differs proves nothing as
long as nobody knows what the old answer was at that position: the target may be behind (lag), or the row may have
changed again before the old side was read. A *round* brackets the position: an old read, then the new read once the
ledger has passed everything that the first one contains, then an old read that contains everything the ledger had.

- **Lag** as soon as the new answer equals one of the old answers around it.
- **Certain at once** when both old reads and the new one show one position: nothing lies between the places in the
  log, or nothing of the captured tables does.
- **Certain by steadiness** when ``steady_rounds`` rounds in a row, each at a further position, show the same old
  answer twice and the same other new answer. What changes in between starts again. (A value that only ever moves on
  can't look steady while it moves; one that toggles at random has to be met in the same states 24 times.)
- Anything else stays **unknown**.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from verify.dual_read.answer import Answer
from verify.dual_read.difference import Difference, difference
from verify.readers.snapshot import LogPlace

STEADY_ROUNDS = 8


class Outcome(Enum):
    """The possible outcomes of a comparison."""

    MATCH = "match"
    LAG = "lag"
    SEMANTIC = "semantic"
    BUG = "bug"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """A side that gave no answer. ``wrong``: the query itself is refused, so trying again is of no use."""

    text: str
    wrong: bool = False


@dataclass(frozen=True, slots=True)
class Read:
    """One side's answer between two places in the source's log.

    Of the old side: everything up to ``low`` is in it, and nothing after ``high``. Of the new side: the
    ledger stood at or after ``low`` and at or before ``high``; in one transaction both are the same. None:
    nobody can say.
    ``elapsed_s`` is the query's own time.
    """

    result: Answer | Failure
    low: LogPlace | None
    high: LogPlace | None
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Round:
    """Three reads in a row: old, new, old.

    ``reached``: the ledger had passed all that the first one contains; ``still``: the log holds no change of the
    captured tables between them.
    """

    before: Read
    new: Read
    after: Read
    reached: bool
    still: bool


@dataclass(frozen=True, slots=True)
class Rules:
    """Rules by which answers of one pair of queries are compared: order, accepted causes, rounds required."""

    order: str = "partial"
    accept: tuple[str, ...] = ()
    steady_rounds: int = STEADY_ROUNDS


@dataclass(frozen=True, slots=True)
class Verdict:
    """The end of one comparison. ``difference`` is None for a match; ``accepted``: a semantic one is no fault."""

    outcome: Outcome
    reason: str
    difference: Difference | None = None
    accepted: bool = False


def first_verdict(old: Read, new: Read, rules: Rules) -> Verdict | None:
    """Returns the verdict that one read of each side already proves; None when rounds are needed."""
    if isinstance(old.result, Failure):
        return Verdict(Outcome.UNKNOWN, f"the old side gave no answer: {old.result.text}")
    if isinstance(new.result, Failure):
        if new.result.wrong:
            return Verdict(Outcome.BUG, f"the new query is refused: {new.result.text}")
        return Verdict(Outcome.UNKNOWN, f"the new side gave no answer: {new.result.text}")
    found = difference(old.result, new.result, rules.order)
    if found is None:
        return Verdict(Outcome.MATCH, "")
    if found.accepted(rules.accept):
        return Verdict(Outcome.SEMANTIC, f"accepted: {found.summary}", found, accepted=True)
    return None


def verdict(rounds: Sequence[Round], rules: Rules) -> Verdict | None:
    """Returns the verdict that the rounds so far prove; None when another round is needed."""
    last = rounds[-1]
    for old in (last.before, last.after):
        early = first_verdict(old, last.new, rules)
        if early is not None:
            if early.outcome is Outcome.MATCH and last.reached:
                return Verdict(Outcome.LAG, f"settled in round {len(rounds)}")
            if early.outcome is not Outcome.MATCH:
                return early
    found = difference(_answer(last.after), _answer(last.new), rules.order)
    if found is None:
        return None  # equal before the ledger was seen to pass: one more round settles it
    if exact(last) and same(last.before, last.after, rules):
        return _certain(found, "no change lies between the places at which both sides stood")
    if steady(rounds, rules) >= rules.steady_rounds:
        return _certain(found, f"the same in {rules.steady_rounds} rounds, the target further on in each")
    return None


def _certain(found: Difference, how: str) -> Verdict:
    return Verdict(Outcome.BUG if found.bug else Outcome.SEMANTIC, f"{found.summary}; {how}", found)


def exact(done: Round) -> bool:
    """Returns whether the old reads and the new one surely show one state of the captured tables."""
    if not done.reached or not contained(done):
        return False
    if done.still:
        return True
    places = (done.before.low, done.before.high, done.new.low, done.new.high, done.after.low, done.after.high)
    orders = {place.order for place in places if place is not None}
    return None not in places and len(orders) == 1


def contained(done: Round) -> bool:
    """Returns whether the second old read surely contains everything that the target showed."""
    low, high = done.after.low, done.new.high
    return low is not None and high is not None and low.order >= high.order


def same(a: Read, b: Read, rules: Rules) -> bool:
    """Returns whether two reads of one side have the same answer."""
    one, other = _answer(a), _answer(b)
    return one == other if rules.order == "total" else one.unordered() == other.unordered()


def steady(rounds: Sequence[Round], rules: Rules) -> int:
    """Counts the last rounds that bracket the same answers, each at a further position of the target."""
    last, count, limit = rounds[-1], 0, None
    for done in reversed(rounds):
        if isinstance(done.before.result, Failure) or not (done.reached and contained(done)):
            break
        if not all(same(last.before, old, rules) for old in (done.before, done.after)):
            break
        if not same(last.new, done.new, rules):
            break
        if done.new.high is None or (limit is not None and done.new.high.order >= limit):
            break
        limit = done.new.low.order if done.new.low else 0
        count += 1
    return count


def _answer(read: Read) -> Answer:
    if isinstance(read.result, Failure):
        raise ValueError("a failed read has no answer")
    return read.result
