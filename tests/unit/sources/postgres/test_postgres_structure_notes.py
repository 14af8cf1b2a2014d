"""What is noted of a table's columns: needed ones stop a run, others are kept in mind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.log.rewritten import ColumnFacts, Structure

FILE, LATER = 10, 11
BEFORE = Structure(
    5,
    FILE,
    {"k": ColumnFacts(1, "100", FILE), "v": ColumnFacts(2, "100", FILE)},
    {"pair": "1 23 -1"},
    {"pair": {"v"}},
)
CHANGES = {
    "dropped and added again": replace(BEFORE, columns={**BEFORE.columns, "v": ColumnFacts(3, "200", FILE)}),
    "written anew": replace(
        BEFORE, file=LATER, columns={"k": ColumnFacts(1, "100", LATER), "v": ColumnFacts(2, "200", LATER)}
    ),
    "attributes of type pair": replace(BEFORE, types={"pair": "1 25 -1"}),
}


def needs_v(name: str) -> bool:
    return name == "v"


def needs_k(name: str) -> bool:
    return name == "k"


@pytest.mark.parametrize("says", CHANGES)
def test_a_needed_column_that_changed_is_named(says: str) -> None:
    assert says in BEFORE.became(CHANGES[says], needs_v)


@pytest.mark.parametrize("says", CHANGES)
def test_one_that_nothing_needs_is_kept_in_mind_until_something_does(says: str) -> None:
    later = CHANGES[says]
    assert BEFORE.became(later, needs_k) == ""
    noted = Structure.from_json(later.noted_after(BEFORE, needs_k).to_json())
    assert noted.became(later, needs_k) == ""
    assert says in noted.became(later, needs_v)


def test_one_that_was_gone_for_a_while_is_kept_in_mind_too() -> None:
    gone = replace(BEFORE, columns={"k": BEFORE.columns["k"]}, types={}, users={})
    noted = gone.noted_after(BEFORE, needs_k)
    again = CHANGES["dropped and added again"]
    noted = again.noted_after(noted, needs_k)
    assert "dropped and added again" in noted.became(again, needs_v)


def test_a_needed_column_is_noted_as_it_is_now() -> None:
    """Else a default that was set, and a VACUUM FULL years later, would be taken for one change of all rows."""
    defaulted = replace(BEFORE, columns={**BEFORE.columns, "v": ColumnFacts(2, "200", FILE)})
    assert BEFORE.became(defaulted, needs_v) == ""
    noted = defaulted.noted_after(BEFORE, needs_v)
    vacuumed = replace(
        BEFORE, file=LATER, columns={"k": ColumnFacts(1, "100", LATER), "v": ColumnFacts(2, "200", LATER)}
    )
    assert noted.became(vacuumed, needs_v) == ""


def test_a_note_of_before_columns_had_a_file_is_read() -> None:
    known = Structure.from_json([5, FILE, {"k": [1, "100"]}, {}])
    assert known.columns == {"k": ColumnFacts(1, "100", FILE)}


def test_a_column_is_followed_by_its_number_under_another_name() -> None:
    other = replace(BEFORE, columns={"k": BEFORE.columns["k"], "x": ColumnFacts(2, "200", FILE)})
    assert BEFORE.renamed(other) == {"v": "x"}
    again = replace(BEFORE, columns={**BEFORE.columns, "x": ColumnFacts(3, "200", FILE)})
    assert BEFORE.renamed(again) == {}
    dropped = replace(BEFORE, columns={"k": BEFORE.columns["k"], "x": ColumnFacts(3, "200", FILE)})
    assert BEFORE.renamed(dropped) == {}, "another column, however alike"


def test_values_written_anew_are_named_under_a_name_that_the_column_got_as_well() -> None:
    """Its number stays; a mapping that was adapted needs the new name alone."""
    columns = {"k": ColumnFacts(1, "100", LATER), "w": ColumnFacts(2, "200", LATER)}
    anew = replace(BEFORE, file=LATER, columns=columns, types={}, users={})
    assert "all rows were written anew, and column 'w'" in BEFORE.became(anew, lambda name: name == "w")
    assert BEFORE.became(anew, needs_k) == ""
    merely = replace(anew, columns={**columns, "w": ColumnFacts(2, "200", FILE)})
    assert BEFORE.became(merely, lambda name: name == "w") == ""


def test_what_was_noted_before_a_new_name_is_kept_in_mind_until_the_mapping_knows_the_name() -> None:
    """A run halts at the new name, and its last look comes before the mapping is adapted."""
    columns = {"k": ColumnFacts(1, "100", LATER), "w": ColumnFacts(2, "200", LATER)}
    anew = replace(BEFORE, file=LATER, columns=columns, types={}, users={})
    noted = Structure.from_json(anew.noted_after(BEFORE, needs_v).to_json())
    assert "all rows were written anew" in noted.became(anew, lambda name: name == "w")
    merely = replace(anew, file=FILE, columns={**columns, "w": ColumnFacts(2, "200", FILE)})
    noted = Structure.from_json(merely.noted_after(BEFORE, needs_v).to_json())
    later = replace(anew, columns={**columns, "w": ColumnFacts(2, "200", LATER)})
    assert noted.became(later, lambda name: name == "w") == "", "VACUUM FULL later on does nothing to it"
