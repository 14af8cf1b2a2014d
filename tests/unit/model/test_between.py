"""What was changed between two runs, as far as a checkpoint shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.errors import MappingError, RequestError
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import WHOLE as ALL_ROWS
from migrator.model.requests.request import RequestBook, Scope, number_of
from migrator.model.table import Column, TableId, TableSchema
from migrator.run.lead.between import refuse_changes

T, U = (TableSchema(TableId("s", name), (Column("k", "string", False, "text"),), ("k",)) for name in "tu")
DUMPS = (TableDump(T.id, done=True), TableDump(U.id, done=True))
WHOLE = Checkpoint(Position(7, "0/7"), dumps=DUMPS)
HALF = Checkpoint(Position(7, "0/7"), partial_order=9, partial_index=60_000, dumps=DUMPS)


def test_between_transactions_a_table_may_be_taken_out() -> None:
    refuse_changes(WHOLE, [T, U], RequestBook())
    refuse_changes(WHOLE, [T], RequestBook())


def test_within_a_transaction_the_tables_stay_as_they_were() -> None:
    """1. 60,000 changes of u are stored; 2. without u, the log has 60,000 of t in their place: all would be
    lost."""
    refuse_changes(HALF, [T, U], RequestBook())
    with pytest.raises(MappingError) as caught:
        refuse_changes(HALF, [T], RequestBook())
    assert caught.value.where == "s.u"
    assert "60,000 changes" in str(caught.value.cause)
    assert "put s.u back" in caught.value.remedy


def test_a_new_table_joins_between_transactions_only() -> None:
    new = TableSchema(TableId("s", "new"), T.columns, T.key)
    refuse_changes(WHOLE, [T, U, new], RequestBook())
    with pytest.raises(MappingError, match="captured by half") as caught:
        refuse_changes(HALF, [T, U, new], RequestBook())
    assert caught.value.where == "s.new"
    assert "take s.new out of it" in caught.value.remedy


def test_a_request_that_was_under_way_must_be_in_the_book_or_its_table_be_asked_for_once_more() -> None:
    book = RequestBook().start((T.id,), ALL_ROWS)
    name = book.requests[0].name()
    begun = replace(WHOLE, requests=(TableDump(T.id, chunks=2, after=("9",), request=name),))
    refuse_changes(begun, [T, U], book)
    refuse_changes(begun, [T, U], book.cancel("r1"))
    refuse_changes(begun, [U], RequestBook())
    refuse_changes(replace(begun, requests=(replace(begun.requests[0], done=True),)), [T, U], RequestBook())
    other = RequestBook(started=7)
    for lost in (
        RequestBook(),
        other.start((U.id,), ALL_ROWS),
        other.start((T.id,), Scope(predicate="k > 1")),
    ):
        with pytest.raises(RequestError, match="known to nobody") as caught:
            refuse_changes(begun, [T, U], lost)
        assert "migrator dump start --table t;" in caught.value.remedy
    anew = RequestBook().behind(max(map(number_of, begun.dumps_named()))).start((T.id,), ALL_ROWS)
    assert anew.requests[0].name() != name, "it would go on behind key 9"
    refuse_changes(begun, [T, U], anew)
