"""ALTER TABLE of columns: which it is about, and whether a mapping that needs none of them can go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrator.adapters.sources.binlog.events import table_map
from migrator.adapters.sources.binlog.events.table_map import LoggedColumn
from migrator.adapters.sources.binlog.statements.alter_clauses import columns_of, why_refused
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.adapters.sources.binlog.statements.statements import Statement, StatementKind, judge
from migrator.adapters.sources.binlog.tables.agreement import agrees
from migrator.adapters.sources.binlog.tables.captured_tables import CapturedTables, CatalogTable
from migrator.adapters.sources.binlog.tables.later_names import Renaming, Renamings, last_name
from migrator.adapters.sources.binlog.tables.noted import (
    NotedChanges,
    note_former,
    noted_former,
    refuse_changed,
)
from migrator.errors import SchemaError
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema
from migrator.ports.log_notes import LogNotes, earlier_names, renamed_in

T = TableId("shop", "t")


@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ("DROP COLUMN a", ["a"]),
        ("DROP a", ["a"]),
        ("DROP COLUMN IF EXISTS `a``b`", ["`a``b`"]),
        ("drop column a RESTRICT", ["a"]),
        ("CHANGE a b INT NOT NULL", ["a", "b"]),
        ("CHANGE COLUMN `a` `b c` VARCHAR ( 3 ) AFTER d", ["`a`", "`b c`"]),
        ("MODIFY a DECIMAL ( 5 , 2 ) FIRST", ["a"]),
        ("MODIFY COLUMN IF EXISTS a INT", ["a"]),
        ("RENAME COLUMN a TO b", ["a", "b"]),
        ("DROP INDEX a", []),
        ("DROP PRIMARY KEY", []),
        ("DROP FOREIGN KEY a", []),
        ("DROP CONSTRAINT a", []),
        ("DROP PARTITION p", []),
        ("DROP SYSTEM VERSIONING", []),
        ("RENAME TO u", []),
        ("RENAME INDEX a TO b", []),
        ("ADD COLUMN a INT", []),
        ("CONVERT TO CHARACTER SET latin1", []),
        ("EXCHANGE PARTITION p WITH TABLE u", []),
    ],
)
def test_the_columns_that_a_clause_is_about(clause: str, names: Sequence[str]) -> None:
    assert list(columns_of(clause)) == list(names)


@pytest.mark.parametrize(
    "clause",
    [
        "MODIFY a INT PRIMARY KEY",
        "CHANGE a b INT REFERENCES p ( k ) ON DELETE CASCADE",
        "DROP PARTITION p",
        "CONVERT TO CHARACTER SET latin1",
        "MODIFY a INT ENGINE = MyISAM",
    ],
)
def test_what_else_a_clause_does_is_refused_whoever_needs_its_columns(clause: str) -> None:
    assert why_refused(clause, logs_cascades=False)


def logged(
    type: int, meta: int = 0, scale: int = 0, unsigned: bool = False, collation: int = 33
) -> LoggedColumn:
    return LoggedColumn("c", type, meta, scale, unsigned, collation, (b"a", b"b"))


@pytest.mark.parametrize(
    ("column", "declared", "same"),
    [
        (logged(table_map.LONG), "int(11)", True),
        (logged(table_map.LONG), "int", True),
        (logged(table_map.LONG), "int unsigned", False),
        (logged(table_map.LONG, unsigned=True), "int(10) unsigned zerofill", True),
        (logged(table_map.LONG), "bigint(20)", False),
        (logged(table_map.LONG), "varchar(20)", False),
        (logged(table_map.NEWDECIMAL, 10, 2), "decimal(10,2)", True),
        (logged(table_map.NEWDECIMAL, 10, 2), "decimal(10,3)", False),
        (logged(table_map.VARCHAR, 80), "varchar(40)", True),
        (logged(table_map.VARCHAR, 80), "varbinary(80)", False),
        (logged(table_map.VARCHAR, 80, collation=63), "varbinary(90)", True),
        (logged(table_map.BLOB, collation=63), "text", False),
        (logged(table_map.ENUM), "enum('a','b')", True),
        (logged(table_map.ENUM), "enum('a','b','c')", False),
        (logged(table_map.SET), "set('it''s','b')", True),
        (logged(table_map.TIMESTAMP2), "datetime", False),
        (logged(table_map.STRING), "uuid", True),
    ],
)
def test_the_log_may_have_another_type_than_the_catalog(
    column: LoggedColumn, declared: str, same: bool
) -> None:
    assert agrees(column, declared) == same


def test_a_column_changed_unneeded_is_kept_in_mind_until_rows_are_asked_for() -> None:
    notes = LogNotes()
    schema = TableSchema(T, (Column("k", "int32", False, "int"),), ("k",), frozenset({"v"}))
    NotedChanges(notes).unneeded(T, ("w",))
    refuse_changed(notes, [schema])
    NotedChanges(notes).unneeded(T, ("v", "w"))
    with pytest.raises(SchemaError, match=r"changed while no mapping did") as refused:
        refuse_changed(notes, [schema])
    assert refused.value.where == "shop.t, column v"
    later = LogNotes()
    later.begin(notes.kept(), asked=[T], answered=[T])
    refuse_changed(later, [schema])


def test_both_notes_of_a_table_stand_beside_each_other() -> None:
    notes = LogNotes()
    note_former(notes, T, 7)
    NotedChanges(notes).unneeded(T, ("v",))
    assert noted_former(notes, [T]) == {T: 7}
    later = LogNotes()
    later.begin(notes.kept(), asked=[T])
    assert noted_former(later, [T]) == {T: 7}
    assert "columns" not in later.of(T)


class Told:
    """Keeps what is said of columns."""

    def __init__(self, unneeded: list[tuple[str, ...]]):
        self.columns = unneeded

    def unneeded(self, table: TableId, columns: Sequence[str]) -> None:
        self.columns.append(tuple(columns))

    def renamed(self, table: TableId, names: Sequence[tuple[str, str]]) -> None:
        """See ``test_a_new_name_is_noted_for_the_mapping_that_is_adapted``."""


def judged(
    columns: tuple[str, ...],
    computed: tuple[str, ...] = (),
    renamed: tuple[tuple[str, str], ...] = (),
    answered_to: int = 0,
    now: tuple[str, ...] = (),
    ahead: tuple[tuple[str, str], ...] = (),
    redefined: tuple[str, ...] = (),
) -> tuple[str, list[tuple[str, ...]]]:
    """Why a statement behind place 5 is refused, and what is noted of it: the mapping needs ``v``.

    ``ahead``: what the log renames behind that place, one statement each.
    """
    names = ("k", "v", "w")
    schema = TableSchema(T, tuple(Column(n, "int32", False, "int") for n in names), ("k",), frozenset("v"))
    noted: list[tuple[str, ...]] = []
    columns_now = tuple(Column(n, "int32", False, "int") for n in now)
    later = CatalogTable(replace(schema, columns=columns_now), frozenset()) if now else None
    known = {T: CatalogTable(schema, frozenset(), computed=frozenset(computed))}
    tables: Any = CapturedTables(
        [schema],
        known,
        lambda _: later,
        cast(Any, None),
        cast(Any, None),
        False,
        Told(noted),
    )
    tables.answered = {T: answered_to} if answered_to else {}
    found = [Renaming(T, {old: new}, 6 + place) for place, (old, new) in enumerate(ahead)]
    tables.look_ahead = lambda track: Renamings(tuple(found), 6 + len(found))
    statement = Statement(
        StatementKind.ALTERED, "", (T,), (), "it may change rows", columns, renamed, redefined
    )
    track = SimpleNamespace(position=lambda: Position(5, "5"))
    return tables.judged(statement, cast(Any, track)).refused, noted


def test_a_statement_goes_on_where_nothing_needs_its_columns() -> None:
    assert judged(("w",)) == ("", [("w",)])
    assert judged(("w", "x")) == ("", [("w", "x")])


@pytest.mark.parametrize("columns", [("v",), ("V",), ("w", "v"), ("k",)])
def test_a_statement_stops_where_one_of_its_columns_is_needed(columns: tuple[str, ...]) -> None:
    """Names of columns differ by more than case."""
    assert judged(columns) == ("it may change rows", [])


def test_a_column_that_a_needed_one_is_computed_from_counts() -> None:
    """The server computes stored columns anew where those that they come from get another type."""
    assert judged(("w",), computed=("v",)) == ("it may change rows", [])
    assert judged(("w",), computed=("w",)) == ("", [("w",)])


def test_a_mapping_that_knows_the_new_name_goes_on() -> None:
    assert judged(("old", "v"), renamed=(("old", "v"),)) == ("", []), "its values are those of the new name"
    assert judged(("w", "x"), renamed=(("w", "x"),)) == ("", [("w", "x")])
    assert judged(("x", "w"), renamed=(("x", "w"),)) == ("", [("x", "w")]), "no mapping needs that one"


@pytest.mark.parametrize(
    ("columns", "renamed"),
    [
        pytest.param(("v", "new"), (("v", "new"),), id="the mapping still reads the old name"),
        pytest.param(("old", "v"), (), id="it may get another type with the name"),
        pytest.param(("k", "v"), (("k", "v"),), id="both are needed"),
        pytest.param(("old", "v", "k"), (("old", "v"),), id="another one is changed beside it"),
    ],
)
def test_any_other_change_of_names_stops(
    columns: tuple[str, ...], renamed: tuple[tuple[str, str], ...]
) -> None:
    assert judged(columns, renamed=renamed) == ("it may change rows", [])


def test_a_dump_that_was_asked_for_answers_what_was_done_before_it() -> None:
    """What is done later isn't answered: rows may have been read before it."""
    assert judged(("v",), answered_to=6) == ("", [])
    assert judged(("v",), answered_to=5) == ("it may change rows", [])


