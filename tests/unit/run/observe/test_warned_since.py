"""Since when a run warns of a thing: kept while its words change, forgotten once it is over."""

from __future__ import annotations

import time

from migrator.run.progress import Progress


def test_since_is_the_first_warning_about_a_thing_until_it_is_over() -> None:
    progress, before_us = Progress(), time.time_ns() // 1000
    progress.warn("disk", "3 GiB are left")
    ((about, began_us),) = progress.warned_us()
    assert (about, before_us <= began_us <= time.time_ns() // 1000) == ("disk", True)
    progress.warn("disk", "2 GiB are left", "and less by the minute")
    assert progress.warned_us() == (("disk", began_us),)
    progress.warn("disk")
    assert progress.warned_us() == ()
    progress.warn("disk", "3 GiB are left")
    assert progress.warned_us()[0][1] > began_us


def test_a_thing_that_is_as_it_should_be_was_never_warned_of() -> None:
    progress = Progress()
    progress.warn("disk")
    assert progress.warned_us() == ()
