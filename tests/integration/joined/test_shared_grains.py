"""Grains that several tables share, over the mirror: random mappings and histories against mapping everything."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from migrator.adapters.targets.shared.mirror.reach_sql import ReachSql
from migrator.model.reach import Reach, entangled
from migrator.model.table import TableId, TableSchema
from migrator.model.target import TargetTable
from migrator.ports.mirror import JoinedTarget, Mirror, MirrorRows
from tests.integration.targets.test_mirror import Bench, marking, schema_of, table
from tests.servers import Database
from transforms.analysis.grain import reaches
from transforms.registry import Mapping

pytestmark = pytest.mark.integration

Row = tuple[Any, ...]
SEEDS, BATCHES, KEYS = range(8), 12, 14
TEXTS = ("a", "A", "a ", "é", "", None)


@dataclass
class Shared:
    """A random mapping: a row for each value of a grain that two to four tables share, and what hangs on them.

    Every table of the grain has perhaps rows below it, and one above: counted and added up.
    """

    seed: int
    state: dict[str, dict[int, Row]] = field(default_factory=dict)
    made: dict[Row, Row] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chosen = chosen = random.Random(self.seed)
        names = [f"{name}{self.seed}" for name in "abcd"[: chosen.randrange(2, 5)]]
        self.kind = chosen.choice(["int32", "int64", "string"])
        self.wide = chosen.random() < 0.3
        self.by_key = self.kind == "int32" and not self.wide and chosen.random() < 0.5
        self.schemas: dict[str, TableSchema] = {}
        self.roots: dict[str, str] = {}
        links = []
        for place, name in enumerate(names):
            columns = {"id": "int32", "g": self.kind, "h": "string", "up": "int32"}
            self.schemas[name] = schema_of(name, ("id",), **columns)
            self.roots[name] = "id" if self.by_key and place == 0 else "g"
            for other, near, far in (("line", "of", "id"), ("kind", "id", "up")):
                if chosen.random() < 0.5:
                    linked = f"{name}_{other}"
                    self.schemas[linked] = schema_of(linked, ("id",), id="int32", of="int32", amount="int32")
                    links.append(f"{linked}.{near} = {name}.{far}")
        grain = [" = ".join(f"{name}.{column}" for name, column in self.roots.items())]
        if self.wide:
            grain.append(" = ".join(f"{name}.h" for name in names))
        self.target = self._target(grain, links)
        self.state = {name: {} for name in self.schemas}

    def _target(self, grain: list[str], links: list[str]) -> JoinedTarget:
        mapping, scope = Mapping(), dict[str, Any]()
        exec(f"def made({', '.join(self.schemas)}): ...", scope)
        mapping.target("made", key="k", grain=grain, links=links)(scope["made"])
        found = reaches(mapping["made"], self.schemas, [])
        assert len(found) == 1
        assert not entangled(found)
        table_ = TargetTable(TableId("new", f"made{self.seed}"), (), ("k",))
        return JoinedTarget(table_, found, {name: one.names() for name, one in self.schemas.items()})

    def mapped(self, tables: dict[str, list[Row]]) -> dict[Row, Row]:
        """The mapping, in plain Python, over whichever rows."""
        found: dict[Row, list[Any]] = defaultdict(lambda: [0] * (2 * len(self.roots)))
        for place, (name, column) in enumerate(self.roots.items()):
            below, above = defaultdict[int, int](int), dict[int, int]()
            for _, of, amount in tables.get(f"{name}_line", ()):
                below[of] += amount
            for kind, _, amount in tables.get(f"{name}_kind", ()):
                above[kind] = amount
            for key, g, h, up in tables.get(name, ()):
                row = found[(key if column == "id" else g, h if self.wide else None)]
                row[2 * place] += 1
                row[2 * place + 1] += below[key] + above.get(up, 0)
        return {key: tuple(row) for key, row in found.items()}

    def change(self, many: int) -> list[MirrorRows]:
        """Random changes of one batch, which the state gets too."""
        old = {name: dict(rows) for name, rows in self.state.items()}
        for _ in range(many):
            name = self.chosen.choice(list(self.schemas))
            key = self.chosen.randrange(KEYS)
            if self.chosen.random() < 0.3:
                self.state[name].pop(key, None)
            else:
                self.state[name][key] = self._row(name, key)
        if self.chosen.random() < 0.3:  # one table loses every row of the grain's first value
            name, value = self.chosen.choice(list(self.roots)), self._value()
            self.state[name] = {key: row for key, row in self.state[name].items() if row[1] != value}
        found = []
        for name, schema in self.schemas.items():
            new = self.state[name]
            gone = [row for key, row in old[name].items() if new.get(key) != row]
            came = [row for key, row in new.items() if old[name].get(key) != row]
            if gone or came:
                found.append(MirrorRows(schema, (), table(schema, *gone), table(schema, *came)))
        return found

    def _row(self, name: str, key: int) -> Row:
        if name in self.roots:
            return (key, self._value(), self.chosen.choice(TEXTS), self.chosen.randrange(4))
        return (key, self.chosen.randrange(KEYS), self.chosen.randrange(9))

    def _value(self) -> Any:
        return self.chosen.choice(TEXTS if self.kind == "string" else (1, 2, 3, -1, 0, None))

    def follow(self, mirror: Mirror, grains: int) -> None:
        """What a batch does to the target: rows that vanish first, then those that are written."""
        mirror.trace(self.target)
        written: dict[Row, Row] = {}
        for sides in mirror.slices(self.target, grains):
            before, after = (self.mapped({name: rows_of(rows) for name, rows in side.items()})
                             for side in (sides.before, sides.after))  # fmt: skip
            for key, row in before.items():
                if after.get(key) != row:
                    assert self.made.pop(key, None) == row, f"{key} was mapped of a part of its rows"
            written |= {key: row for key, row in after.items() if before.get(key) != row}
        self.made |= written

    def everything(self) -> dict[Row, Row]:
        return self.mapped({name: list(rows.values()) for name, rows in self.state.items()})


def rows_of(rows: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in rows.to_pylist()]


def play(new: Database, folder: Path, seeds: range) -> int:
    """Random histories of random mappings; how many values were in some tables of a grain and not in the others."""
    bench = Bench(new, folder)
    mappings = [Shared(seed) for seed in seeds]
    bench.target.prepare_mirror([one.target for one in mappings])
    empty = [bench.dumped(schema) for one in mappings for schema in one.schemas.values()]
    bench.apply(marking(*(one.target for one in mappings)), *empty)
    partly = 0
    try:
        for one in mappings:
            for _ in range(BATCHES):
                grains = one.chosen.choice([1, 2, 3, 99])
                changes = one.change(one.chosen.choice([1, 2, 20]))
                bench.apply(partial(one.follow, grains=grains), *changes)
                assert one.made == one.everything(), f"seed {one.seed}, at most {grains} grains at a time"
                partly += sum(0 in row[::2] for row in one.made.values())
    finally:
        bench.target.close()
    return partly


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["pg", pytest.param("maria", marks=pytest.mark.slow), "mysql"])
def test_every_batch_leaves_what_mapping_everything_gives(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    assert play(request.getfixturevalue(f"new_{engine}"), tmp_path, SEEDS) > 100


def without_a_root(collect: Callable[[ReachSql], Iterator[str]]) -> Callable[[ReachSql], Iterator[str]]:
    def collected(sql: ReachSql) -> Iterator[str]:
        last = f"INSERT INTO {sql._down[sql._reach.roots()[-1]]} "
        return (text for text in collect(sql) if not text.startswith(last))

    return collected


def test_a_table_that_is_left_out_is_noticed(
    new_pg: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control, for rows that are read and for rows that are traced."""
    collect = ReachSql._collect_roots
    monkeypatch.setattr(ReachSql, "_collect_roots", without_a_root(collect))
    with pytest.raises(AssertionError, match=r"seed 0|a part of its rows"):
        play(new_pg, tmp_path, range(1))
    monkeypatch.undo()
    climb = ReachSql._climb

    def only_first(sql: ReachSql, index: int, rows: str) -> str:
        return climb(sql, index, rows) + (" WHERE false" if index == sql._reach.roots()[-1] else "")

    monkeypatch.setattr(ReachSql, "_climb", only_first)
    new_pg.execute("DROP SCHEMA migrator_mirror CASCADE", "DELETE FROM migrator.ledger")
    with pytest.raises(AssertionError, match="seed 1"):
        play(new_pg, tmp_path, range(1, 2))


def test_a_reach_may_begin_at_any_of_its_tables() -> None:
    for seed in range(20):
        [reach] = Shared(seed).target.reaches
        for index in reach.roots():
            turned = reach.begun_at(index)
            assert turned.grain == reach.grain_of(index)
            assert links_of(turned) == links_of(reach)
            assert turned.begun_at(index) == reach


def links_of(reach: Reach) -> set[tuple[str, tuple[str, ...], str, tuple[str, ...]]]:
    own = {(reach.nodes[i].role, reach.grain_of(i), "", ()) for i in reach.roots()}
    return own | {
        (node.role, node.columns, reach.nodes[node.above].role, node.above_columns)
        for node in reach.nodes
        if node.above is not None
    }