def test_a_name_that_was_put_back_goes_on() -> None:
    assert judged(("v", "x"), renamed=(("v", "x"),), now=("k", "v", "w")) == ("", [])
    assert judged(("v", "x"), renamed=(("v", "x"),), now=("k", "x", "w"))[0]
    assert judged(("v", "x", "w"), renamed=(("v", "x"),), now=("k", "v", "w"))[0]


def test_a_name_on_the_way_to_one_that_the_mapping_knows_goes_on() -> None:
    ahead = (("old", "x"), ("x", "v"))
    now = ("k", "v", "w")
    assert judged(("old", "x"), renamed=(("old", "x"),), now=now, ahead=ahead) == ("", [])
    assert judged(("old",), now=now, ahead=ahead)[0], "it gets another type on the way"
    assert judged(("old", "x"), now=now, ahead=ahead[1:])[0], "so it may by CHANGE"
    other = (("old", "x"), ("x", "y"))
    assert judged(("old", "x"), renamed=(("old", "x"),), now=("k", "y"), ahead=other) == ("", [("old", "x")])


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        ("RENAME COLUMN old TO v", True),
        ("RENAME COLUMN old TO v, DROP COLUMN w", True),
        ("DROP COLUMN v, RENAME COLUMN old TO v", False),
        ("CHANGE v w int, RENAME COLUMN old TO v", False),
        ("RENAME COLUMN v TO w, RENAME COLUMN w TO v", False),
        ("RENAME COLUMN old TO V, RENAME COLUMN v TO old", False),
    ],
)
def test_a_needed_name_that_another_column_gets_in_one_statement_stops(text: str, goes_on: bool) -> None:
    """The rows that the target has are of the column that had the name."""
    query = QueryText("shop", f"ALTER TABLE t {text}")
    found = judge(query, "shop", lambda table: T if table.name in ("t", "") else None)
    (refused, _) = judged(
        found.columns, renamed=found.renamed, now=("k", "v", "w"), redefined=found.redefined
    )
    assert (refused == "") == goes_on


