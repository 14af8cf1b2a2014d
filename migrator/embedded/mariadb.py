"""A throw-away MariaDB server: the machine's own binaries, its package, or another version unpacked."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from migrator.embedded.binlog_server import BinlogServer, own_temporary_files
from migrator.embedded.debian import DebianServer
from migrator.embedded.process import (
    ServerProcess,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)
from migrator.errors import MigratorError

_DEFAULT_SETTINGS = {
    "server-id": "10",
    "log-bin": "binlog",
    "binlog-format": "ROW",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "character-set-server": "utf8mb4",
    "default-time-zone": "+00:00",
}
_PACKAGE = "mariadb-server"
_UNPACKED = {
    "11.8": DebianServer("MariaDB 11.8", "mariadb-11.8", _PACKAGE, ("trixie",), "usr/sbin/mariadbd"),
}
# A package's service would start as soon as it is unpacked. policy-rc.d is Debian's switch for that
# (invoke-rc.d(8)); one that an administrator put there is left alone.
_INSTALL_SCRIPT = f"""
set -e
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\\nexit 101\\n' >"$policy"
    chmod 755 "$policy"
fi
export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
apt-get -q -o DPkg::Lock::Timeout=300 update
apt-get -q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends {_PACKAGE}
"""


def find_mariadb() -> tuple[Path, Path] | None:
    """The paths of ``mariadbd`` and ``mariadb-install-db``, or None if one of them is missing.

    The system's sbin folders are searched too: an ordinary user's PATH often lacks them.
    """
    path = plain_environment()["PATH"]
    server = shutil.which("mariadbd", path=path)
    installer = shutil.which("mariadb-install-db", path=path)
    return (Path(server), Path(installer)) if server and installer else None


def install_mariadb() -> None:
    """Install the ``mariadb-server`` package with apt, as root or through sudo, without starting its service.

    Does nothing if the binaries are there. Raises MigratorError with the command to run when it isn't
    possible.
    """
    if find_mariadb() is not None:
        return
    remedy = f"install it yourself: sudo apt-get install --no-install-recommends {_PACKAGE}"
    if shutil.which("apt-get") is None:
        raise MigratorError(
            "MariaDB is missing and this machine has no apt-get",
            remedy="install MariaDB 10.11 or later so that `mariadbd` is on the PATH",
        )
    command = ["sh", "-c", _INSTALL_SCRIPT]
    if os.geteuid() != 0:
        if shutil.which("sudo") is None:
            raise MigratorError("MariaDB is missing, and installing it needs root rights", remedy=remedy)
        # Only a person at a terminal can answer sudo's question; anywhere else it would hang.
        command = ["sudo", *([] if sys.stdin.isatty() else ["-n"]), *command]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0 or find_mariadb() is None:
        raise MigratorError(
            "MariaDB is missing and can't be installed",
            where=f"package {_PACKAGE}",
            cause="\n".join(done.stdout.splitlines()[-5:]),
            remedy=remedy,
        )


class EmbeddedMariaDB(BinlogServer):
    """A MariaDB server under ``directory`` with a full row-based binary log; a context manager.

    Args:
        directory: as in ``BinlogServer``.
        settings: likewise.
        version: 11.8 is unpacked from Debian's packages; none is whatever the machine has.

    Raises MigratorError if MariaDB is missing and can't be installed, or does not start,
    ``PackagesUnavailable`` if a version can't be had here.
    """

    title = "the embedded MariaDB"
    defaults = _DEFAULT_SETTINGS

    def __init__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, version: str | None = None
    ):
        super().__init__(directory, settings=settings)
        self._version = version

    def _create(self) -> ServerProcess:
        server, installer = mariadb_programs(self._version)
        user = unprivileged_user("mysql")
        root = make_server_directory(self._directory, user)
        data = root / "data"
        if not (data / "mysql").exists():
            _initialise(installer, data, user, own_temporary_files(root, user))
        # The defaults are those of the machine's own installation.
        files = [] if self._version is None else _files(server.parents[1])
        program = [str(server), "--no-defaults", *files, f"--datadir={data}"]
        return self._serving(program, root, "mariadb", user)


def mariadb_programs(version: str | None) -> tuple[Path, Path]:
    """``mariadbd`` and ``mariadb-install-db``."""
    if version is None:
        install_mariadb()
        found = find_mariadb()
        if found is None:
            raise MigratorError("MariaDB was installed but can't be found")
        return found
    if version not in _UNPACKED:
        raise MigratorError(
            f"there is no embedded MariaDB {version}", remedy=f"choose one of {', '.join(_UNPACKED)}"
        )
    helpers = ("usr/bin/my_print_defaults", "usr/bin/resolveip")
    root = _UNPACKED[version].startable(_UNPACKED[version].program, *helpers)
    return root / _UNPACKED[version].program, root / "usr/bin/mariadb-install-db"


def _files(base: Path) -> list[str]:
    # Debian's packages of 11.8 call it otherwise; without its files a server knows no language but its own.
    share = next(
        (one for one in (base / "share/mariadb", base / "share/mysql") if one.is_dir()), base / "share"
    )
    return [
        f"--basedir={base}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={base / 'lib/mysql/plugin'}",
    ]


def _initialise(installer: Path, data: Path, user: str | None, temporary_files: str) -> None:
    options = [
        f"--datadir={data}",
        temporary_files,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
        "--skip-name-resolve",
    ]
    command = [str(installer), "--no-defaults", f"--basedir={installer.parents[1]}", *options]
    run_as(command, user, directory=data.parent, environment=plain_environment())
