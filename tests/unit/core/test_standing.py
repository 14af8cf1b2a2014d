"""The verdict on a migration, and its phase."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.core.standing import Standing, phase_of, standing
from migrator.model.observed.observation import DUMPING, FILLING, STARTING, STREAMING, Lag
from migrator.model.progress import TableDump
from migrator.model.table import TableId

NONE, SOME, MUCH = Lag(0, 0.0, 1.0, ""), Lag(7, 3.0, 3.0, ""), Lag(7, 61.0, 61.0, "")
NEVER = Lag(7, None, None, "nobody knows since when")
DUMP = TableDump(TableId("s", "t"), done=True)


@pytest.mark.parametrize(
    ("leads", "different", "lag", "complete", "wanted"),
    [
        (True, False, NONE, True, Standing.CAUGHT_UP),
        (True, False, SOME, True, Standing.CAUGHT_UP),
        (True, False, MUCH, True, Standing.BEHIND),
        (True, False, NONE, False, Standing.BEHIND),
        (True, False, Lag(), True, Standing.UNKNOWN),
        (True, False, NEVER, True, Standing.UNKNOWN),
        (False, False, NONE, True, Standing.STOPPED),
        (False, False, MUCH, True, Standing.STOPPED),
        (False, False, Lag(), True, Standing.STOPPED),
        (True, True, NONE, True, Standing.DIFFERENT),
        (False, True, Lag(), False, Standing.DIFFERENT),
    ],
)
def test_the_worst_is_said(leads: bool, different: bool, lag: Lag, complete: bool, wanted: Standing) -> None:
    assert standing(leads=leads, different=different, lag=lag, max_lag_s=60, complete=complete) is wanted


def test_the_phase_is_that_of_the_least_complete_part() -> None:
    under_way = replace(DUMP, done=False)
    assert phase_of((DUMP, under_way), (), True, True) == DUMPING
    assert phase_of((DUMP,), (under_way,), False, True) == DUMPING
    assert phase_of((DUMP,), (), True, True) == FILLING
    assert phase_of((DUMP,), (), False, True) == STREAMING
    assert phase_of((), (), False, False) == STARTING
