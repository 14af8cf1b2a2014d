"""Whether a server's log leads to a position: identity and timelines."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.log.server_log import ServerLog

HISTORY = "1\t0/500\tno recovery target specified\n\n2\t0/900\tno recovery target specified\n"
HERE = ServerLog("7", 3, 0x1000)


@pytest.mark.parametrize(
    ("label", "lsn", "says"),
    [
        ("7/3", 0x2000, ""),
        ("7", 0x2000, ""),  # written by an earlier version
        ("7/2", 0x900, ""),
        ("7/1", 0x500, ""),
        ("7/2", 0x901, "left timeline 2 at 0/900"),
        ("7/1", 0x900, "left timeline 1 at 0/500"),
        ("7/4", 0x100, "timeline 4, which timeline 3 here doesn't come from"),
        ("8/3", 0x100, "of server 8, this is server 7"),
    ],
)
def test_a_position_behind_the_fork_is_not_of_this_log(label: str, lsn: int, says: str) -> None:
    problem = HERE.misses(label, lsn, lambda timeline: HISTORY if timeline == 3 else "")
    assert (says in problem) if says else not problem


def test_a_timeline_that_is_not_in_the_history_is_refused() -> None:
    assert "doesn't come from" in HERE.misses("7/2", 0x100, lambda _: "1\t0/500\treason\n")


def test_labels_name_server_and_timeline_where_that_is_known() -> None:
    assert HERE.label() == "7/3"
    assert ServerLog("7", 0).label() == "7"
    assert not ServerLog("7", 0).misses("7/3", 0x100, lambda _: "")
