"""Connections to MySQL and MariaDB: authorities are read where a certificate is verified, and nowhere else."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from pymysql import connections

from migrator.connections.mysql.connection import Connection
from migrator.connections.mysql.settings import tls_options

CA = str(Path(__file__).parents[2] / "certificates" / "ca.pem")


class Read(Exception):
    """The system's authorities are read."""


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    def read(*_: object) -> None:
        raise Read

    monkeypatch.setattr(ssl.SSLContext, "load_default_certs", read)


@pytest.mark.usefixtures("unread")
@pytest.mark.parametrize("tls", ["prefer", "require"])
def test_where_nothing_is_verified_nothing_is_read(tls: str) -> None:
    made = [Connection(defer_connect=True, **tls_options(tls, None)) for _ in range(2)]
    for one in made:
        assert (one.ctx.verify_mode, one.ctx.check_hostname) == (ssl.CERT_NONE, False)
        assert (one.ssl, one._ssl_required) == (True, tls == "require")
    with pytest.raises(Read):  # the control: the driver by itself
        connections.Connection(defer_connect=True, **tls_options(tls, None))


@pytest.mark.parametrize("tls", ["verify-ca", "verify-full"])
def test_a_certificate_that_is_to_be_verified_is(tls: str) -> None:
    context = Connection(defer_connect=True, **tls_options(tls, CA)).ctx
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, tls == "verify-full")
    assert context.cert_store_stats()["x509_ca"] == 1
