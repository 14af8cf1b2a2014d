"""A throw-away MySQL server: Debian's packages, unpacked into a cache folder of the user and run from there.

No root rights and no change to the machine's own packages are needed: apt solves the dependencies in a package
database of its own, all libraries come along, and the programs are started through the unpacked dynamic linker.
Debian has MySQL in `sid` only, whose versions move; what was unpacked once stays in the cache.
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator.embedded.binlog_server import BinlogServer, own_temporary_files
from migrator.embedded.process import (
    ServerProcess,
    make_server_directory,
    plain_environment,
    run_as,
    unprivileged_user,
)
from migrator.errors import MigratorError

_SUITE = "sid"
_PACKAGE = "mysql-server-core"
_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_MIRROR = "http://deb.debian.org/debian"
_TIMEOUT_S = 600
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
# what only the packages' own installation scripts need
_NOT_NEEDED = re.compile(
    r"perl|perl-base|perl-modules.*|libperl.*|libgdbm.*|libdb5.*|libc-gconv.*|gcc-.*-base"
)


class MySQLUnavailable(MigratorError):
    """This machine can't have the packages (no apt, no mirror, no candidate): nothing is known about the server."""


def cache_folder() -> Path:
    """Where the unpacked server is kept: ``MIGRATOR_MYSQL`` or ``~/.cache/migrator/mysql-<architecture>``.

    Root uses a folder below /var/cache: its home can't be entered by the user that the server runs as.
    """
    named = os.environ.get("MIGRATOR_MYSQL")
    if named:
        return Path(named)
    home = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
    return home / "migrator" / f"mysql-{platform.machine()}"


def install_mysql() -> Path:
    """The folder of an unpacked MySQL (its programs lie below ``usr``), downloaded if it isn't there yet.

    Raises ``MySQLUnavailable`` when the packages can't be had here, ``MigratorError`` when they are there and can't
    be unpacked.
    """
    folder = cache_folder()
    root = folder / "root"
    with _lock(folder):
        if not (root / "usr/sbin/mysqld").exists():
            with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as scratch:
                unpacked = _download(Path(scratch))
                shutil.rmtree(root, ignore_errors=True)
                unpacked.rename(root)  # complete or not there
    return root


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process downloads, the others wait for it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(scratch: Path) -> Path:
    for tool in ("apt-get", "apt-cache", "dpkg-deb"):
        if shutil.which(tool, path=plain_environment()["PATH"]) is None:
            raise _unavailable(f"this machine has no {tool}")
    if not _KEYRING.exists():
        raise _unavailable(f"{_KEYRING} is missing (package debian-archive-keyring)")
    for name in ("lists/partial", "cache/archives/partial", "debs", "root"):
        (scratch / name).mkdir(parents=True)
    (scratch / "status").touch()
    (scratch / "sources.list").write_text(f"deb [signed-by={_KEYRING}] {_mirror()} {_SUITE} main\n")
    (scratch / "apt.conf").write_text(_apt_settings(scratch))
    done = _apt(scratch, "-qq", "update")
    if done.returncode != 0:
        raise _unavailable(f"the package index of {_SUITE} can't be read: {_tail(done.stdout)}")
    solved = _apt(scratch, "--simulate", "install", _PACKAGE)
    if solved.returncode != 0:  # sid moves: at times a package is missing or can't be installed
        raise _unavailable(f"{_PACKAGE} can't be installed from {_SUITE} now: {_tail(solved.stdout)}")
    names = re.findall(r"^Inst (\S+)", solved.stdout, re.MULTILINE)
    wanted = [name for name in names if not _NOT_NEEDED.fullmatch(name)]
    fetched = _apt(scratch, "-qq", "download", *wanted, directory=scratch / "debs")
    if fetched.returncode != 0:
        raise _unavailable(f"the packages can't be downloaded: {_tail(fetched.stdout)}")
    for package in sorted((scratch / "debs").glob("*.deb")):
        run_as(
            ["dpkg-deb", "-x", str(package), str(scratch / "root")],
            None,
            directory=scratch,
            environment=plain_environment(),
        )
    return scratch / "root"


def _mirror() -> str:
    """The mirror that this machine uses for Debian itself, if it is one."""
    done = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI)"], capture_output=True, text=True, check=False
    )
    found = [line for line in done.stdout.split() if re.search(r"/debian/?$", line)]
    return found[0] if found else _MIRROR


def _apt_settings(scratch: Path) -> str:
    folders = {
        "Dir::Etc::sourcelist": scratch / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::Etc::preferences": "/dev/null",
        "Dir::Etc::preferencesparts": "/dev/null",
        "Dir::State": scratch,
        "Dir::State::lists": scratch / "lists",
        "Dir::State::status": scratch / "status",
        "Dir::Cache": scratch / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "",
        "Acquire::Languages": "none",
    }
    return "".join(f'{name} "{value}";\n' for name, value in folders.items())


def _apt(scratch: Path, *arguments: str, directory: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = plain_environment() | {"APT_CONFIG": str(scratch / "apt.conf")}
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    try:
        return subprocess.run(
            ["apt-get", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment | proxies,
            cwd=directory or scratch,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unavailable(f"apt-get {arguments[-1]} did not end in {_TIMEOUT_S} s") from None


def _tail(output: str) -> str:
    return " ".join(output.splitlines()[-3:])


def _unavailable(cause: str) -> MySQLUnavailable:
    return MySQLUnavailable(
        "a MySQL server can't be had on this machine",
        where=str(cache_folder()),
        cause=cause,
        remedy="use a Debian with access to a mirror, or MIGRATOR_TEST_SERVERS=docker for the tests",
    )


class EmbeddedMySQL(BinlogServer):
    """A MySQL server under ``directory`` with GTIDs and a full row-based binary log; a context manager.

    Raises ``MySQLUnavailable`` if it can't be had here, MigratorError if it does not start.
    """

    title = "the embedded MySQL"
    defaults = _DEFAULT_SETTINGS

    def _create(self) -> ServerProcess:
        program = _program(install_mysql())
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
    linkers = [*root.glob("usr/lib64/ld-linux-*.so.*"), *root.glob("usr/lib/*/ld-linux-*.so.*")]
    linkers += root.glob("usr/lib/ld-linux-*.so.*")
    if not linkers:
        raise MigratorError(
            "the unpacked MySQL has no dynamic linker", where=str(root), remedy="delete that folder"
        )
    libraries = sorted(path for path in (root / "usr/lib").glob("*-linux-gnu"))
    server = root / "usr/sbin/mysqld"
    share = root / "usr/share/mysql"
    return [
        str(linkers[0]),
        "--library-path",
        ":".join(map(str, libraries)),
        str(server),
        "--no-defaults",
        f"--basedir={root / 'usr'}",
        f"--lc-messages-dir={share}",
        f"--character-sets-dir={share / 'charsets'}",
        f"--plugin-dir={root / 'usr/lib/mysql/plugin'}",
    ]
