"""Records the binary log of a MariaDB source, whose GTIDs are domain, server and sequence number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pymysqlreplication.event import MariadbGtidEvent

from scenarios.recording.binlog import BinlogRecorder, Place

_STANDALONE = 1
"""Flag of a GTID event (MariaDB: "GTID_EVENT"): it begins a statement that needs no COMMIT."""


@dataclass(frozen=True, slots=True)
class GtidState:
    """A ``Place``: per domain the server and sequence number of its last transaction.

    ``order`` is the sum of the sequence numbers, as the pipeline has it.
    """

    last: Mapping[int, tuple[int, int]]

    @property
    def order(self) -> int:
        """See ``Place``."""
        return sum(sequence for _, sequence in self.last.values())

    @property
    def text(self) -> str:
        """See ``Place``."""
        return ",".join(
            f"{domain}-{server}-{number}" for domain, (server, number) in sorted(self.last.items())
        )

    def reaches(self, goal: GtidState) -> bool:
        """See ``Place``."""
        return all(self.sequence(domain) >= number for domain, (_, number) in goal.last.items())

    def sequence(self, domain: int) -> int:
        """Returns the sequence number of a domain's last transaction; 0 if it has none."""
        return self.last.get(domain, (0, 0))[1]


class MariaLogRecorder(BinlogRecorder):
    """A ``SourceLogRecorder``."""

    gtid_event = MariadbGtidEvent
    is_mariadb = True
    _place: GtidState

    def _present(self) -> Place:
        ((text,),) = self._query("SELECT @@GLOBAL.gtid_binlog_pos")
        last: dict[int, tuple[int, int]] = {}
        for gtid in filter(None, str(text).split(",")):
            domain, server, sequence = map(int, gtid.split("-"))
            last[domain] = (server, sequence)
        return GtidState(last)

    def _after(self, event: Any) -> Place | None:
        if event.gtid_seq_no <= self._place.sequence(event.domain_id):
            return None
        return GtidState({**self._place.last, event.domain_id: (event.server_id, event.gtid_seq_no)})

    def _has_end(self, event: Any) -> bool:
        return not event.flags & _STANDALONE
