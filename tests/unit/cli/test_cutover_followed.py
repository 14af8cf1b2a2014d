"""A command that waits for a cut-over while the side with the record is lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from migrator.cli.cutover import followed
from migrator.cli.cutover.followed import looks
from migrator.errors import ConnectionFailed, CutoverError
from migrator.model.cutover.record import Record
from tests.unit.run.cutover.test_conductor import begun, record

LOST = ConnectionFailed("the record of the cut-over can't be reached", cause="server closed\n the connection")


class Kept:
    """A book that answers as it is told, the last answer again and again."""

    def __init__(self, *answers: Record | Exception | None):
        self._answers: Iterator[Record | Exception | None] = iter(answers)

    def read(self) -> Record | None:
        found = next(self._answers)
        if isinstance(found, Exception):
            raise found
        return found

    def write(self, record: Record, epoch: int) -> None: ...

    def write_old(self, record: Record, epoch: int) -> None: ...

    def bring_up(self, record: Record, epoch: int) -> None: ...

    def ask(self, record: Record) -> None: ...

    def last_epoch(self) -> int:
        return 0

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(followed, "LOOK_S", 0.0)


def test_a_record_that_is_lost_for_a_while_is_waited_for_and_it_is_said_once(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = record(begun()[0])
    following = looks(Kept(found, LOST, LOST, found, LOST, found), 60.0)
    assert [next(following) for _ in range(3)] == [found] * 3
    said = capsys.readouterr().err.splitlines()
    assert (
        said
        == [
            "the record can't be reached: server closed the connection;"
            " what was asked for stays asked for, and is waited for"
        ]
        * 2
    ), "once each time that it is lost"


def test_a_record_that_stays_lost_ends_the_wait_and_one_that_is_gone_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert list(looks(Kept(*[LOST] * 1_000_000), 0.05)) == []
    assert capsys.readouterr().err.count("can't be reached") == 1
    with pytest.raises(CutoverError, match="no plan of a cut-over was accepted"):
        next(looks(Kept(None), 60.0))
