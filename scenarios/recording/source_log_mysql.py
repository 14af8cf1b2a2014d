"""Records the binary log of a MySQL source, whose GTIDs are a server's UUID and a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pymysqlreplication.event import GtidEvent

from migrator.errors import VerifyError
from scenarios.recording.binlog import BinlogRecorder, Place


@dataclass(frozen=True, slots=True)
class GtidCounts:
    """A ``Place``: per server the number of its last transaction, all before it being there as well.

    So ``order`` is how many transactions there are, as the pipeline has it.
    """

    last: Mapping[str, int]

    @property
    def order(self) -> int:
        """See ``Place``."""
        return sum(self.last.values())

    @property
    def text(self) -> str:
        """See ``Place``."""
        return ",".join(f"{server}:1-{number}" for server, number in sorted(self.last.items()))

    def reaches(self, goal: GtidCounts) -> bool:
        """See ``Place``."""
        return all(self.last.get(server, 0) >= number for server, number in goal.last.items())


class MysqlLogRecorder(BinlogRecorder):
    """A ``SourceLogRecorder``. The server is its scenario's own: its GTIDs have neither gaps nor tags."""

    gtid_event = GtidEvent
    _place: GtidCounts

    def _present(self) -> Place:
        ((text,),) = self._query("SELECT @@GLOBAL.gtid_executed")
        return counts(str(text))

    def _after(self, event: Any) -> Place | None:
        server, _, number = event.gtid.partition(":")
        last = self._place.last.get(server, 0)
        if int(number) <= last:
            return None
        if int(number) != last + 1:
            raise VerifyError(
                "the recorder missed a transaction", where=event.gtid, cause=f"the last one was {last}"
            )
        return GtidCounts({**self._place.last, server: int(number)})


def counts(text: str) -> GtidCounts:
    """A set of GTIDs as the server writes it. Raises ``VerifyError`` for one with gaps or tags."""
    last: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        server, _, numbers = part.partition(":")
        first, _, end = numbers.partition("-")
        if first != "1" or not (end or first).isdecimal():
            raise VerifyError("the recorder reads no such set of GTIDs", where=part)
        last[server] = int(end or first)
    return GtidCounts(last)
