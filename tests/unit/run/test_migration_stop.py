"""A run that is stopped while a table is swapped ends: the next start reads the table again by itself."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from migrator.errors import ReplacedError
from migrator.model.table import TableId
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.parts import Parts


def swapped(stopping: Stopping, *, reads_replaced: bool) -> Migration:
    """Its operator stops it, then the log reader meets another table."""

    def prepare() -> str | None:
        stopping.request()
        raise ReplacedError("another table has the name", [TableId("old", "a")])

    parts = SimpleNamespace(
        prepare=prepare,
        begun=lambda: True,
        set_damage_aside=str,
        reads_replaced=reads_replaced,
        catalog=SimpleNamespace(adopt=list),
    )
    return Migration(cast(Parts, parts))


def test_a_swap_that_the_next_start_answers_is_no_error_of_a_stop() -> None:
    stopping = Stopping()
    swapped(stopping, reads_replaced=True).run(stopping)
    assert stopping.requested()


def test_a_swap_that_waits_for_its_operator_is_said_at_a_stop_too() -> None:
    stopping = Stopping()
    with pytest.raises(ReplacedError):
        swapped(stopping, reads_replaced=False).run(stopping)
