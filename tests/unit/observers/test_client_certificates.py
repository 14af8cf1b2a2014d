"""Clients of the observer's address with certificates that openssl made just now, and with none."""

from __future__ import annotations

import http.client
import shutil
import ssl
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from migrator.adapters.observers.server import ObserverServer
from migrator.model.observed.listening import Listening
from tests.unit.observers.troubles import WELL

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl")

DAY = "20250101000000Z"
DAY_AFTER = "20250102000000Z"
FAR = "20991231000000Z"


class Authority:
    """An authority of its own folder, by ``openssl ca``: it alone gives certificates any span of time."""

    def __init__(self, folder: Path, name: str):
        self._folder = folder / name
        self._folder.mkdir()
        self.file = self._folder / "ca.pem"
        (self._folder / "index").touch()
        (self._folder / "ca.cnf").write_text(
            f"[ca]\ndefault_ca = d\n[d]\ndatabase = {self._folder}/index\nnew_certs_dir = {self._folder}\n"
            "rand_serial = yes\ndefault_md = sha256\npolicy = p\nunique_subject = no\n[p]\ncommonName = supplied\n"
            "[v]\nsubjectAltName = IP:127.0.0.1\n"
        )
        key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
        self._key = key
        self._openssl("req", "-x509", *key, "-subj", f"/CN={name}", "-keyout", "ca.key", "-out", "ca.pem")

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=self._folder, check=True, capture_output=True)

    def certificate(self, name: str, begins: str, ends: str) -> Path:
        """A certificate and its key in one file."""
        self._openssl(
            "req", *self._key, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"
        )
        self._openssl(
            "ca", "-batch", "-config", "ca.cnf", "-extensions", "v", "-cert", "ca.pem", "-keyfile", "ca.key",
            "-startdate", begins, "-enddate", ends, "-notext", "-in", f"{name}.csr", "-out", f"{name}.crt",
        )  # fmt: skip
        found = self._folder / f"{name}.pem"
        found.write_text(
            (self._folder / f"{name}.crt").read_text() + (self._folder / f"{name}.key").read_text()
        )
        return found


def answered(port: int, authority: Path, shown: Path | None, path: str = "/metrics", token: str = "") -> int:
    """The status of an answer; 0 where TLS let nobody in."""
    context = ssl.create_default_context(cafile=str(authority))
    if shown is not None:
        context.load_cert_chain(shown)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=context)
    with suppress(OSError, http.client.HTTPException):
        connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
        return connection.getresponse().status
    return 0


def test_only_a_valid_certificate_of_the_named_authority_is_let_in(tmp_path: Path) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    server = str(ours.certificate("server", DAY, FAR))
    good, expired = ours.certificate("good", DAY, FAR), ours.certificate("expired", DAY, DAY_AFTER)
    early, foreign = ours.certificate("early", "20980101000000Z", FAR), others.certificate("good", DAY, FAR)
    guard = {"tls_cert": server, "tls_key": server, "tls_client_ca": str(ours.file)}
    with ObserverServer(Listening("127.0.0.1", 0, **guard), lambda: WELL) as observer:
        for path in ("/metrics", "/healthz"):
            found = {
                name: answered(observer.port, ours.file, shown, path)
                for name, shown in (
                    ("good", good),
                    ("none", None),
                    ("expired", expired),
                    ("early", early),
                    ("foreign", foreign),
                )
            }
            assert found == {"good": 200, "none": 0, "expired": 0, "early": 0, "foreign": 0}, path
        assert answered(observer.port, others.file, good) == 0, "a client that trusts others sends nothing"
    with ObserverServer(Listening("127.0.0.1", 0, "may-read", **guard), lambda: WELL) as observer:
        assert answered(observer.port, ours.file, good) == 401, "where both are set both are asked for"
        assert answered(observer.port, ours.file, good, token="may-read") == 200
        assert answered(observer.port, ours.file, None, token="may-read") == 0
        assert answered(observer.port, ours.file, expired, token="may-read") == 0
