"""What every leadership must do. A new adapter subclasses ``LeadershipContract`` and says how to make
contenders."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.errors import FencedError
from migrator.ports.leadership import Leadership

Contender = Callable[[], Leadership]


class LeadershipContract:
    """The tests. ``contender`` makes contenders for one and the same leadership."""

    def contenders(self, directory: Path) -> Contender:
        raise AssertionError("a subclass says how to make a contender")

    @pytest.fixture
    def contender(self, tmp_path: Path) -> Contender:
        return self.contenders(tmp_path)

    def test_a_leader_holds_its_lease_until_it_gives_it_up(self, contender: Contender) -> None:
        leader = contender()
        assert not leader.held()
        lease = leader.acquire(0)
        assert lease.epoch >= 1
        assert lease.owner
        assert leader.held()
        leader.release()
        leader.release()
        assert not leader.held()

    def test_there_is_one_leader_at_a_time(self, contender: Contender) -> None:
        leader, other = contender(), contender()
        leader.acquire(0)
        with pytest.raises(FencedError):
            other.acquire(0)
        assert leader.held()
        assert not other.held()
        other.release()
        assert leader.held(), "who holds nothing gives nothing up"
        leader.release()
        other.acquire(0)
        assert other.held()
        assert not leader.held()

    def test_the_error_names_the_holder(self, contender: Contender) -> None:
        leader = contender()
        host, _, process = leader.acquire(0).owner.partition(":")
        with pytest.raises(FencedError) as caught:
            contender().acquire(0)
        assert host in caught.value.cause
        assert process in caught.value.cause
        assert leader.held()

    def test_epochs_rise(self, contender: Contender) -> None:
        epochs = []
        for above in (0, 0, 41, 7, 0):
            leader = contender()
            epochs.append(leader.acquire(above).epoch)
            leader.release()
        assert epochs == sorted(set(epochs))
        assert epochs[2] > 41
        assert epochs[3] > epochs[2]

    def test_one_object_leads_again_under_a_higher_epoch(self, contender: Contender) -> None:
        leader = contender()
        first = leader.acquire(0)
        leader.release()
        assert leader.acquire(0).epoch > first.epoch
        assert leader.held()

    def test_of_many_at_once_one_wins(self, contender: Contender) -> None:
        contenders = [contender() for _ in range(8)]
        barrier = threading.Barrier(len(contenders))
        refused: list[str] = []

        def run(leader: Leadership) -> None:
            barrier.wait(10)
            try:
                leader.acquire(0)
            except FencedError as error:
                refused.append(error.what)

        threads = [threading.Thread(target=run, args=[leader]) for leader in contenders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(refused) == 7
        assert [leader.held() for leader in contenders].count(True) == 1

    def test_a_standby_learns_who_leads_and_that_nobody_does(self, contender: Contender) -> None:
        leader, standby = contender(), contender()
        assert standby.stand_by(10) == "", "nobody leads: it doesn't wait"
        leader.acquire(0)
        assert leader.sure()
        assert standby.stand_by(0.01) != ""
        assert not standby.held()
        assert not standby.sure()
        leader.release()
        assert not leader.sure()
        assert standby.stand_by(10) == ""
        assert standby.acquire(0).epoch > 1
        assert standby.sure()
