"""What `migrator check` says: items as lines, as a document, as an exit code."""

from __future__ import annotations

import click
import pytest

from migrator.cli.check.item import Item, Outcome, document, exit_code, lines, of_error, of_finding
from migrator.cli.check.round_trip import items_of
from migrator.errors import MappingError
from migrator.model.finding import Finding
from migrator.run.commands.carried_back import ColumnBack, Fate, TableBack
from migrator.run.commands.round_trip import Trip
from transforms.reverse.compare import Compared


def said(item: Item) -> list[str]:
    return [click.unstyle(line) for line in lines(item)]


def test_a_finding_has_its_text_and_remedy_below_its_subject() -> None:
    finding = Finding("wal_level", "server", "it is replica", "ALTER SYSTEM SET wal_level = logical;")
    assert said(of_finding(finding)) == [
        "refuses  wal_level: server",
        "    it is replica",
        "    remedy: ALTER SYSTEM SET wal_level = logical;",
    ]


def test_an_error_names_where_it_is_and_its_cause() -> None:
    error = MappingError(
        "the key names no column", where="mapping.py:3\nmapping.py:9", cause="()", remedy="r"
    )
    assert said(of_error("mapping", error)) == [
        "refuses  mapping: the key names no column",
        "    where: mapping.py:3",
        "      mapping.py:9",
        "    cause: ()",
        "    remedy: r",
    ]


def test_what_needs_no_remedy_is_one_line_and_its_details() -> None:
    item = Item(Outcome.OK, "mapping", "person", "row-wise, from customer", details=("grain a", "grain b"))
    assert said(item) == [
        "ok       mapping: person: row-wise, from customer",
        "             grain a",
        "             grain b",
    ]


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], 0),
        ([Outcome.OK, Outcome.WARNING, Outcome.NOTE], 0),
        ([Outcome.UNKNOWN, Outcome.OK], 3),
        ([Outcome.UNKNOWN, Outcome.LOSSY], 1),
        ([Outcome.LOSSY, Outcome.UNKNOWN, Outcome.REFUSES], 2),
    ],
)
def test_the_gravest_outcome_decides_the_exit_code(outcomes: list[Outcome], code: int) -> None:
    assert exit_code([Item(one, "c", "s", "t") for one in outcomes]) == code


def test_a_document_counts_and_names_how_a_page_is_printed() -> None:
    items = [
        Item(Outcome.WARNING, "c", "s", "t", remedy="see docs/how-to/verify.md"),
        Item(Outcome.REFUSES, "c", "s", "t"),
    ]
    written = document("shop", items, 2)
    assert (written["refusals"], written["warnings"]) == (1, 1)
    assert written["items"][0]["outcome"] == "warning"
    assert "printed by `migrator docs verify`" in written["items"][0]["remedy"]


def back(*columns: ColumnBack) -> list[Item]:
    return list(items_of(TableBack(Trip("orders", Compared(60, {}, (), (), ())), columns)))


def test_a_loss_is_an_item_of_its_own_unless_it_was_accepted() -> None:
    exact, note = ColumnBack("id", Fate.EXACT), ColumnBack("note", Fate.NOT_CARRIED, "new ones get NULL")
    lost, borne = (
        ColumnBack("cents", Fate.LOSSY, "1 of 60"),
        ColumnBack("paid", Fate.LOSSY, "2 of 60", accepted=True),
    )
    whole, loss = back(exact, lost, borne, note)
    assert whole.outcome is Outcome.NOTE
    assert whole.details == (
        "exact: id",
        "lossy: paid: 2 of 60 (accepted)",
        "not carried: note: new ones get NULL",
    )
    assert (loss.outcome, loss.subject, loss.text) == (Outcome.LOSSY, "orders.cents", "lossy: cents: 1 of 60")
    assert "'orders.cents' in [back] accept_lossy" in loss.remedy
    assert exit_code(back(exact, borne, note)) == 0


def test_a_column_that_must_be_filled_refuses() -> None:
    _, refused = back(ColumnBack("note", Fate.NOT_CARRIED, "no default", fatal=True))
    assert refused.outcome is Outcome.REFUSES
    assert exit_code([refused]) == 2
