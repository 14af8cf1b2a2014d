"""The reason why a PostgreSQL server refused a login: by its SQLSTATE, whatever language the server speaks.

libpq keeps the code of a refused login to itself and gives its words only, which are in the server's language
(``lc_messages``, which a login may not set). So where a server has answered, the login is tried once more and
traced: the protocol's messages go to memory, and the code is read from the last error among them. What libpq
itself says (no answer, no TLS, a certificate that doesn't fit) is in English always, as it translates nothing
unless it is asked to.
"""

from __future__ import annotations

import os
import re
import select
import time
from typing import Any

import psycopg
from psycopg import pq
from psycopg.conninfo import make_conninfo

NO_PRIVILEGE = "42501"
"""The SQLSTATE of a right that is missing."""
_NO_ANSWER = (
    "Is the server running",
    "Connection refused",
    "timeout expired",
    "could not translate host name",
    "server closed the connection",
    "could not receive data",
    "No route to host",
    "Network is unreachable",
)
"""Words of libpq where no server has answered: nothing is to be found out by another try."""
OF_THE_CLIENT = ("no password supplied", "certificate", "ssl error", "does not support ssl")
"""Words of libpq, in small letters, where it gives up a login by itself, for good."""
_ERROR = re.compile(rb'ErrorResponse\t.*? C "([0-9A-Z]{5})"')
_AGAIN_S = 5.0
_MAY_PASS = ("08", "40", "53", "55", "57")
"""Classes of what may pass by itself: no connection free, starting up, shutting down."""


def refusal(error: psycopg.Error) -> str:
    """The SQLSTATE of what psycopg raised, for a failed login too; empty where no server has said one."""
    if error.sqlstate is not None or error.pgconn is None or _unanswered(str(error)):
        return error.sqlstate or ""
    parameters = {option.keyword.decode(): option.val.decode() for option in error.pgconn.info if option.val}
    return _tried_again(make_conninfo(**parameters))


def refusal_of(conninfo: str, words: str) -> str:
    """The same for a driver that says words only, and what it connected with."""
    return "" if _unanswered(words) else _tried_again(conninfo)


def for_good(sqlstate: str, words: str = "") -> bool:
    """Tells whether trying again without a change can't help: somebody has to correct something.

    Args:
        sqlstate: what the server said; empty where none has.
        words: the driver's, which count where no server has said anything.
    """
    if sqlstate:
        return not sqlstate.startswith(_MAY_PASS)
    return any(said in words.lower() for said in OF_THE_CLIENT)


def _unanswered(words: str) -> bool:
    return any(said in words for said in _NO_ANSWER)


def _tried_again(conninfo: str) -> str:
    connection: Any = pq.PGconn.connect_start(conninfo.encode())
    trace = os.memfd_create("login")  # never a file: it may hold a password
    try:
        connection.trace(trace)
        _until_refused(connection)
        connection.untrace()
        found = _ERROR.findall(os.pread(trace, 1 << 20, 0))
    except psycopg.Error:  # a libpq that can't trace
        return ""
    finally:
        connection.finish()
        os.close(trace)
    return found[-1].decode() if found else ""


def _until_refused(connection: Any) -> None:
    """Goes on with a login until it has failed, or succeeded this time, or nothing comes any more."""
    until = time.monotonic() + _AGAIN_S
    waits = {pq.PollingStatus.READING: select.POLLIN, pq.PollingStatus.WRITING: select.POLLOUT}
    status = pq.PollingStatus.WRITING  # as libpq wants it: first the connection itself has to be made
    while status in waits and (remaining := until - time.monotonic()) > 0:
        ready = select.poll()  # not select(), which fails where a process has many files open
        ready.register(connection.socket, waits[status])
        ready.poll(remaining * 1000)
        status = connection.connect_poll()
