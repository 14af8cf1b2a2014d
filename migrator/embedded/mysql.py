"""A throw-away MySQL server from Debian's packages (``migrator.embedded.debian``), which has it in `sid` only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from migrator.embedded.binlog_server import BinlogServer, own_temporary_files
from migrator.embedded.debian import DebianServer, Former, linked
from migrator.embedded.process import (
    ServerProcess,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)
from migrator.errors import MigratorError

_PROGRAM = "usr/sbin/mysqld"
_NEWEST = DebianServer("MySQL", "mysql", "mysql-server-core", ("sid",), _PROGRAM)
_FORMER = {
    "8.0": DebianServer(
        "MySQL 8.0",
        "mysql-8.0",
        "mysql-server-core-8.0",
        ("sid", "trixie"),  # its libraries will leave sid one after the other
        _PROGRAM,
        Former(
            "pool/main/m/mysql-8.0/mysql-server-core-8.0_8.0.45-1_amd64.deb",
            "0b1a93d4e598332f1f0249a02ae83e218706bf15",
            "0d6227408f63c01dadce99c1639f2427cc88495a0b3ed3292a85d9c2aa64e1fd",
        ),
    ),
}
_DEFAULT_SETTINGS = {
    "server-id": "97",
    "log-bin": "binlog",
    "binlog-row-image": "FULL",
    "binlog-row-metadata": "FULL",
    "gtid-mode": "ON",
    "enforce-gtid-consistency": "ON",
    "default-time-zone": "+00:00",
    "mysqlx": "OFF",
    "innodb-buffer-pool-size": "64M",
    "performance-schema": "OFF",
}


class EmbeddedMySQL(BinlogServer):
    """A MySQL server under ``directory`` with GTIDs and a full row-based binary log; a context manager.

    Args:
        directory: as in ``BinlogServer``.
        settings: likewise.
        version: 8.0, or the newest that Debian has.

    Raises ``PackagesUnavailable`` if it can't be had here, MigratorError if it does not start.
    """

    title = "the embedded MySQL"
    defaults = _DEFAULT_SETTINGS

    def __init__(
        self, directory: Path, *, settings: Mapping[str, str] | None = None, version: str | None = None
    ):
        super().__init__(directory, settings=settings)
        self._packages = mysql_packages(version)

    def _create(self) -> ServerProcess:
        program = _program(self._packages.install())
        user = unprivileged_user("nobody")
        root = make_server_directory(self._directory, user)
        data = root / "data"
        common = [*program, f"--datadir={data}", "--secure-file-priv=NULL"]
        if not (data / "mysql.ibd").exists():
            initialise = [*common, own_temporary_files(root, user), "--initialize-insecure"]
            run_as(initialise, user, directory=root, environment=plain_environment())
        return self._serving(common, root, "mysql", user)


def mysql_packages(version: str | None = None) -> DebianServer:
    """Returns the packages of a version, or of the newest. Raises MigratorError for a version that isn't offered."""
    if version is None:
        return _NEWEST
    if version not in _FORMER:
        raise MigratorError(
            f"there is no embedded MySQL {version}", remedy=f"choose one of {', '.join(_FORMER)}"
        )
    return _FORMER[version]


def _program(root: Path) -> list[str]:
    """The command that runs the unpacked ``mysqld`` with the unpacked libraries."""
    share = root / "usr/share/mysql"
    return [
        *linked(root),
        str(root / _PROGRAM),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    ]
