"""Which changes of a table are carried on, and which stop it with a named error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.log.pgoutput import Relation, Truncate
from migrator.adapters.sources.postgres.log.relations import WATERMARK_ID, Places, RelationFacts, Relations
from migrator.adapters.sources.postgres.log.schema_change import carried_on
from migrator.errors import SchemaError
from migrator.model.table import Column, TableId, TableSchema

ID = Column("id", "int64", False, "bigint")
NAME = Column("name", "string", True, "character varying(20)", "C")
NOTE = Column("note", "string", True, "text")
AT = TableId("public", "customer")
KNOWN = TableSchema(AT, (ID, NAME), ("id",))
PLACE = 16
WHERE = "position 0/10"


def seen(*columns: Column) -> tuple[Column, ...]:
    """Columns as a Relation message shows them: no NOT NULL, no collation."""
    return tuple(replace(column, nullable=True, collation="") for column in columns)


def test_the_same_columns_are_the_same_schema() -> None:
    assert carried_on(KNOWN, seen(ID, NAME), KNOWN, WHERE) is KNOWN
    assert carried_on(KNOWN, seen(ID, NAME), None, WHERE) is KNOWN


def test_an_added_column_is_carried_on_with_its_catalog_facts() -> None:
    added = replace(NOTE, nullable=False, collation="de-x-icu")
    now = TableSchema(AT, (ID, NAME, added), ("id",))
    assert carried_on(KNOWN, seen(ID, NAME, NOTE), now, WHERE) == now


def test_a_place_before_the_column_was_added_has_the_shorter_schema() -> None:
    longer = TableSchema(AT, (ID, NAME, NOTE), ("id",))
    assert carried_on(longer, seen(ID, NAME), longer, WHERE) == KNOWN


@pytest.mark.parametrize("wider", ["character varying(21)", "character varying", "text"])
def test_a_longer_limit_is_carried_on(wider: str) -> None:
    changed = carried_on(KNOWN, seen(ID, replace(NAME, source_type=wider)), None, WHERE)
    assert changed.columns == (ID, replace(NAME, source_type=wider))
    assert changed.version() != KNOWN.version()


@pytest.mark.parametrize(
    ("columns", "now", "says"),
    [
        pytest.param((ID,), TableSchema(AT, (ID,), ("id",)), "'name' was dropped", id="dropped"),
        pytest.param((ID,), None, "'name' was dropped", id="dropped, table gone since"),
        pytest.param(
            (ID, replace(NAME, name="full_name")), None, "'name' was dropped or renamed", id="renamed"
        ),
        pytest.param((NAME,), None, "'id' was dropped or renamed", id="first column dropped"),
        pytest.param(
            (replace(ID, type="int32", source_type="integer"), NAME), None, "from bigint", id="retyped"
        ),
        pytest.param(
            (ID, replace(NAME, source_type="character varying(5)")), None, "'name' changed", id="shorter"
        ),
        pytest.param((ID, replace(NAME, source_type="uuid")), None, "to uuid", id="other text type"),
        pytest.param((ID, NAME, replace(NOTE, name="__note")), None, "'__note'", id="a name of ours"),
        pytest.param((ID, NAME, replace(NOTE, name="Name")), None, "in case only", id="differs in case"),
        pytest.param((ID, NAME), replace(KNOWN, key=("name",)), "key changed from (id) to (name)", id="key"),
        pytest.param((ID, NAME), replace(KNOWN, key=()), "key changed from (id) to ()", id="key dropped"),
    ],
)
def test_anything_else_stops_the_table(columns: Sequence[Column], now: TableSchema | None, says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        carried_on(KNOWN, seen(*columns), now, WHERE)
    assert says in caught.value.cause
    assert caught.value.where == "public.customer at position 0/10"
    assert caught.value.remedy


NEEDING_NAME = replace(KNOWN, columns=(ID, NOTE, NAME), needed=frozenset({"name"}))
MOVED = replace(NOTE, name="remark")


@pytest.mark.parametrize(
    "columns",
    [
        pytest.param((ID, NAME), id="dropped"),
        pytest.param((ID, MOVED, NAME), id="renamed"),
        pytest.param((ID, replace(NOTE, type="int32", source_type="integer"), NAME), id="retyped"),
        pytest.param((ID, replace(NOTE, source_type="character varying(3)"), NAME), id="shorter"),
        pytest.param((ID, NAME, NOTE), id="dropped and added again at the end"),
    ],
)
def test_what_becomes_of_a_column_that_nothing_needs_is_carried_on(columns: Sequence[Column]) -> None:
    """Also backwards: the log is older than the structure that reading began with."""
    changed = carried_on(NEEDING_NAME, seen(*columns), None, WHERE)
    assert changed.names() == tuple(column.name for column in columns)
    assert changed.needed == NEEDING_NAME.needed
    newer = replace(NEEDING_NAME, columns=tuple(columns))
    assert carried_on(newer, seen(*NEEDING_NAME.columns), newer, WHERE).names() == NEEDING_NAME.names()


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        pytest.param((ID, NOTE), "'name' was dropped", id="dropped"),
        pytest.param((ID, NOTE, replace(NAME, name="full_name")), "'name' was dropped", id="renamed"),
        pytest.param((ID, NOTE, replace(NAME, source_type="uuid")), "to uuid", id="retyped"),
        pytest.param((NOTE, NAME), "'id' was dropped", id="key dropped"),
    ],
)
def test_what_becomes_of_a_column_that_is_needed_stops(columns: Sequence[Column], says: str) -> None:
    with pytest.raises(SchemaError) as caught:
        carried_on(NEEDING_NAME, seen(*columns), None, WHERE)
    assert says in caught.value.cause


def test_a_number_that_another_column_has_by_now_counts_for_needed_columns_only() -> None:
    facts = RelationFacts(seen(ID, NOTE, NAME), NEEDING_NAME, (("id", 1), ("note", 4), ("name", 3)))
    known = Relations([NEEDING_NAME], lambda *_: facts)
    known.follow({AT: 5}, NOWHERE, {AT: {"id": 1, "note": 2, "name": 3}})
    assert known.see(relation(), (7,), PLACE, WHERE) is None
    known.follow({AT: 5}, NOWHERE, {AT: {"id": 1, "note": 2, "name": 2}})
    with pytest.raises(SchemaError, match="can't be carried on"):
        known.see(relation(), (7,), PLACE, WHERE)


NOWHERE = Places({}, {})


def relation(oid: int = 5, name: str = "customer", schema: str = "public") -> Relation:
    return Relation(oid, schema, name, "f", ())


def relations(*facts: RelationFacts) -> Relations:
    answers = iter(facts)
    known = Relations([KNOWN], lambda *_: next(answers))
    known.follow({AT: 5}, NOWHERE, {})
    return known


def test_a_captured_relation_is_known_by_its_oid() -> None:
    known = relations(RelationFacts(seen(ID, NAME), KNOWN))
    assert known.see(relation(), (7,), PLACE, WHERE) is None
    captured = known.captured(5)
    assert captured is not None
    assert captured.schema is KNOWN
    assert captured.full_images


def test_other_tables_and_the_watermark_are_told_apart() -> None:
    known = relations()
    known.see(relation(6, "other"), (7,), PLACE, WHERE)
    known.see(relation(7, WATERMARK_ID.name, WATERMARK_ID.schema), (7,), PLACE, WHERE)
    assert known.captured(6) is None
    assert known.captured(7) is None
    assert known.is_watermark(7)
    assert not known.is_watermark(6)


def test_a_column_dropped_and_added_again_is_not_the_same() -> None:
    before = RelationFacts(seen(ID, NAME), KNOWN, (("id", 1), ("name", 2)))
    after = RelationFacts(seen(ID, NAME), KNOWN, (("id", 1), ("name", 3)))
    known = relations(before, after)
    known.see(relation(), (7,), PLACE, WHERE)
    with pytest.raises(SchemaError) as caught:
        known.see(relation(), (7,), PLACE, WHERE)
    assert "'name' was dropped and added again" in caught.value.cause


def test_a_table_is_followed_under_another_name() -> None:
    facts = RelationFacts(seen(ID, NAME), KNOWN)
    known = relations(facts, replace(facts, now=None))
    known.see(relation(), (7,), PLACE, WHERE)
    known.see(relation(5, "client"), (7,), PLACE, WHERE)
    captured = known.captured(5)
    assert captured is not None
    assert captured.schema.id == AT


def test_another_table_of_its_name_stops() -> None:
    known = relations()
    with pytest.raises(SchemaError) as caught:
        known.see(relation(9), (7,), PLACE, WHERE)
    assert "another table (number 9) has its name there" in caught.value.cause


def test_changes_before_all_rows_are_dumped_anew_are_left_out_and_those_behind_are_not() -> None:
    """The server tells a relation once: what is left out has to be known when its place has come."""
    known = relations(RelationFacts(seen(ID, NAME), KNOWN), RelationFacts(seen(ID, NAME), KNOWN))
    known.follow({AT: 5}, Places({}, {AT: PLACE}), {})
    assert known.entered(PLACE - 1) == []
    assert known.see(relation(), (7,), PLACE - 1, WHERE, passing=True) is None
    assert known.captured(5) is not None, "what was delivered before is told by its captured changes"
    assert known.entered(PLACE) == []
    assert (known.captured(5), known.codecs) == (None, {})
    assert known.see(relation(), (8,), PLACE, WHERE) is None
    assert known.captured(5) is None
    known.see(Relation(9, "public", "part", "d", ()), (8,), PLACE, WHERE)
    assert known.captured(5) is None, "a partition's message follows its root's"
    known.see(relation(9, "part"), (8,), PLACE, WHERE)
    (due,) = known.entered(PLACE + 1)
    known.see(due, (9,), PLACE + 1, WHERE)
    assert known.captured(5) is not None
    assert known.codecs
    assert known.entered(PLACE + 2) == []


def test_one_that_had_the_name_before_all_rows_were_dumped_is_of_no_interest() -> None:
    known = relations()
    known.follow({AT: 5}, Places({AT: PLACE}, {}), {})
    assert known.see(relation(9), (7,), PLACE, WHERE) is None
    assert known.captured(9) is None
    with pytest.raises(SchemaError):
        known.see(relation(9), (7,), PLACE + 1, WHERE)


def test_what_the_catalog_could_not_show_yet_is_looked_at_again() -> None:
    other_key = TableSchema(KNOWN.id, KNOWN.columns, ("name",))
    known = relations(
        RelationFacts(seen(ID, NAME), KNOWN, current=False),
        RelationFacts(seen(ID, NAME), KNOWN, current=False),
        RelationFacts(seen(ID, NAME), other_key),
    )
    known.see(relation(), (7,), PLACE, WHERE)
    known.check_again()
    assert known.in_doubt()
    with pytest.raises(SchemaError) as caught:
        known.check_again()
    assert "its key changed" in caught.value.cause
    assert not known.in_doubt()


def test_a_structure_that_was_only_passed_by_stops_where_a_change_comes_under_it() -> None:
    """A mapping was adapted to a renamed column: the server sends again what was delivered under the old name."""
    renamed = replace(KNOWN, columns=(ID, replace(NAME, name="title")), needed=frozenset({"title"}))
    facts = iter([RelationFacts(seen(ID, NAME), renamed), RelationFacts(seen(*renamed.columns), renamed)])
    known = Relations([renamed], lambda *_: next(facts))
    known.follow({AT: 5}, NOWHERE, {})
    assert known.see(relation(), (7,), PLACE, WHERE, passing=True) is None
    assert known.touched(Truncate(0, (5,)))
    with pytest.raises(SchemaError, match="can't be carried on"):
        known.check_known(5)
    assert known.see(relation(), (8,), PLACE + 1, WHERE) is None
    known.check_known(5)
    assert known.captured(5) is not None


def test_a_structure_that_is_not_passed_by_stops_at_once() -> None:
    renamed = replace(KNOWN, columns=(ID, replace(NAME, name="title")), needed=frozenset({"title"}))
    known = Relations([renamed], lambda *_: RelationFacts(seen(ID, NAME), renamed))
    known.follow({AT: 5}, NOWHERE, {})
    with pytest.raises(SchemaError):
        known.see(relation(), (7,), PLACE, WHERE)


def test_a_place_before_a_limit_was_lifted_is_read_on() -> None:
    """The structure that reading began with is the present one; a change that comes now is told from that."""
    lifted = replace(KNOWN, columns=(ID, replace(NAME, source_type="text")))
    assert carried_on(lifted, seen(ID, NAME), lifted, WHERE).columns == KNOWN.columns
    with pytest.raises(SchemaError, match="can't be carried on"):
        carried_on(lifted, seen(ID, NAME), KNOWN, WHERE)
