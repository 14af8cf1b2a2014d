"""A throw-away MySQL server from Debian's packages (``migrator.embedded.debian``), which has it in `sid` only."""

from __future__ import annotations

from pathlib import Path

from migrator.embedded.binlog_server import BinlogServer, own_temporary_files
from migrator.embedded.debian import DebianServer, linked
from migrator.embedded.process import (
    ServerProcess,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)

DEBIAN_MYSQL = DebianServer("MySQL", "mysql", "mysql-server-core", "sid", "usr/sbin/mysqld")
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

    Raises ``PackagesUnavailable`` if it can't be had here, MigratorError if it does not start.
    """

    title = "the embedded MySQL"
    defaults = _DEFAULT_SETTINGS

    def _create(self) -> ServerProcess:
        program = _program(DEBIAN_MYSQL.install())
        user = unprivileged_user("nobody")
        root = make_server_directory(self._directory, user)
        data = root / "data"
        common = [*program, f"--datadir={data}", "--secure-file-priv=NULL"]
        if not (data / "mysql.ibd").exists():
            initialise = [*common, own_temporary_files(root, user), "--initialize-insecure"]
            run_as(initialise, user, directory=root, environment=plain_environment())
        return self._serving(common, root, "mysql", user)


def _program(root: Path) -> list[str]:
    """The command that runs the unpacked ``mysqld`` with the unpacked libraries."""
    share = root / "usr/share/mysql"
    return [
        *linked(root),
        str(root / DEBIAN_MYSQL.program),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    ]
