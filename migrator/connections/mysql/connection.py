"""PyMySQL's connection, made in a tenth of the processor time where nothing is verified."""

from __future__ import annotations

import ssl
from functools import cache
from typing import Any

from pymysql import connections


class Connection(connections.Connection):  # type: ignore[misc]
    """A connection that doesn't load the system's list of authorities where no certificate is verified.

    By default PyMySQL encrypts if the server can, and believes any certificate. Yet it reads that list for every
    connection: 20 ms, several times what the rest of a connection to a server nearby takes.
    """

    def _create_ssl_ctx(self, options: Any) -> ssl.SSLContext:
        if options == {} or options == {"verify_mode": False}:
            return _unverified()
        found: ssl.SSLContext = super()._create_ssl_ctx(options)
        return found


@cache
def _unverified() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
