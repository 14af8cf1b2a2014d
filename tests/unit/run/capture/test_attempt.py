"""Which tables of a begun migration are emptied before all of their rows are dumped."""

from __future__ import annotations

from migrator.model.table import TableId
from migrator.run.capture.attempt import Anew

T, U, V, W = (TableId("s", name) for name in "tuvw")


def test_a_replaced_table_is_emptied_once_the_log_reader_found_another() -> None:
    anew = Anew(replaced=frozenset((T, U)))
    assert anew.emptied(frozenset((T,))) == {T}


def test_of_tables_that_join_only_the_mirror_may_have_rows() -> None:
    """Others of their names may be in the log: nobody captured those."""
    anew = Anew(frozenset((T,)), joining=frozenset((U, V)), mirrored=frozenset((V, W)))
    assert anew.emptied(frozenset((T, U))) == {T, V}
