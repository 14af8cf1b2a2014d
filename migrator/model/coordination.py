"""The settings of the ZooKeeper ensemble in which several machines agree on who leads."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Coordination:
    """A ZooKeeper ensemble, and how to log in. Passwords are never shown.

    Attributes:
        hosts: ``host:port,host:port,...``, every member of the ensemble.
        path: below it each migration has a node of its own name.
        session_s: session timeout that is asked for; the ensemble may grant less.
        auth: ``none``, ``digest``, or ``sasl`` (DIGEST-MD5). Nodes are open to everybody with ``none``, else
            to this
            user only.
        tls: ``disable``, ``verify-ca`` or ``verify-full``; certificates are always verified.
        tls_ca: file with the certificate authority; the system's authorities if empty.
        tls_cert, tls_key: files of the client's certificate and its key; both or none.
        shared_event_log: whether every machine's state folder is one and the same.
    """

    hosts: str
    path: str = "/migrator"
    session_s: float = 10.0
    auth: str = "none"
    user: str = ""
    password: str | None = field(default=None, repr=False)
    tls: str = "disable"
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_key_password: str | None = field(default=None, repr=False)
    shared_event_log: bool = False

    def address(self, migration: str) -> str:
        """Returns the address of a migration's nodes, for messages."""
        return f"zookeeper://{self.hosts}{self.root(migration)}"

    def root(self, migration: str) -> str:
        """The node of a migration."""
        return f"{self.path.rstrip('/')}/{migration}"
