"""A watcher that fails begins again, says so, and takes no other one with it."""

from __future__ import annotations

import pytest

from migrator.run.failure import Stopping
from migrator.run.observe import unbroken as module
from migrator.run.observe.unbroken import unbroken
from migrator.run.progress import Progress


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REST_S", 0.01)


@pytest.mark.usefixtures("impatient")
def test_an_unexpected_error_is_a_warning_and_the_watcher_goes_on() -> None:
    progress, stopping, looks = Progress(), Stopping(), []

    def work() -> None:
        looks.append(1)
        if len(looks) < 3:
            raise ZeroDivisionError("a fault of ours")

    unbroken("lag", work, progress, stopping)()
    assert len(looks) == 3
    ((about, text),) = progress.warnings()
    assert about == "watching lag"
    assert "ZeroDivisionError: a fault of ours" in text
    assert not stopping.requested(), "others go on"


@pytest.mark.usefixtures("impatient")
def test_a_stop_ends_one_that_fails_for_ever() -> None:
    progress, stopping = Progress(), Stopping()

    def work() -> None:
        stopping.request()
        raise KeyError("again and again")

    unbroken("lag", work, progress, stopping)()
    assert len(progress.warnings()) == 1


def test_one_that_ends_by_itself_says_nothing() -> None:
    progress = Progress()
    unbroken("lag", lambda: None, progress, Stopping())()
    assert progress.warnings() == ()
