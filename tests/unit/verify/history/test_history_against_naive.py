"""The vectorised checkers against the definitions written down naively, on valid and on corrupted histories."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.histories.made import Record, Records, make, row
from tests.histories.naive_judge import Naive
from verify.history.checks import atomic_cut
from verify.history.evidence import Evidence
from verify.history.history import CHUNK, DELETE, FAILED, LOG, PUT, UNKNOWN
from verify.history.judge import judge
from verify.history.result import Outcome

CODES = ("D1", "D2", "D3", "D4", "D5", "D6")


def random_row(rng: random.Random, records: Records) -> Record:
    """A row of the log, mostly; else one that nobody committed."""
    chosen = rng.choice(records["log"])
    if rng.random() < 0.2:
        return row(chosen["table"], chosen["key"], (9, 999, 5))
    return {name: chosen[name] for name in ("table", "key", "session", "number", "kind", "value")}


def drop_change(rng: random.Random, records: Records) -> None:
    records["changes"].pop(rng.randrange(len(records["changes"])))


def swap_changes(rng: random.Random, records: Records) -> None:
    changes = records["changes"]
    left, right = rng.sample(range(len(changes)), 2)
    for name in ("session", "number", "kind", "value"):
        changes[left][name], changes[right][name] = changes[right][name], changes[left][name]


def add_change(rng: random.Random, records: Records) -> None:
    changes = records["changes"]
    place = rng.randrange(len(changes) + 1)
    commit = rng.choice((0, changes[place - 1]["commit"] if place else 0))
    if commit and place < len(changes) and changes[place]["commit"] == 0:
        commit = 0
    changes.insert(place, {"commit": commit, **random_row(rng, records)})


def delay_change(rng: random.Random, records: Records) -> None:
    """A transaction is split: one of its rows comes with a later commit."""
    changes = records["changes"]
    place = rng.randrange(len(changes))
    moved = changes.pop(place)
    to = rng.randrange(place, len(changes) + 1)
    after = changes[to - 1]["commit"] if to else 1
    changes.insert(to, {**moved, "commit": after})


def move_position(rng: random.Random, records: Records) -> None:
    commit = rng.choice(records["commits"])
    commit["order"] += rng.choice((-30, -6, -3, 3, 6, 30))


def lower_epoch(rng: random.Random, records: Records) -> None:
    rng.choice(records["commits"])["epoch"] -= 2


def add_increment(rng: random.Random, records: Records) -> None:
    # a corruption before this one may have left a counter's row without a value
    folds = [each for each in records["changes"] if each["table"] == "counter" and each["value"] is not None]
    rng.choice(folds)["value"] += 1


def deliver_again(rng: random.Random, records: Records) -> None:
    deliveries = records["deliveries"]
    place = rng.randrange(len(deliveries))
    again = random_row(rng, records)
    origin = rng.choice((CHUNK, LOG))
    order = deliveries[place].get("order") if origin == LOG else None
    if again["kind"] == DELETE and origin == CHUNK:
        again["kind"] = PUT
    if origin == LOG and order is None:
        order = 0
    segment = deliveries[place]["segment"]
    deliveries.insert(place, {"segment": segment, "origin": origin, "order": order, "index": 0, **again})


def swap_deliveries(rng: random.Random, records: Records) -> None:
    deliveries = records["deliveries"]
    left, right = rng.sample(range(len(deliveries)), 2)
    names = ("table", "key", "session", "number", "kind", "value")
    if deliveries[left]["kind"] == deliveries[right]["kind"] or deliveries[left]["origin"] == LOG:
        for name in names:
            deliveries[left][name], deliveries[right][name] = deliveries[right][name], deliveries[left][name]


def drop_log_row(rng: random.Random, records: Records) -> None:
    records["log"].pop(rng.randrange(len(records["log"])))


def misread(rng: random.Random, records: Records) -> None:
    read = rng.choice(records["observations"])
    read["value"] = (read["value"] or 0) + 1


def read_order(rng: random.Random, records: Records) -> None:
    rng.choice(records["observations"])["order"] += rng.choice((-6, -3, 3))


def dump_anew(rng: random.Random, records: Records) -> None:
    commit = rng.choice(records["commits"])
    commit["covered"] = rng.choice(('{"register": null}', '{"register": "9", "note": true}', "{}"))


CORRUPTIONS: tuple[Callable[[random.Random, Records], None], ...] = (
    drop_change,
    swap_changes,
    add_change,
    delay_change,
    move_position,
    lower_epoch,
    add_increment,
    deliver_again,
    swap_deliveries,
    drop_log_row,
    misread,
    read_order,
    dump_anew,
)


def corrupted(seed: int, kinds: tuple[Callable[[random.Random, Records], None], ...]) -> Records:
    rng = random.Random(seed)
    records = make(seed, rng.randint(20, 50))
    for corrupt in kinds:
        try:
            corrupt(rng, records)
        except (IndexError, ValueError):  # nothing there to corrupt
            continue
    return records


def compare(records: Records) -> dict[str, bool]:
    naive = Naive(records)
    history = records.history()
    results = {result.code: result for result in judge(history, CODES)}
    for result in results.values():
        assert not result.reason.startswith("the checker failed"), result
        assert (result.outcome is Outcome.VIOLATED) == (result.violations > 0) == (len(result.witnesses) > 0)
    found = {code: result.outcome is Outcome.VIOLATED for code, result in results.items()}
    assert found == naive.violated()
    evidence = Evidence(history)
    torn = np.flatnonzero(atomic_cut._torn(evidence) & atomic_cut.cuts(evidence))
    assert set(torn.tolist()) == naive.torn()
    return found


@settings(max_examples=60)
@given(st.integers(0, 10**6))
def test_a_valid_history_holds(seed: int) -> None:
    records = make(seed)
    found = compare(records)
    assert not any(found.values())
    outcomes = {result.code: result.outcome for result in judge(records.history())}
    assert outcomes.pop("D7") is Outcome.HOLDS
    assert outcomes.pop("D8") is not Outcome.VIOLATED
    assert set(outcomes.values()) <= {Outcome.HOLDS, Outcome.UNKNOWN}
    assert outcomes["D6"] is Outcome.HOLDS


@settings(max_examples=200)
@given(st.integers(0, 10**6), st.lists(st.sampled_from(CORRUPTIONS), min_size=1, max_size=3))
@example(
    993715, [swap_changes, dump_anew]
)  # a later write shows when the earlier one's key isn't judged any more
@example(729106, [dump_anew, move_position])  # a dump that begins anew and covers a key again with one commit
@example(236, [swap_changes, add_increment])  # a counter's row that the first corruption left without a value
def test_a_corrupted_history_is_judged_as_the_definitions_say(
    seed: int, kinds: list[Callable[[random.Random, Records], None]]
) -> None:
    compare(corrupted(seed, tuple(kinds)))


@pytest.mark.parametrize("seeds", [15, pytest.param(30, marks=pytest.mark.slow)])
def test_each_kind_of_corruption_is_often_caught(seeds: int) -> None:
    """The comparison above is worth something only if corruptions do violate something."""
    caught = Counter(
        kind.__name__
        for kind in CORRUPTIONS
        for seed in range(seeds)
        if any(compare(corrupted(seed, (kind,))).values())
    )
    for kind in CORRUPTIONS:
        if kind is not dump_anew:  # takes judgement away, at most
            assert caught[kind.__name__] >= seeds // 5, caught


def test_what_a_client_cannot_know_is_no_loss() -> None:
    records = make(3)
    for each in records["operations"]:
        each["outcome"] = UNKNOWN
    unlogged = row("register", "7", (2, 500, None))
    records["operations"].append({**unlogged, "outcome": UNKNOWN})
    records["operations"].append({**unlogged, "number": 501, "outcome": FAILED})
    assert {result.outcome for result in judge(records.history(), ("D3", "D4"))} == {Outcome.HOLDS}
