"""The address at which a process tells of itself, and who may ask there."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Listening:
    """An address to listen at. The tokens are never shown.

    Attributes:
        host, port: where; the port 0 takes any that is free.
        token: what every request must bring as ``Authorization: Bearer ...``; None: nothing.
        control: the token that every request to do something must bring, in the same way; it lets read as well. None:
            nothing can be asked for there.
        tls_cert, tls_key: PEM files of the server's certificate and its key; empty: no TLS.
        tls_client_ca: PEM file with the authority of clients' certificates, which are asked for then; empty: none.
    """

    host: str
    port: int
    token: str | None = field(default=None, repr=False)
    control: str | None = field(default=None, repr=False)
    tls_cert: str = ""
    tls_key: str = ""
    tls_client_ca: str = ""

    @property
    def url(self) -> str:
        """Returns the address as a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.tls_cert else 'http'}://{host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Tells whether a host is this machine's own loopback by its name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
