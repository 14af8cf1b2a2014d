"""A table that the catalogue doesn't show for a moment, as MariaDB does while somebody makes a trigger on it."""

from __future__ import annotations

import pytest

from migrator.adapters.targets.shared.reflected import check_unchanged, unseen
from migrator.errors import TargetError
from migrator.model.table import TableId
from migrator.model.target import TargetColumn, TargetTable

T = TargetTable(TableId("s", "t"), (TargetColumn("k", "int", "int", False, False, False),), ("k",))


def test_a_table_without_any_column_is_out_of_sight_and_the_run_starts_again() -> None:
    assert unseen(["t", "u"], [("u", "k", "int")]) == {"t"}
    with pytest.raises(TargetError, match="can't be seen") as raised:
        check_unchanged([T], [("u", "k", "int")])
    assert raised.value.retryable


def test_a_column_that_is_gone_from_a_table_that_is_there_stops_the_run() -> None:
    with pytest.raises(TargetError, match="was changed while we run") as raised:
        check_unchanged([T], [(b"t", b"other", b"int")])
    assert not raised.value.retryable
    check_unchanged([T], [(b"t", b"k", b"int")])
