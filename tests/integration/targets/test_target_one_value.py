"""Unique values and foreign keys whose texts differ and that the target takes for one: right, or refused by name.

Keys of that kind are in ``test_target_one_key``; here the key is a number, and what the target takes for one is a
unique value beside it, or what a child's rows point at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from migrator.errors import TargetError
from migrator.ports.target import TargetRows
from tests.drawn import GENERATED, SEED
from tests.integration import target_bench, target_bench_mysql
from tests.integration.key_spellings import MARIADB, MYSQL, POSTGRES, Groups, Kind, set_up
from tests.servers import MariaDBServer, PostgresServer, fresh_database

pytestmark = pytest.mark.integration
Bench = target_bench.Bench | target_bench_mysql.Bench
FEW, MANY = 5, 12
examples = pytest.mark.parametrize("histories_drawn", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
Rows = dict[int, str]
COMPARED = tuple(kind for kind in POSTGRES if not kind.index and kind.name != "shadowed operator")


@dataclass(frozen=True)
class Step:
    """One batch: rows as they were and as they became, by number; and all rows afterwards."""

    before: Rows
    after: Rows
    state: Rows


@st.composite
def histories(draw: st.DrawFn, groups: Groups) -> list[Step]:
    """Numbered rows whose values are spellings, which the source tells apart; most of a batch moves values around."""
    spellings = [one for group in groups for one in group]
    state: Rows = {}
    steps = []
    for _ in range(draw(st.integers(2, 6))):
        old = dict(state)
        for _ in range(draw(st.integers(1, 4))):
            number = draw(st.integers(1, 5))
            wanted = draw(st.one_of(st.none(), st.sampled_from(spellings)))
            owner = next((one for one, value in state.items() if value == wanted), None)
            if wanted is None:
                state.pop(number, None)
            elif owner is None:
                state[number] = wanted
            elif number in state:  # they swap
                state[owner], state[number] = state[number], wanted
        changed = [one for one in {*old, *state} if old.get(one) != state.get(one)]
        steps.append(
            Step(
                {one: old[one] for one in changed if one in old},
                {one: state[one] for one in changed if one in state},
                dict(state),
            )
        )
    return steps


def twice(state: Rows, groups: Groups) -> bool:
    """Whether two rows have values that the target takes for one."""
    found = [next(place for place, group in enumerate(groups) if value in group) for value in state.values()]
    return len(found) != len(set(found))


def table(kind: Kind, rows: Rows) -> pa.Table | None:
    if not rows:
        return None
    keys = pa.array([kind.arrow(value) for value in rows.values()], kind.arrow_type)
    return pa.table({"id": pa.array(list(rows), pa.int32()), "k": keys})


def stored(bench: Bench, kind: Kind, name: str) -> Rows:
    shown = kind.shown.replace("{0}", "k")
    return dict(bench.database.query(f"SELECT id, {shown} FROM {name}"))


def printed(kind: Kind, rows: Rows) -> Rows:
    return {number: kind.printed(value) for number, value in rows.items()}


def refusal(bench: Bench, part: TargetRows) -> TargetError | None:
    """What a batch is refused with."""
    try:
        bench.apply(part)
    except TargetError as error:
        return error
    return None


def check(bench: Bench, kind: Kind, name: str, drawn: int) -> None:
    """Each batch of drawn histories is right; or refused where the target can't hold all rows, changing nothing."""
    seen = {"right": 0, "refused": 0}

    @seed(SEED)
    @settings(GENERATED, max_examples=drawn)
    @given(histories(kind.groups))
    def held(history: list[Step]) -> None:
        bench.database.execute(f"DELETE FROM {name}")
        last: Rows = {}
        for step in history:
            part = bench.part(name, before=table(kind, step.before), after=table(kind, step.after))
            error = refusal(bench, part)
            if error is not None:
                assert twice(step.state, kind.groups), (step, error)
                assert name in error.where, error
                assert stored(bench, kind, name) == printed(kind, last)
                seen["refused"] += 1
                return
            assert not twice(step.state, kind.groups), step
            last = step.state
            assert stored(bench, kind, name) == printed(kind, last), step
            seen["right"] += 1

    held()
    assert seen["right"] > drawn - 2
    assert not any(len(group) > 1 for group in kind.groups) or seen["refused"]


