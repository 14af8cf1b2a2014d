"""Both leaderships without ZooKeeper keep the contract."""

from __future__ import annotations

from pathlib import Path

from migrator.adapters.coordination.local.leadership import LocalLeadership
from migrator.adapters.memory.leadership import MemoryElection, MemoryLeadership
from migrator.ports.leadership import Leadership
from tests.contract.coordination.leadership_contract import Contender, LeadershipContract


class TestLocal(LeadershipContract):
    def contenders(self, directory: Path) -> Contender:
        def contender() -> Leadership:
            return LocalLeadership(directory / "state")

        return contender

    def test_a_standby_is_seen_until_it_leads(self, tmp_path: Path) -> None:
        leader, standby, onlooker = (LocalLeadership(tmp_path) for _ in range(3))
        assert onlooker.standbys() == ()
        leader.acquire(0)
        assert standby.stand_by(0.01) == onlooker.holder() != ""
        assert onlooker.standbys() == (onlooker.holder(),), "this very process"
        leader.release()
        assert standby.stand_by(10) == ""
        standby.acquire(0)
        assert onlooker.standbys() == ()


class TestMemory(LeadershipContract):
    def contenders(self, directory: Path) -> Contender:
        election = MemoryElection()

        def contender() -> Leadership:
            return MemoryLeadership(election, "host:1")

        return contender

    def test_a_lost_session_is_never_held_again(self) -> None:
        election = MemoryElection()
        first, second = MemoryLeadership(election, "a"), MemoryLeadership(election, "b")
        first.acquire(0)
        election.expire()
        assert not first.held()
        assert second.acquire(0).epoch == 2
        first.release()
        assert second.held()
        assert not first.held()
