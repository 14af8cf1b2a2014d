"""Server programs from Debian's packages, unpacked into a cache folder of the user and run from there.

No root rights and no change to the machine's own packages are needed: apt solves the dependencies in a package
database of its own, all libraries come along, and the programs are started through the unpacked dynamic
linker. What was unpacked once stays in the cache, also where a suite's versions move (`sid`). A version that
a suite has left is fetched by its file's name and hash (``Former``).
"""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from migrator.embedded.process import plain_environment, run_as
from migrator.errors import MigratorError

_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_MIRROR = "http://deb.debian.org/debian"
_ARCHIVE = "https://snapshot.debian.org/file"
_APT_HELPER = "/usr/lib/apt/apt-helper"
_TIMEOUT_S = 600
# what only the packages' own installation scripts need
_NOT_NEEDED = re.compile(
    r"perl|perl-base|perl-modules.*|libperl.*|lib.*-perl|libgdbm.*|libdb5.*|libc-gconv.*|gcc-.*-base"
)
_SCRIPT = b"#!"


class PackagesUnavailable(MigratorError):
    """The error that this machine can't have the packages (no apt, mirror, candidate): it says nothing about the
    server."""


@dataclass(frozen=True, slots=True)
class Former:
    """The file of a package that no suite lists any more; Debian's archive of snapshots keeps it for good.

    Attributes:
        path: below the mirror's root, for mirrors that still have it.
        sha1: its name in that archive.
        sha256: what it must have; apt's own signatures say nothing about it.
    """

    path: str
    sha1: str
    sha256: str


