"""Passwords of ``migration.toml``: the file says where they are, and never what they are.

For a password ``<name>`` a section takes one of ``<name>_env`` (an environment variable), ``<name>_file`` (a
file, its last line end cut off) and ``<name>_keyring`` (``service/login`` of the machine's keyring, by the
package keyring). No message repeats what stands in one of these settings unless it has the form of such a name:
somebody may have put the password itself there.
"""

from __future__ import annotations

import importlib
import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.config.setting import Setting

_PLACES = {
    "env": "name of an environment variable",
    "file": "path of a file",
    "keyring": "`service/login` of the machine's keyring",
}
WAYS = tuple(_PLACES)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_REFERENCE = re.compile(r"(?P<service>.+)/(?P<login>[^/]+)")
_IS_SECRET = re.compile(r"(.*_)?(password|passwd|pwd|passphrase|secret|token)(_env|_file|_keyring)?")

Get = Callable[[str], Any]
"""A setting's value, or the default where it is missing or of the wrong type (a problem by then)."""
Problem = Callable[[str, str], None]
"""Told the setting and what is wrong with it, and the way out."""


def settings_of(name: str, meaning: str) -> dict[str, Setting]:
    """The settings by which a section says where its password ``name`` is: one of them, or none."""
    return {f"{name}_{way}": Setting(str, f"{meaning}: {_PLACES[way]}") for way in WAYS}


def concerns_secret(setting: str) -> bool:
    """Tells whether what is given for a setting must not be repeated in messages."""
    return _IS_SECRET.fullmatch(setting) is not None


def literal_problem(setting: str, known: Mapping[str, Setting]) -> str:
    """Describes a password that stands in the file itself; empty for any other unknown setting."""
    if not concerns_secret(setting) or setting.endswith(tuple(f"_{way}" for way in WAYS)):
        return ""
    names = [name for name in known if concerns_secret(name)]
    remedy = f"take it out, change the password, and name its place with one of {', '.join(names)}"
    return f"a password must not stand in this file: {remedy}" if names else ""


@dataclass(frozen=True, slots=True)
class Secrets:
    """Reads the passwords of one section. Relative paths begin at ``root``; what is wrong goes to ``problem``."""

    root: Path
    get: Get
    problem: Problem
    environment: Mapping[str, str]

    def read(self, name: str) -> str | None:
        """The password ``name``; None where the section doesn't say where it is, or it isn't there (told)."""
        places = {way: str(self.get(f"{name}_{way}")) for way in WAYS}
        chosen = [way for way in WAYS if places[way]]
        if len(chosen) > 1:
            first, second = chosen[:2]
            self.problem(f"{name}_{second}", f"{name}_{first} is set as well: leave one of them out")
        if not chosen:
            return None
        read = {"env": self._variable, "file": self._file, "keyring": self._keyring}[chosen[0]]
        return read(f"{name}_{chosen[0]}", places[chosen[0]])

    def _variable(self, setting: str, variable: str) -> str | None:
        if not _VARIABLE.fullmatch(variable):
            self.problem(setting, "it must be the name of an environment variable, not the password itself")
        elif variable not in self.environment:
            self.problem(setting, f"the environment has no variable {variable}; set it")
        elif not self.environment[variable]:
            self.problem(
                setting, f"the variable {variable} is there and empty; set it, or leave {setting} out"
            )
        return self.environment.get(variable)

    def _file(self, setting: str, file: str) -> str | None:
        try:
            return (self.root / file).read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            self.problem(setting, f"the file can't be read ({_why(error)}); correct its path, or its rights")
            return None

    def _keyring(self, setting: str, reference: str) -> str | None:
        found = _REFERENCE.fullmatch(reference)
        if found is None:
            self.problem(setting, "it must be service/login, as in `keyring set service login`")
            return None
        try:
            keyring = importlib.import_module("keyring")
        except ImportError:
            self.problem(setting, "the package keyring is not installed: pip install 'dbmigrator[keyring]'")
            return None
        try:
            password = keyring.get_password(found["service"], found["login"])
        except keyring.errors.KeyringError as error:
            # NoKeyringError among them. Backends word these themselves; the type's name tells no secret.
            remedy = "see `keyring diagnose`, or use another place for the password"
            self.problem(setting, f"the machine's keyring can't be read ({type(error).__name__}): {remedy}")
            return None
        if password is None:
            remedy = f"keyring set {shlex.quote(found['service'])} {shlex.quote(found['login'])}"
            self.problem(setting, f"the keyring has no such password; store it: {remedy}")
            return None
        return str(password)


def _why(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or "it is no text")
