"""An archive of the classes that Spark loads, one for each Java and Spark on a machine.

A JVM that maps it starts sooner than one that reads, checks and links fifteen thousand classes from their jars. Java
leaves it when a JVM ends that was told so at its start. A JVM for which it doesn't fit goes on without it.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyspark

from transforms.on_spark.session_settings import UNSAFE

_ROOM_BYTES = 2 << 30
"""Free space below which none is made: one takes 170 MB."""
_SUFFIX = ".jsa"
_QUIET = "-Xlog:cds=off -Xlog:class+path=off"
_OWN = ("SharedArchiveFile", "ArchiveClassesAtExit", "-Xshare", "AutoCreateSharedArchive")
"""Options by which somebody else decides."""
_ENVIRONMENT = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS")


@dataclass(frozen=True, slots=True)
class ClassArchive:
    """The archive's file, there or not.

    Its name has a digest of its content: a JVM dies of one that was damaged or cut off, or runs other code.

    Attributes:
        stem: the file's path up to the digest, in a folder that only this user writes to.
    """

    stem: Path

    @property
    def new(self) -> Path:
        """The file that a JVM of this process leaves."""
        return self.stem.with_name(f"{self.stem.name}.{os.getpid()}")

    def path(self) -> Path | None:
        """Returns the archive; None if there is no whole one, or another user can write it."""
        return next(filter(_is_ours_and_whole, self._files()), None)

    def options(self) -> str:
        """Returns Java's options that map the archive; empty if there is none."""
        found = self.path()
        return "" if found is None else f"{_QUIET} -XX:SharedArchiveFile={found}"

    def training(self) -> str:
        """Returns Java's options by which a JVM leaves the archive at its end; empty where there is one, or no
        room."""
        with suppress(OSError):
            if self.path() is None:
                self.stem.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                if shutil.disk_usage(self.stem.parent).free >= _ROOM_BYTES:
                    return f"{_QUIET} -XX:ArchiveClassesAtExit={self.new}"
        return ""

    def adopt(self, whole: bool) -> bool:
        """Takes the file that a JVM has left for the archive; tells whether there is one. ``whole``: the JVM ended by
        itself and without an error, so the file isn't cut off."""
        with suppress(OSError):
            if whole and self.new.is_file():
                self.new.chmod(0o400)
                os.replace(self.new, self.stem.with_name(f"{self.stem.name}-{_digest(self.new)}{_SUFFIX}"))
                for damaged in (one for one in self._files() if not _is_ours_and_whole(one)):
                    damaged.unlink()
                return True
            self.new.unlink(missing_ok=True)
        return False

    def _files(self) -> list[Path]:
        with suppress(OSError):
            return sorted(self.stem.parent.glob(f"{self.stem.name}-*{_SUFFIX}"))
        return []


def _is_ours_and_whole(file: Path) -> bool:
    with suppress(OSError):
        found = file.stat()
        ours = found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        return ours and file.name.endswith(f"-{_digest(file)}{_SUFFIX}")
    return False


def _digest(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()[:32]


def class_archive(java_home: Path, conf: Mapping[str, str]) -> ClassArchive | None:
    """Returns the archive for a Java's Spark; None where options of the user's decide, or there is no place for it.

    Args:
        java_home: of the Java that will run.
        conf: the user's ``spark.*`` options.
    """
    said = [conf.get("spark.driver.extraJavaOptions", ""), *(os.environ.get(one, "") for one in _ENVIRONMENT)]
    if any(option in text for text in said for option in _OWN):
        return None
    try:
        release = (java_home / "release").read_bytes()
        cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
        place = cache if cache.is_absolute() else Path.home() / ".cache"
    except (OSError, RuntimeError):  # an image without such a file; a user without a home
        return None
    if UNSAFE.search(str(place)) is not None:
        return None
    known = b" ".join(
        [str(java_home).encode(), release, str(pyspark.__file__).encode(), pyspark.__version__.encode()]
    )
    return ClassArchive(place / "migrator" / f"spark-classes-{hashlib.sha256(known).hexdigest()[:12]}")