@dataclass(frozen=True, slots=True)
class DebianServer:
    """A server as Debian packages it.

    Attributes:
        title: what it is, for messages.
        name: of its cache folder.
        package: holds ``program``, and depends on all that it needs.
        suites: of Debian, the newest first: what the package needs may come from a later one.
        program: path of the server's program, without the leading slash.
        former: the package's file where the suites have a newer version only.
    """

    title: str
    name: str
    package: str
    suites: tuple[str, ...]
    program: str
    former: Former | None = None

    def cache_folder(self) -> Path:
        """Returns the server's folder: from the variable ``MIGRATOR_`` and its name, such as ``MIGRATOR_MYSQL``, or
        in ``~/.cache/migrator``.

        Root uses a folder below /var/cache: its home can't be entered by the user that the server runs as.
        """
        named = os.environ.get("MIGRATOR_" + re.sub(r"\W", "_", self.name).upper())
        if named:
            return Path(named)
        home = Path("/var/cache") if os.geteuid() == 0 else Path.home() / ".cache"
        return home / "migrator" / f"{self.name}-{platform.machine()}"

    def install(self) -> Path:
        """The folder that stands for ``/``, downloaded if it isn't there yet.

        Raises ``PackagesUnavailable`` when the packages can't be had here, ``MigratorError`` when they are
        there and can't be unpacked.
        """
        folder = self.cache_folder()
        root = folder / "root"
        with _lock(folder):
            if not (root / self.program).exists():
                with tempfile.TemporaryDirectory(prefix="download-", dir=folder) as scratch:
                    unpacked = self._download(Path(scratch))
                    shutil.rmtree(root, ignore_errors=True)
                    unpacked.rename(root)  # complete or not there
        return root

    def startable(self, *programs: str) -> Path:
        """The folder that stands for ``/``, with these programs as scripts that call them through the linker.

        For those that other programs start by their path. Raises as ``install`` does.
        """
        root = self.install()
        with _lock(self.cache_folder()):
            for program in programs:
                _wrap(root, root / program)
        return root

    def _download(self, scratch: Path) -> Path:
        for tool in ("apt-get", "apt-cache", "dpkg-deb"):
            if shutil.which(tool, path=plain_environment()["PATH"]) is None:
                raise self.unavailable(f"this machine has no {tool}")
        if not _KEYRING.exists():
            raise self.unavailable(f"{_KEYRING} is missing (package debian-archive-keyring)")
        for name in ("lists/partial", "cache/archives/partial", "debs", "root"):
            (scratch / name).mkdir(parents=True)
        (scratch / "status").touch()
        (scratch / "sources.list").write_text(
            "".join(f"deb [signed-by={_KEYRING}] {_mirror()} {suite} main\n" for suite in self.suites)
        )
        (scratch / "apt.conf").write_text(_apt_settings(scratch))
        suites = ", ".join(self.suites)
        done = self._apt(scratch, "-qq", "update")
        if done.returncode != 0:
            raise self.unavailable(f"the package index of {suites} can't be read: {_tail(done.stdout)}")
        package = self.package if self.former is None else str(self._fetch(self.former, scratch))
        solved = self._apt(scratch, "--simulate", "install", package)
        if solved.returncode != 0:  # sid moves: at times a package is missing or can't be installed
            raise self.unavailable(
                f"{self.package} can't be installed from {suites} now: {_tail(solved.stdout)}"
            )
        names = re.findall(r"^Inst (\S+) \((?!.* local-deb )", solved.stdout, re.MULTILINE)
        wanted = [name for name in names if not _NOT_NEEDED.fullmatch(name)]
        fetched = self._apt(scratch, "-qq", "download", *wanted, directory=scratch / "debs")
        if fetched.returncode != 0:
            raise self.unavailable(f"the packages can't be downloaded: {_tail(fetched.stdout)}")
        for file in sorted((scratch / "debs").glob("*.deb")):
            run_as(
                ["dpkg-deb", "-x", str(file), str(scratch / "root")],
                None,
                directory=scratch,
                environment=plain_environment(),
            )
        return scratch / "root"

    def _fetch(self, former: Former, scratch: Path) -> Path:
        file = scratch / "debs" / Path(former.path).name
        causes = []
        for address in (f"{_mirror().rstrip('/')}/{former.path}", f"{_ARCHIVE}/{former.sha1}"):
            arguments = ("-q", "download-file", address, str(file), f"SHA256:{former.sha256}")
            done = self._apt(scratch, *arguments, program=_APT_HELPER)
            if done.returncode == 0:
                return file
            causes.append(f"{address}: {_errors(done.stdout)}")
        raise self.unavailable("; ".join(causes))

    def _apt(
        self, scratch: Path, *arguments: str, directory: Path | None = None, program: str = "apt-get"
    ) -> subprocess.CompletedProcess[str]:
        environment = plain_environment() | {"APT_CONFIG": str(scratch / "apt.conf")}
        proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
        try:
            return subprocess.run(
                [program, *arguments],
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
            raise self.unavailable(f"{program} {' '.join(arguments)} did not end in {_TIMEOUT_S} s") from None

    def unavailable(self, cause: str) -> PackagesUnavailable:
        """The error that says why it can't be had."""
        return PackagesUnavailable(
            f"a {self.title} server can't be had on this machine",
            where=str(self.cache_folder()),
            cause=cause,
            remedy="use a Debian with access to a mirror, or MIGRATOR_TEST_SERVERS=docker for the tests",
        )


def linked(root: Path) -> list[str]:
    """The command that runs an unpacked program, whose path is to follow, with the unpacked libraries."""
    folders = ("usr/lib64", "usr/lib/*", "usr/lib", "lib64", "lib/*")
    linkers = [path for folder in folders for path in root.glob(f"{folder}/ld-linux-*.so.*") if path.exists()]
    if not linkers:
        raise MigratorError(
            "what was unpacked has no dynamic linker", where=str(root), remedy="delete that folder"
        )
    libraries = sorted([*root.glob("usr/lib/*-linux-gnu"), *root.glob("lib/*-linux-gnu")])
    return [str(linkers[0]), "--library-path", ":".join(map(str, libraries))]


def _wrap(root: Path, program: Path) -> None:
    """The program under another name, and a script in its place; whenever this ends, one of both is there."""
    with program.open("rb") as file:
        if file.read(len(_SCRIPT)) == _SCRIPT:
            return
    moved, script = (program.with_name(program.name + end) for end in (".elf", ".new"))
    moved.unlink(missing_ok=True)
    moved.hardlink_to(program)
    # A server finds its other files beside the name that it was called by.
    words = shlex.join([*linked(root), "--argv0"])
    script.write_bytes(_SCRIPT + f'/bin/sh\nexec {words} "$0" {shlex.quote(str(moved))} "$@"\n'.encode())
    script.chmod(0o755)
    script.rename(program)


@contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """One process downloads, the others wait for it."""
    _make(folder)
    with (folder / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _make(folder: Path) -> None:
    """Makes a folder. Root's may be entered by the user that the server runs as, whatever this process's umask."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    if os.geteuid() == 0:
        for one in {folder, *missing}:
            one.chmod(0o755)


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


def _errors(output: str) -> str:
    return " ".join(line for line in output.splitlines() if line.startswith("E: ")) or _tail(output)


def _tail(output: str) -> str:
    return " ".join(output.splitlines()[-3:])