def test_a_name_of_before_the_place_says_nothing_of_a_later_column() -> None:
    found = [
        Renaming(T, {"a": "v"}, 4),
        Renaming(T, {"a": "b"}, 6),
        Renaming(TableId("shop", "u"), {"b": "c"}, 7),
    ]
    assert last_name(Renamings(tuple(found), 9).behind(5), T, "A") == "b"
    assert last_name(Renamings(tuple(found), 9).behind(3), T, "a") == "v"


def test_a_column_changed_unneeded_under_its_old_name_is_refused_under_the_new_one() -> None:
    notes = LogNotes()
    NotedChanges(notes).unneeded(T, ["w"])
    with pytest.raises(SchemaError, match="changed while no mapping did") as refused:
        NotedChanges(notes).renamed(T, [("u", "s"), ("w", "v")])
    assert refused.value.where == "shop.t, column v"
    assert renamed_in(notes.kept()) == {}
    needs_v = TableSchema(T, (Column("k", "int32", False, "int"),), ("k",), frozenset({"v"}))
    with pytest.raises(SchemaError, match="changed while no mapping did"):
        refuse_changed(notes, [needs_v])


def test_a_new_name_is_noted_for_the_mapping_that_is_adapted() -> None:
    notes = LogNotes()
    NotedChanges(notes).renamed(T, [("v", "x")])
    NotedChanges(notes).unneeded(T, ["w"])
    assert renamed_in(notes.kept()) == {T: (("v", "x"),)}
    NotedChanges(notes).renamed(T, [("x", "y"), ("u", "t")])
    NotedChanges(notes).renamed(T, [("x", "y")])
    noted = renamed_in(notes.kept())[T]
    assert noted == (("v", "x"), ("x", "y"), ("u", "t"))
    assert list(earlier_names(noted, "y")) == ["x", "v"]
    assert list(earlier_names(noted, "u")) == []
    assert next(earlier_names((*noted, ("y", "v")), "v")) == "y", "the name that a copy has by now"
