"""The section ``[coordination]`` of ``migration.toml``."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path

from migrator.config.secret import Get, Problem, Secrets, settings_of
from migrator.config.setting import Setting, choice, needed
from migrator.model.coordination import Coordination

_FILE = "PEM file"
SETTINGS: Mapping[str, Setting] = {
    "hosts": needed(
        "a ZooKeeper ensemble, `host:port,host:port,...`. Without the section leadership and requests are files of"
        " the state folder. See [Several machines](how-to/several-machines.md)"
    ),
    "path": Setting(str, "each migration has a node of its name below it", "/migrator"),
    "session_s": Setting(
        float,
        "session timeout, 1 to 300 seconds. A takeover begins after it; the ensemble may grant less",
        10.0,
    ),
    "auth": choice(
        "`digest` or `sasl` (DIGEST-MD5; `pip install 'dbmigrator[sasl]'`): nodes are open to this login only."
        " `none`: to everybody who reaches the ensemble",
        "none",
        "digest",
        "sasl",
    ),
    "user": Setting(str, "the login"),
    **settings_of("password", "where its password is"),
    "tls": choice(
        "whether the connection is encrypted, and who is believed", "disable", "verify-ca", "verify-full"
    ),
    "tls_ca": Setting(str, f"{_FILE}: the certificate authority"),
    "tls_cert": Setting(str, f"{_FILE}: the client's certificate"),
    "tls_key": Setting(str, f"{_FILE}: the client's key"),
    **settings_of("tls_key_password", "where the key's password is"),
    "shared_event_log": Setting(bool, "whether all machines have one and the same state folder", False),
}
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9._-]*):(\d{1,5})")
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LEAST_SESSION_S, _MOST_SESSION_S = 1, 300


def read(root: Path, get: Get, problem: Problem, environment: Mapping[str, str]) -> Coordination:
    """The section's settings; what is wrong with them goes to ``problem``. Relative paths begin at ``root``."""
    reader, secrets = _Section(root, get, problem), Secrets(root, get, problem, environment)
    auth = reader.choice("auth")
    password, user = secrets.read("password"), str(get("user"))
    _check_login(auth, user, password, problem)
    tls = reader.choice("tls")
    files = {name: reader.file(name, tls) for name in ("tls_ca", "tls_cert", "tls_key")}
    if bool(files["tls_cert"]) != bool(files["tls_key"]):
        missing = "tls_key" if files["tls_cert"] else "tls_cert"
        problem(missing, "certificate and key of a client go together: name both files, or neither")
    session_s = float(get("session_s"))
    if not _LEAST_SESSION_S <= session_s <= _MOST_SESSION_S:
        problem("session_s", f"{session_s:g} is not within {_LEAST_SESSION_S} and {_MOST_SESSION_S} seconds")
    return Coordination(
        hosts=reader.hosts(),
        path=reader.path(),
        session_s=session_s,
        auth=auth,
        user=user,
        password=password,
        tls=tls,
        **files,
        tls_key_password=secrets.read("tls_key_password"),
        shared_event_log=get("shared_event_log"),
    )


def _check_login(auth: str, user: str, password: str | None, problem: Problem) -> None:
    if auth == "none":
        if user or password is not None:
            problem("auth", 'a login is given, and auth = "none" would not use it: set digest or sasl')
        return
    if not user:
        problem("user", f'auth = "{auth}" needs it')
    if ":" in user:
        problem("user", f"{user!r}: a user's name has no colon in ZooKeeper")
    if not password:
        problem("password_env", f'auth = "{auth}" needs it, or password_file, or password_keyring')
    if auth == "sasl" and importlib.util.find_spec("puresasl") is None:
        problem("auth", "the package pure-sasl is not installed: pip install 'dbmigrator[sasl]'")


class _Section:
    def __init__(self, root: Path, get: Get, problem: Problem):
        self._root = root
        self._get = get
        self._problem = problem

    def hosts(self) -> str:
        hosts = str(self._get("hosts"))
        if not hosts:
            self._problem("hosts", "[coordination] needs it: host:port,host:port,... of every member")
        members = [member.strip() for member in hosts.split(",")]
        for member in members if hosts else ():
            found = _HOST.fullmatch(member)
            if found is None or not 0 < int(found[2]) < 65536:
                self._problem("hosts", f"{member!r} is not host:port (a path goes into the setting path)")
        return ",".join(members)

    def path(self) -> str:
        path = str(self._get("path"))
        parts = path.split("/")
        if parts[0] or not parts[1:] or not all(_PART.fullmatch(part) for part in parts[1:]):
            self._problem(
                "path", f"{path!r} is not /name or /name/name, of letters, digits, dots, dashes, underscores"
            )
        return path

    def choice(self, name: str) -> str:
        value, allowed = str(self._get(name)), SETTINGS[name].choices
        if value not in allowed:
            self._problem(name, f"{value!r} is none of {', '.join(allowed)}")
        return value

    def file(self, name: str, tls: str) -> str:
        file = str(self._get(name))
        if not file:
            return ""
        if tls == "disable":
            self._problem(name, 'tls = "disable" would not use it: set verify-full, or leave it out')
        path = self._root / file
        if not path.is_file() or not os.access(path, os.R_OK):
            self._problem(name, f"{path} is no file that can be read; correct it, or its rights")
        return str(path)
