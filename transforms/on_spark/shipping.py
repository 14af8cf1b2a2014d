"""Python code on its way to the executors of a cluster: this tool, the mapping's modules, and what the user adds.

Functions of the mapping and of the modules that it imports when it is loaded travel by value, inside the jobs. The
rest is imported where it runs: this tool's own modules (tasks refer to them by name), and what a mapping's function
imports while it runs. So both are zipped and handed to Spark, whose driver serves them to every executor;
nothing of them has to be installed there. Third-party packages are not shipped.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import sys
import zipfile
from collections.abc import Mapping, Sequence
from importlib.util import decode_source
from pathlib import Path

from pyspark.sql import SparkSession

from migrator.errors import ConfigError, MigratorError
from migrator.own_modules import FACADE, NAMESPACE, own
from transforms.project_code import in_new_names

OWN_PACKAGES = ("migrator", "transforms", "verify")
PY_FILES = (".py", ".zip", ".egg", ".whl")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files in an archive: the same files make the same archive, whenever they were written."""


def ship(
    spark: SparkSession, mapping: Path, passed_over: Sequence[Path], py_files: Sequence[Path], to: Path
) -> None:
    """Makes the code importable in Python workers of the session, those of executors to come included.

    Args:
        spark: a session on a cluster.
        mapping: the mapping file; the modules and packages of its folder go along.
        passed_over: folders below it that hold no modules of the mapping (state, revisions).
        py_files: further files of the user's, see ``PY_FILES``.
        to: folder for the archives; created if missing.

    Raises ``ConfigError`` for a file that can't be shipped, ``MigratorError`` when the disk refuses.
    """
    wrong = [str(file) for file in py_files if not file.is_file() or file.suffix not in PY_FILES]
    if wrong:
        raise ConfigError(
            "Python files for executors can't be used",
            where=", ".join(wrong),
            cause="there is no such file, or it is none of " + ", ".join(PY_FILES),
            remedy="correct py_files in [spark], or --py-files",
        )
    files = [_archive(to, "tool", own_code()), *py_files]
    beside = mapping_modules(mapping, passed_over)
    if beside:
        files.append(_archive(to, "mapping", beside))
    path = list(sys.path)
    for file in files:
        spark.sparkContext.addPyFile(str(file))
    sys.path[:] = path  # addPyFile adds them to our own path as well, where they would hide installed modules


def mapping_modules(mapping: Path, passed_over: Sequence[Path]) -> Mapping[str, bytes]:
    """Modules of the mapping's folder and of packages below it, by their name in an archive."""
    root = mapping.resolve().parent
    skipped = {folder.resolve() for folder in passed_over}
    found: dict[str, bytes] = {}

    def look(folder: Path) -> None:
        for entry in sorted(folder.iterdir()):
            if (entry / "__init__.py").is_file() and entry.resolve() not in skipped:
                look(entry)
            elif entry.suffix == ".py" and entry.stem.isidentifier():
                found[entry.relative_to(root).as_posix()] = _as_run(entry.read_bytes(), root)

    try:
        look(root)
    except OSError as error:
        raise _refused(root, error) from error
    return found


def _as_run(content: bytes, folder: Path) -> bytes:
    """Returns a module of the mapping's folder with this tool under the name that it has here."""
    try:
        return in_new_names(decode_source(content), folder).encode() if NAMESPACE else content
    except (SyntaxError, UnicodeDecodeError):
        return content  # whoever imports it is told what is wrong with it


def own_code() -> Mapping[str, bytes]:
    """Returns this tool's modules by their name in an archive, under which tasks import them."""
    found = {
        name: content for package in OWN_PACKAGES for name, content in package_code(own(package)).items()
    }
    facade = {name: content for name, content in package_code(FACADE).items() if name.count("/") == 1}
    return {**facade, **found}


def package_code(name: str) -> Mapping[str, bytes]:
    """Returns the modules of an installed package by their name in an archive."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise AssertionError(f"the package {name} isn't where it was imported from")
    root = Path(next(iter(spec.submodule_search_locations)))
    below = name.replace(".", "/")
    return {
        f"{below}/{file.relative_to(root).as_posix()}": file.read_bytes()
        for file in sorted(root.rglob("*.py"))
    }


def _archive(folder: Path, kind: str, files: Mapping[str, bytes]) -> Path:
    """A zip archive named after its content: executors keep what they have fetched under its name."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, _EPOCH), content)
    content = buffer.getvalue()
    path = folder / f"{kind}-{hashlib.sha256(content).hexdigest()[:12]}.zip"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o600)
    except OSError as error:
        raise _refused(path, error) from error
    return path


def _refused(path: Path, error: OSError) -> MigratorError:
    return MigratorError(
        "the code for Spark's executors can't be put together",
        where=str(path),
        cause=str(error.strerror or error),
        remedy="check free space and rights of the state directory and the mapping's folder",
    )
