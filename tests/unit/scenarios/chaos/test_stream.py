"""The stream of a made-up workload: by a seed, and such that every statement fits the rows that are there."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from migrator.errors import ConfigError
from scenarios.chaos.writes import counted, weights
from scenarios.chaos.writes.awkward import awkward
from scenarios.chaos.writes.changes import Change, Transaction, Values, parsed
from scenarios.chaos.writes.counted import Counted, weighed
from scenarios.chaos.writes.rows_known import names, shared_out, unique_sets
from scenarios.chaos.writes.stream import CannotDraw, Stream
from scenarios.chaos.writes.weights import KINDS, Weights
from scenarios.rehearsal.tables import Column, ForeignKey, Table

NUMBER = "integer"
SHOP = {
    one.name: one
    for one in (
        Table("country", (Column("code", "character(2)", False), Column("name", "text", True)), ("code",)),
        Table(
            "customer",
            (
                Column("id", NUMBER, False),
                Column("email", "character varying(60)", True),
                Column("code", "character(2)", True),
                Column("above", NUMBER, True),
                Column("state", "text", False, chosen=("new", "done")),
            ),
            ("id",),
            (("email",),),
            (ForeignKey(("code",), "country", ("code",)), ForeignKey(("above",), "customer", ("id",))),
        ),
        Table(
            "orders",
            (
                Column("customer", NUMBER, False),
                Column("line", NUMBER, False),
                Column("cents", NUMBER, False),
                Column("raw", "bytea", True),
            ),
            ("customer", "line"),
            (),
            (ForeignKey(("customer",), "customer", ("id",)),),
            ("CHECK (cents >= 0)",),
        ),
    )
}
FIRST: dict[str, list[Values]] = {
    "country": [{"code": f"{number:02}", "name": None} for number in range(6)],
    "customer": [
        {"id": str(number), "email": f"{number}@x", "code": f"{number % 6:02}",
         "above": str(number - 1) if number % 4 == 0 and number else None, "state": "new"}
        for number in range(20)
    ],
    "orders": [
        {"customer": str(number % 20), "line": str(number), "cents": "1", "raw": None} for number in range(30)
    ],
}  # fmt: skip


class Server:
    """Rows under keys, uniqueness and references, of which several clients write."""

    def __init__(self) -> None:
        self.rows = {name: [dict(row) for row in found] for name, found in FIRST.items()}

    def run(self, transaction: Transaction) -> None:
        before = {name: [dict(row) for row in found] for name, found in self.rows.items()}
        for change in transaction.changes:
            self._run(change)
        if transaction.undone:
            self.rows = before

    def _run(self, change: Change) -> None:
        rows = self.rows[change.table]
        if change.kind == "insert":
            rows.append(dict(change.row))
        else:
            [found] = [row for row in rows if all(row[name] == value for name, value in change.key.items())]
            if change.kind == "delete":
                rows.remove(found)
            else:
                found.update(change.row)
        self.check()

    def check(self) -> None:
        for name, table in SHOP.items():
            for columns in unique_sets(table):
                values = [tuple(row[one] for one in columns) for row in self.rows[name]]
                whole = [one for one in values if None not in one]
                assert len(set(whole)) == len(whole), (name, columns)
            for link in table.foreign_keys:
                for row in self.rows[name]:
                    if all(row[one] is not None for one in link.columns):
                        assert any(names(link, row, parent) for parent in self.rows[link.parent]), (name, row)


def streams(seed: int, clients: int = 3, chosen: Weights | None = None) -> list[Stream]:
    return [
        Stream(known, client, clients, seed, chosen or Weights())
        for client, known in enumerate(shared_out(SHOP, FIRST, clients, seed))
    ]


@given(seed=st.integers(0, 10_000), turns=st.lists(st.integers(0, 2), min_size=30, max_size=90))
@example(seed=376, turns=[2] * 36)  # two rows would name each other: neither can be removed
@settings(max_examples=25, deadline=None)
def test_every_statement_fits_the_rows_that_are_there_whoever_writes_when(
    seed: int, turns: list[int]
) -> None:
    server, found = Server(), streams(seed)
    for client in turns:
        server.run(found[client].next())
        found[client].settled(True)


def test_all_kinds_come_and_the_same_seed_gives_the_same_statements() -> None:
    def drawn(seed: int) -> list[Transaction]:
        [stream] = streams(seed, 1)
        found = []
        for _ in range(250):
            found.append(stream.next())
            stream.settled(True)
        return found

    first = drawn(5)
    assert first == drawn(5) != drawn(6)
    assert {one.name for one in first} == set(KINDS)
    assert max(len(one.changes) for one in first if one.name == "delete") > 1, "no child went with its parent"
    assert {len({change.table for change in one.changes}) for one in first if one.name == "family"} >= {2}
    assert [parsed(one.line()) for one in first] == first


def test_every_column_that_may_be_null_is_at_times_and_no_other() -> None:
    [stream] = streams(4, 1)
    found: dict[str, set[bool]] = {}
    for _ in range(400):
        for change in stream.next().changes:
            for name, value in change.row.items():
                found.setdefault(f"{change.table}.{name}", set()).add(value is None)
        stream.settled(True)
    nullable = {
        f"{table.name}.{column.name}"
        for table in SHOP.values()
        for column in table.columns
        if column.nullable
    }
    assert {name for name, nulls in found.items() if True in nulls} == nullable


def test_a_refused_transaction_changes_nothing_that_the_stream_knows() -> None:
    [stream] = streams(3, 1)
    dice, server, refused = random.Random(1), Server(), 0
    for _ in range(200):
        transaction = stream.next()
        if dice.random() < 0.2:
            stream.settled(False, "deadlock")
            refused += 1
        else:
            server.run(transaction)
            stream.settled(True)
    assert refused > 10


def test_what_the_server_never_takes_is_given_up_and_said() -> None:
    [stream] = streams(1, 1, Weights(kinds={"insert": 1}))

    def refused() -> None:
        for _ in range(500):
            stream.next()
            stream.settled(False, "read only\nLINE 1")

    with pytest.raises(CannotDraw, match="orders: read only"):
        refused()


def test_weights_choose_tables_and_kinds() -> None:
    chosen = Weights(kinds={"insert": 1, "update": 1}, tables={"customer": 0, "country": 0})
    found = Counter[str]()
    [stream] = streams(2, 1, chosen)
    for _ in range(60):
        found.update(change.table for change in stream.next().changes)
        stream.settled(True)
    assert set(found) == {"orders"}


@pytest.mark.parametrize(
    ("text", "said"),
    [("awkward = 2", "share"), ("[kinds]\njump = 1", "kinds.jump"), ("speed = 1", "speed"), ("[", "where")],
)
def test_a_file_of_weights_with_a_mistake_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "w.toml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        weights.load(tmp_path / "w.toml")


def test_a_file_of_weights_says_what_it_changes(tmp_path: Path) -> None:
    (tmp_path / "w.toml").write_text("awkward = 0\n[kinds]\nmove = 9\n[tables]\naudit = 0\n")
    found = weights.load(tmp_path / "w.toml")
    assert found == replace(Weights(), kinds={**KINDS, "move": 9}, tables={"audit": 0}, awkward=0.0)


@pytest.mark.parametrize(
    "column",
    [Column("n", "smallint", True), Column("n", "numeric(4,2)", True), Column("n", "int(10) unsigned", True)],
)
def test_awkward_numbers_fit_their_type(column: Column) -> None:
    bound = 99 if "4,2" in column.type else 2**31
    assert all(-bound <= int(str(one)) <= bound for one in awkward(column))
    assert ("-1" in awkward(column)) is ("unsigned" not in column.type)


def test_awkward_texts_fit_their_length() -> None:
    assert max(len(str(one)) for one in awkward(Column("t", "character varying(5)", True))) == 5
    assert awkward(Column("state", "text", True, chosen=("a",))) == ()


def test_statements_quote_names_and_bind_values() -> None:
    change = Change("update", 'odd"table', {"key": "1"}, {"50%": "x"})
    assert change.statement("mariadb") == (
        'UPDATE "odd""table" SET "50%%" = %s WHERE "key" = %s',
        ("x", "1"),
    )
    assert "OVERRIDING" in Change("insert", "t", {}, {"id": "1"}).statement("postgresql")[0]
    assert (
        Change("delete", "t", {"a": "1", "b": "2"}, {})
        .statement("mysql")[0]
        .endswith('"a" = %s AND "b" = %s')
    )


def test_weights_follow_what_a_server_has_counted() -> None:
    found = weighed({"orders": Counted(30, 60, 0), "tag": Counted(10, 0, 0), "country": Counted(0, 0, 0)})
    assert found.tables == {"orders": pytest.approx(1.8), "tag": pytest.approx(0.2), "country": 0}
    groups = {
        "inserted": found.kinds["insert"] + found.kinds["family"],
        "updated": sum(found.kinds[name] for name in ("update", "hot", "move")),
        "deleted": found.kinds["delete"] + found.kinds["again"],
    }
    assert groups["inserted"] / groups["updated"] == pytest.approx(40 / 60)
    assert groups["deleted"] == 0
    assert found.kinds["undone"] == KINDS["undone"]
    assert found.kinds.keys() == KINDS.keys()


@pytest.mark.parametrize("address", ["mysql://me@127.0.0.1:1/shop", "oracle://me@127.0.0.1/shop"])
def test_weights_of_another_engine_are_refused_by_name(address: str) -> None:
    with pytest.raises(ConfigError, match="the weights can't be read from this address"):
        counted.weights(address, "postgresql")
