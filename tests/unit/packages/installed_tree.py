"""The tool as the wheel installs it, without a build: the same rewriting of the same files, in a folder."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.unit.product_modules import PACKAGES, ROOT

HOSTILE = ("migrator", "transforms", "verify", "scenarios", "tests")
"""Names that anybody may use."""
_RECORD = "dbmigrator-0.dist-info/RECORD"


def backend() -> ModuleType:
    """The build's own code."""
    spec = importlib.util.spec_from_file_location("one_namespace", ROOT / "docker" / "one_namespace.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sources(without: tuple[str, ...] = ()) -> dict[str, bytes]:
    """All files of the packages by their names in a wheel, with an empty list of files."""
    folders = [ROOT / package for package in PACKAGES if package not in without]
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    found = {
        file.relative_to(ROOT).as_posix().replace("migrator/facade/", "dbmigrator/"): file
        for file in files
        if "__pycache__" not in file.parts
    }
    return {**{name: file.read_bytes() for name, file in found.items()}, _RECORD: b""}


@dataclass(frozen=True)
class Installed:
    """A folder that Python finds the tool in, behind one where others' modules of its names raise when imported."""

    site: Path
    others: Path

    def python(self, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
        """Runs a Python of its own in a folder; without ``site``, for that would bring this checkout."""
        path = os.pathsep.join(map(str, (self.others, self.site, sysconfig.get_path("purelib"))))
        return subprocess.run(
            [sys.executable, "-S", *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
        )


def hostile(folder: Path) -> None:
    """Puts modules of our names into a folder, which raise when they are imported."""
    for name in HOSTILE:
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").write_text(
            f"raise RuntimeError('the {name} of {folder} was imported')\n"
        )


def installed(folder: Path) -> Installed:
    """Writes the tool without its scenarios into a folder, and hostile modules beside it."""
    for name, content in backend().in_one_namespace(sources(without=("scenarios",))).items():
        file = folder / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    hostile(folder / "others")
    return Installed(folder / "site", folder / "others")
