"""What every target must do with rows whose parent was set aside: they go with it, and come back after it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pytest

from migrator.errors import TargetError
from migrator.model.limits import SET_ASIDE, ApplyLimits
from migrator.model.progress import BadRow, Checkpoint
from migrator.model.reach import Node, Reach
from migrator.ports.mirror import JoinedTarget
from migrator.ports.target import TargetBatch, TargetRows
from migrator.run.apply.set_aside import AsideTarget
from tests.contract.targets.mirrored_items import OLD
from tests.contract.targets.target_under_test import AppliedTarget, Applier, TargetUnderTest, checkpoint

LONG = "too long"
TREE = (
    "CREATE TABLE branch (id BIGINT NOT NULL PRIMARY KEY, up BIGINT NULL, name VARCHAR(20) NOT NULL,"
    " CHECK (char_length(name) < 5), CONSTRAINT branch_up FOREIGN KEY (up) REFERENCES branch (id))",
    "CREATE TABLE leaf (id BIGINT NOT NULL PRIMARY KEY, up BIGINT NULL, name VARCHAR(20) NOT NULL,"
    " CHECK (char_length(name) < 5), CONSTRAINT leaf_up FOREIGN KEY (up) REFERENCES branch (id) ON DELETE CASCADE)",
)
Place = tuple[str, int]
Nodes = dict[Place, tuple[int | None, str]]
"""By table and key: the branch that it hangs on, and its name."""


class Tree:
    """Branches that hang on branches, and leaves that hang on them, behind a target that sets rows aside."""

    def __init__(self, place: TargetUnderTest, limits: ApplyLimits):
        self.place, self.segment, self.came = place, 0, 0
        self.target = AsideTarget(place.target(), limits, came=self._has_come)
        self.target.open(1)
        self.tables = {table.id.name: table for table in self.target.tables(["branch", "leaf"])}
        reach = Reach(("id",), (Node("item", OLD),))
        self.target.prepare_mirror(
            [JoinedTarget(self.tables["leaf"], (reach,), {"item": tuple(OLD.names())})]
        )

    def _has_come(self) -> None:
        self.came += 1

    def apply(
        self,
        before: Nodes,
        after: Nodes,
        chunk: Nodes | None = None,
        done: bool = True,
        together: bool = True,
    ) -> None:
        """The next batch; ``together``: rows are mapped before the transaction, not within."""
        rows = tuple(
            TargetRows(
                table,
                _part(name, chunk or {}),
                _part(name, before),
                _part(name, after),
                strict_inserts=done and together,
            )
            for name, table in self.tables.items()
        )
        place = checkpoint(self.segment + 1, done)
        joined = None if together else (lambda mirror: iter(rows))
        self.target.apply(TargetBatch(self.segment + 1, place, rows if together else (), joined=joined))
        self.segment += 1

    def aside(self) -> dict[Place, BadRow]:
        """The records, as seen from outside."""
        ledger = self.place.peek()
        found: Checkpoint | None = None if ledger is None else ledger.checkpoint
        return {(one.target, int(one.key[0])): one for one in ([] if found is None else found.bad_rows)}

    def nodes(self) -> Nodes:
        """The rows of both tables."""
        return {
            (name, int(row[0])): (row[1], str(row[2]))
            for name in self.tables
            for row in self.place.rows(name)
        }


def _part(name: str, nodes: Nodes) -> pa.Table | None:
    found = [(key, *node) for (table, key), node in nodes.items() if table == name]
    if not found:
        return None
    kinds = {"id": pa.int64(), "up": pa.int64(), "name": pa.string()}
    arrays = [pa.array([one[place] for one in found], kind) for place, kind in enumerate(kinds.values())]
    return pa.table(arrays, names=list(kinds))


def rooted(nodes: Nodes) -> Nodes:
    """Those that fit and hang, over others that do, on nothing."""
    left = {node: (up, name) for node, (up, name) in nodes.items() if name != LONG}
    while True:
        found = {
            node: (up, name) for node, (up, name) in left.items() if up is None or ("branch", up) in left
        }
        if found == left:
            return found
        left = found


@contextmanager
def planted(place: TargetUnderTest, most: int = 100) -> Iterator[Tree]:
    """An empty tree."""
    place.execute(*TREE)
    tree = Tree(place, ApplyLimits(bad_rows=SET_ASIDE, bad_rows_per_table=most, bad_rows_per_run=9999))
    try:
        yield tree
    finally:
        tree.target.close()
        place.execute("DROP TABLE leaf", "DROP TABLE branch")


class TargetOrphansContract(AppliedTarget):
    """The tests of rows set aside with their parents."""

    @pytest.mark.parametrize("together", [True, False])
    def test_children_go_aside_with_their_parent_in_the_batch_and_in_the_target(
        self, place: TargetUnderTest, together: bool
    ) -> None:
        with planted(place) as tree:
            tree.apply({}, {("branch", 1): (None, "a"), ("leaf", 1): (1, "x")}, together=together)
            bad: Nodes = {("branch", 1): (None, LONG), ("branch", 2): (1, "b"), ("leaf", 2): (2, "y")}
            tree.apply({("branch", 1): (None, "a")}, bad, together=together)
            assert tree.nodes() == {}, "the leaf that no batch names went as well"
            found = tree.aside()
            assert set(found) == {("branch", 1), ("branch", 2), ("leaf", 1), ("leaf", 2)}
            assert found["branch", 1].parent is None
            parent = found["leaf", 1].parent
            assert parent is not None
            assert (parent.target, parent.columns, parent.key, parent.came) == (
                "branch",
                ("id",),
                ("1",),
                False,
            )
            assert "row of branch with id=1" in found["leaf", 1].reason
            assert "leaf_up points at is set aside" in found["leaf", 1].reason
            assert found["leaf", 1].row == "id='1', up='1', name='x'"
            assert tree.came == 0
            tree.apply({("branch", 1): (None, LONG)}, {("branch", 1): (None, "c")}, together=together)
            assert tree.came == 1
            waiting = {node: one.parent.came for node, one in tree.aside().items() if one.parent is not None}
            assert waiting == {("branch", 2): True, ("leaf", 1): True, ("leaf", 2): False}
            again: Nodes = {("branch", 2): (1, "b"), ("leaf", 1): (1, "x")}
            tree.apply(again, again, together=together)
            again = {("leaf", 2): (2, "y")}
            tree.apply(again, again, together=together)
            assert (len(tree.nodes()), tree.aside()) == (4, {})

    def test_a_row_without_any_parent_waits_for_it(self, place: TargetUnderTest) -> None:
        with planted(place) as tree:
            tree.apply({}, {("leaf", 1): (7, "x"), ("leaf", 2): (None, "y")})
            assert set(tree.aside()) == {("leaf", 1)}
            assert "leaf_up points at is not there" in tree.aside()["leaf", 1].reason
            tree.apply({}, {("branch", 8): (None, "z")})
            assert tree.came == 0, "another row is no reason"
            tree.apply({}, {("branch", 7): (None, "z")})
            assert tree.came == 1
            tree.apply({("leaf", 1): (7, "x")}, {})
            assert tree.aside() == {}, "a delete settles it"

    def test_while_a_dump_runs_children_wait_for_their_parents_until_its_end(
        self, place: TargetUnderTest
    ) -> None:
        with planted(place) as tree:
            tree.apply({}, {}, {("leaf", 1): (1, "x"), ("leaf", 2): (2, "x")}, done=False)
            tree.apply({}, {}, {("branch", 1): (None, LONG)}, done=False)
            assert set(tree.aside()) == {("branch", 1)}
            tree.apply({}, {}, {("branch", 2): (None, "b")})
            assert set(tree.aside()) == {("branch", 1), ("leaf", 1)}
            assert set(tree.nodes()) == {("branch", 2), ("leaf", 2)}

    def test_more_children_than_may_go_aside_stop_and_nothing_of_the_batch_is_there(
        self, place: TargetUnderTest
    ) -> None:
        with planted(place, most=3) as tree:
            leaves: Nodes = {("leaf", key): (1, "x") for key in range(4)}
            good: Nodes = {("branch", 1): (None, "a"), **leaves}
            tree.apply({}, good)
            with pytest.raises(TargetError, match="bad_rows_per_table allows: 3") as stopped:
                tree.apply({("branch", 1): (None, "a")}, {("branch", 1): (None, LONG)})
            assert "leaf_up" in stopped.value.cause
            assert (tree.nodes(), tree.aside()) == (good, {})
            tree.apply({("branch", 1): (None, "a"), ("leaf", 0): (1, "x")}, {("branch", 1): (None, LONG)})
            assert (tree.nodes(), len(tree.aside())) == ({}, 4), "branch and three leaves"

    def test_who_stops_at_bad_rows_refuses_orphans_and_settles_those_of_before(
        self, place: TargetUnderTest, applier: Applier
    ) -> None:
        applier.target = AsideTarget(applier.target, ApplyLimits(bad_rows=SET_ASIDE))
        applier.apply(applier.part("note", after=[(1, 77)]))
        applier.target.close()
        again = Applier(place, epoch=2)
        with pytest.raises(TargetError, match=r"points at a row of .*item"):
            again.apply(again.part("note", after=[(2, 77)]))
        again.apply(again.part("item", after=[(77, "a", 1)]), again.part("note", after=[(1, 77)]))
        assert place.rows("note") == [(1, 77)]
        ledger = place.peek()
        assert ledger is not None
        assert ledger.checkpoint is not None
        assert ledger.checkpoint.bad_rows == ()
        again.target.close()

    @pytest.mark.parametrize("together", [True, False])
    @pytest.mark.parametrize("seed", range(3))
    def test_random_trees_end_as_the_oracle_says(
        self, place: TargetUnderTest, seed: int, together: bool
    ) -> None:
        """The oracle: of the rows that are there or named, those that fit and hang on such; all others are named."""
        drawn, source, there = random.Random(seed), Nodes(), Nodes()
        with planted(place) as tree:
            for _ in range(25):
                net = dict(source)
                for _ in range(drawn.randint(1, 5)):
                    node = drawn.choice(("branch", "branch", "leaf")), drawn.randrange(7)
                    up = drawn.choice((None, drawn.randrange(7), drawn.randrange(7)))
                    net[node] = up, drawn.choice(("a", "b", LONG))
                    if drawn.random() < 0.2:
                        del net[node]
                changed = {node for node in {*source, *net} if source.get(node) != net.get(node)}
                tree.apply(
                    {node: source[node] for node in changed if node in source},
                    {node: net[node] for node in changed if node in net},
                    together=together,
                )
                there = rooted(
                    {node: there[node] for node in there if node not in changed}
                    | {node: net[node] for node in changed if node in net}
                )
                source = net
                assert (tree.nodes(), set(tree.aside())) == (there, {*source} - {*there})
                for node, one in tree.aside().items():
                    up, name = source[node]
                    assert (one.parent is None) == (name == LONG)
                    if one.parent is not None:
                        assert one.parent.key == (str(up),)
                        assert one.parent.came or ("branch", up) not in there, "nobody would try it again"
            while due := [
                node for node, one in tree.aside().items() if one.parent is not None and one.parent.came
            ]:
                tree.apply(
                    {node: source[node] for node in due},
                    {node: source[node] for node in due},
                    together=together,
                )
            assert tree.nodes() == rooted(source), (
                "all that can hang on something does, once it was tried again"
            )
