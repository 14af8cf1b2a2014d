"""A history of transactions by seed, and a proxy that cuts connections after so many bytes."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Sequence
from contextlib import suppress

from tests.fix_postgres_source import Proxy
from tests.servers import Database

_RESET = struct.pack("ii", 1, 0)


def history(database: Database, seed: int) -> None:
    """Transactions at the same time: savepoints kept and rolled back, key moves, large values, DDL, rollbacks."""
    dice = random.Random(seed)
    database.execute("DELETE FROM t")
    sessions = [database.connect(autocommit=False) for _ in range(4)]
    # Each session has keys of its own, so that none waits for another's row.
    savepoints = [0] * len(sessions)
    for step in range(80):
        place = dice.randrange(len(sessions))
        session, base = sessions[place], 1000 * place
        what = dice.random()
        if what < 0.5:
            rows = f"SELECT {base} + g, 'v{step}' FROM generate_series(1, {dice.randint(1, 5)}) g"
            session.execute(f"INSERT INTO t {rows} ON CONFLICT (k) DO UPDATE SET v = excluded.v")
        elif what < 0.6:
            session.execute(f"DELETE FROM t WHERE k BETWEEN {base + 101} AND {base + 105}")
            session.execute(f"UPDATE t SET k = k + 100 WHERE k = {base + dice.randint(1, 5)}")
        elif what < 0.65:
            session.execute(f"INSERT INTO t VALUES ({base + 500 + step}, repeat('large{step}', 1000))")
            session.execute(f"UPDATE t SET k = k + 200 WHERE k = {base + 500 + step}")
        elif what < 0.75:
            session.execute("SAVEPOINT s")
            savepoints[place] += 1
        elif what < 0.85 and savepoints[place]:
            session.execute("ROLLBACK TO s" if dice.random() < 0.6 else "RELEASE s")
            savepoints[place] = 0
        elif what < 0.95:
            session.commit()
            savepoints[place] = 0
        else:
            session.rollback()
            savepoints[place] = 0
    for session in sessions:
        session.commit()
        session.close()


class CuttingProxy(Proxy):
    """Cuts a connection each time the server has sent so many bytes on all of them, in the middle of whatever
    it is.

    Args:
        cuts: bytes before each cut; after the last one connections are left alone.
    """

    def __init__(self, host: str, port: int, cuts: Sequence[int]):
        super().__init__(host, port)
        self._cuts = list(cuts)
        self._sent = 0
        self._counting = threading.Lock()
        self.done = 0

    def _forward(self, giver: socket.socket, taker: socket.socket) -> None:
        with suppress(OSError):  # cut
            from_server = giver.getpeername() == self._to
            while data := giver.recv(65536):
                passed = self._passed(len(data)) if from_server else len(data)
                taker.sendall(data[:passed])
                if passed < len(data):
                    self._cut(giver, taker)
                    return
            taker.shutdown(socket.SHUT_WR)

    def _passed(self, size: int) -> int:
        """How many of these bytes go on."""
        with self._counting:
            if self.done == len(self._cuts) or self._sent + size <= self._cuts[self.done]:
                self._sent += size
                return size
            passed = self._cuts[self.done] - self._sent
            self._sent, self.done = 0, self.done + 1
            return passed

    def _cut(self, *ends: socket.socket) -> None:
        for each in ends:
            with suppress(OSError):  # its other end may be gone
                if self.done % 2:
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                each.shutdown(socket.SHUT_RDWR)
