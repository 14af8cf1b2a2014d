"""The named checker catches the named corruption, in every seed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.histories.made import Records, make
from verify.history.history import CHUNK, PUT
from verify.history.judge import judge
from verify.history.result import Outcome


def effective(records: Records) -> list[int]:
    """Changes that altered what the target holds, of keys that the dump or the log had brought before."""
    held: dict[tuple[str, str], Any] = {}
    found = []
    for index, change in enumerate(records["changes"]):
        key = change["table"], change["key"]
        now = (change["session"], change["number"]) if change["kind"] == PUT else None
        if key in held and held[key] != now:
            found.append(index)
        held[key] = now
    return found


def previous(records: Records, index: int) -> int:
    changes = records["changes"]
    key = changes[index]["table"], changes[index]["key"]
    return max(each for each in range(index) if (changes[each]["table"], changes[each]["key"]) == key)


def corrupt(records: Records, kind: str, rng: random.Random) -> None:
    changes, commits = records["changes"], records["commits"]
    found = effective(records)
    index = rng.choice(found)
    if kind == "split transaction":
        counts = [each["commit"] for each in changes]
        found = [each for each in found if counts.count(counts[each]) > 1 and counts[each] < len(commits)]
        index = rng.choice(found)
    before = changes[previous(records, index)]
    cell = ("session", "number", "kind", "value")
    if kind == "swapped changes":
        for name in cell:
            changes[index][name], before[name] = before[name], changes[index][name]
    elif kind == "dropped change":
        del changes[index]
    elif kind == "old version again":
        changes.append({**before, "commit": 0})
    elif kind == "split transaction":
        commit = changes[index]["commit"]
        at = max(place for place, each in enumerate(changes) if each["commit"] in (commit, commit + 1))
        changes.insert(at, {**changes.pop(index), "commit": commit + 1})
    elif kind == "position too high":
        commits[changes[index]["commit"] - 2]["order"] = commits[changes[index]["commit"] - 1]["order"]
    elif kind == "increment twice":
        fold = rng.choice([each for each in found if changes[each]["table"] == "counter"])
        changes[fold]["value"] += changes[fold]["value"] - changes[previous(records, fold)]["value"]
    elif kind == "stale chunk":
        late = {"origin": CHUNK, "segment": records["deliveries"][-1]["segment"] + 1, "order": None}
        records["deliveries"].append({**before, **late, "kind": PUT})


@pytest.mark.parametrize("seeds", [20, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("kind", "codes"),
    [
        ("swapped changes", {"D6"}),
        ("dropped change", {"D6"}),
        ("old version again", {"D6"}),
        ("split transaction", {"D6"}),
        ("position too high", {"D6"}),
        ("increment twice", {"D5", "D6"}),
        ("stale chunk", {"D1"}),
    ],
)
def test_the_named_checker_catches_it_in_every_seed(kind: str, codes: set[str], seeds: int) -> None:
    tried = 0
    also: set[str] = set()
    for seed in range(seeds):
        records = make(seed, 80)
        try:
            corrupt(records, kind, random.Random(seed))
        except (IndexError, ValueError):  # this seed has nothing of the kind
            continue
        tried += 1
        results = judge(records.history(), [f"D{number}" for number in range(1, 7)])
        violated = {each.code for each in results if each.outcome is Outcome.VIOLATED}
        also |= violated
        assert codes <= violated, (seed, violated)
    assert tried >= seeds // 3
    expected = {
        "swapped changes": {"D1", "D3", "D4"},
        "dropped change": {"D3", "D4"},
        "old version again": {"D1", "D3"},
        "split transaction": {"D3"},
        "position too high": {"D3"},
    }
    assert expected.get(kind, set()) <= also
