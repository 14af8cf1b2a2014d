"""Names and paths of an event log directory.

::

    <directory>/segments/0000000042.json                    manifest of segment 42: the segment exists when
    this does <directory>/data/0000000042-<epoch>-<n>.parquet         its data files; without a manifest they
    are nothing <directory>/epoch                                       highest epoch that ever opened the log
    for writing <directory>/released                                    highest segment number that was given
    up <directory>/readers/<name>.json                         place of a reader beside the target (see
    ``places``)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MANIFEST = re.compile(r"(\d{10})\.json")
_TEMPORARY = re.compile(r"\.\d{10}-(\d+)-\w+\.tmp")
_DATA = re.compile(r"(\d{10})-(\d+)-(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of everything in one event log. ``directory`` is absolute."""

    directory: Path

    @staticmethod
    def of(directory: str | os.PathLike[str]) -> Layout:
        """The layout of a directory, made absolute (the tasks of Spark have another working directory)."""
        return Layout(Path(os.path.abspath(directory)))

    @property
    def segments(self) -> Path:
        """Directory of the manifests."""
        return self.directory / "segments"

    @property
    def data(self) -> Path:
        """Directory of the data files."""
        return self.directory / "data"

    @property
    def epoch(self) -> Path:
        """File with the highest epoch that opened the log."""
        return self.directory / "epoch"

    @property
    def released(self) -> Path:
        """File with the highest segment number given up."""
        return self.directory / "released"

    @property
    def readers(self) -> Path:
        """Directory of the places of readers that aren't the target."""
        return self.directory / "readers"

    def manifest(self, number: int) -> Path:
        """Path of a manifest."""
        return self.segments / f"{number:010d}.json"

    def data_file(self, number: int, epoch: int, place: int) -> Path:
        """Path of a data file."""
        return self.data / f"{number:010d}-{epoch}-{place}.parquet"

    def relative(self, path: str) -> str:
        """A data file's path as a manifest stores it: the directory may be moved or mounted elsewhere."""
        return str(Path(path).relative_to(self.directory))

    def absolute(self, stored: str) -> str | None:
        """Inverse of ``relative``; None for a path that isn't a data file of this log."""
        folder, _, name = stored.partition("/")
        return str(self.data / name) if folder == "data" and _DATA.fullmatch(name) else None

    def numbers(self) -> list[int]:
        """Numbers of all manifests, rising; empty when the log doesn't exist yet."""
        found = (_MANIFEST.fullmatch(name) for name in _names(self.segments))
        return sorted(int(match[1]) for match in found if match)

    def data_files(self) -> Iterator[tuple[int, Path]]:
        """Every data file with the number of the segment it was written for."""
        for name in _names(self.data):
            match = _DATA.fullmatch(name)
            if match:
                yield int(match[1]), self.data / name

    def temporary(self, number: int, epoch: int, token: str) -> Path:
        """Path of a manifest while it is being written; ``token`` tells attempts apart."""
        return self.segments / f".{number:010d}-{epoch}-{token}.tmp"

    def temporaries(self) -> Iterator[tuple[int, Path]]:
        """Manifests that were being written, with their writer's epoch."""
        for name in _names(self.segments):
            match = _TEMPORARY.fullmatch(name)
            if match:
                yield int(match[1]), self.segments / name

    def total_bytes(self) -> int:
        """Size of all data files and manifests."""
        return _size_bytes(self.data) + _size_bytes(self.segments)


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _size_bytes(directory: Path) -> int:
    total = 0
    for name in _names(directory):
        try:
            total += os.stat(directory / name).st_size
        except FileNotFoundError:  # released while we look
            continue
    return total