def check_links(bench: Bench, kind: Kind, name: str, drawn: int) -> None:
    """Children point at parents in any spelling that the target takes for one; parents are spelled anew meanwhile."""
    child = f"{name}_child"

    @seed(SEED)
    @settings(GENERATED, max_examples=drawn)
    @given(histories(tuple((group[0],) for group in kind.groups)), st.randoms(use_true_random=False))
    def held(history: list[Step], dice: Any) -> None:
        bench.database.execute(f"DELETE FROM {child}", f"DELETE FROM {name}")
        alike = {group[0]: group for group in kind.groups}

        def main(value: str) -> str:
            return next(one for one in alike if value in alike[one])

        parents: Rows = {}
        children: Rows = {}
        for step in history:
            now = {number: dice.choice(alike[value]) for number, value in step.state.items()}
            kept = set(step.state.values())
            of_parents = {
                number: next(one for one in alike if value in alike[one])
                for number, value in children.items()
            }
            then = {number: value for number, value in children.items() if of_parents[number] in kept}
            for number in range(1, 5):
                if kept and dice.random() < 0.5:
                    then[number] = dice.choice(alike[dice.choice(sorted(kept))])
            parts = [
                bench.part(place, before=table(kind, gone), after=table(kind, came))
                for place, gone, came in ((name, *moved(parents, now)), (child, *moved(children, then)))
                if gone or came
            ]
            bench.apply(*parts)
            parents, children = now, then
            assert stored(bench, kind, name) == printed(kind, parents), step
            assert stored(bench, kind, child) == printed(kind, children), step

    held()


def moved(old: Rows, new: Rows) -> tuple[Rows, Rows]:
    changed = [one for one in {*old, *new} if old.get(one) != new.get(one)]
    return {one: old[one] for one in changed if one in old}, {one: new[one] for one in changed if one in new}


@pytest.fixture(scope="module")
def postgres_bench(postgres: PostgresServer) -> Iterator[Bench]:
    with fresh_database(postgres, "new") as database, target_bench.bench(database) as made:
        yield made


@pytest.fixture(scope="module")
def mysql_bench(mysql: MariaDBServer) -> Iterator[Bench]:
    with fresh_database(mysql, "new") as database, target_bench_mysql.bench(database) as made:
        yield made


@pytest.fixture(scope="module")
def mariadb_bench(mariadb: MariaDBServer) -> Iterator[Bench]:
    with fresh_database(mariadb, "new") as database, target_bench_mysql.bench(database) as made:
        yield made


def run(bench: Bench, kind: Kind, drawn: int) -> None:
    name = f"t_{kind.name.replace(' ', '_')}_{drawn}"  # one database for the whole module
    set_up(bench.database, kind)
    bench.database.execute(
        f"CREATE TABLE {name} (id int PRIMARY KEY, k {kind.declared}, UNIQUE (k))",
        f"CREATE TABLE {name}_child (id int PRIMARY KEY, k {kind.declared}, FOREIGN KEY (k) REFERENCES {name} (k))",
    )
    check(bench, kind, name, drawn)
    check_links(bench, kind, name, drawn)


@examples
@pytest.mark.parametrize("kind", COMPARED, ids=lambda kind: kind.name)
def test_unique_values_and_links_are_right_or_named_in_postgres(
    postgres_bench: Bench, kind: Kind, histories_drawn: int
) -> None:
    run(postgres_bench, kind, histories_drawn)


@pytest.mark.slow
@examples
@pytest.mark.parametrize("kind", MYSQL, ids=lambda kind: kind.name)
def test_unique_values_and_links_are_right_or_named_in_mysql(
    mysql_bench: Bench, kind: Kind, histories_drawn: int
) -> None:
    run(mysql_bench, kind, histories_drawn)


@examples
@pytest.mark.parametrize("kind", MARIADB, ids=lambda kind: kind.name)
def test_unique_values_and_links_are_right_or_named_in_mariadb(
    mariadb_bench: Bench, kind: Kind, histories_drawn: int
) -> None:
    run(mariadb_bench, kind, histories_drawn)


def test_an_oracle_by_bytes_would_be_noticed(mariadb_bench: Bench) -> None:
    """The control: who takes each spelling for a value of its own expects what the target can't hold."""
    kind = next(one for one in MARIADB if one.name == "utf8mb4_general_ci")
    mariadb_bench.database.execute(
        "CREATE TABLE apart (id int PRIMARY KEY, k varchar(20) COLLATE utf8mb4_general_ci UNIQUE)"
    )
    alone = tuple((one,) for group in kind.groups for one in group)
    with pytest.raises((AssertionError, ExceptionGroup)):
        check(mariadb_bench, replace(kind, groups=alone), "apart", MANY)
