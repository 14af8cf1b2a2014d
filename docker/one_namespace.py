"""The build of the wheel: setuptools', then everything is put below one package, ``dbmigrator``.

A checkout has ``migrator``, ``transforms``, ``verify`` and ``scenarios`` at its top. Installed so, they would lie
beside others' modules of these names, and a user's own ``verify.py`` could stand in their place. So the wheel holds
``dbmigrator/migrator/...`` and so on, and each import statement is written anew (``migrator.renamed_imports``). Texts
are left alone: a module that is named in one goes through ``migrator.own_modules.own``, and a text that looks like a
name that doesn't ends the build.

An editable installation is setuptools' own, and has the folders as they are.
"""

from __future__ import annotations

import ast
import base64
import configparser
import hashlib
import importlib.util
import io
import os
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).parents[1]
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files: the same sources make the same wheel."""


def _module(path: str) -> ModuleType:
    """A module of the sources that needs nothing but Python, without what its package imports."""
    spec = importlib.util.spec_from_file_location(f"_built_{Path(path).stem}", ROOT / path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(ROOT / path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_own_modules = _module("migrator/own_modules.py")
_renamed_imports = _module("migrator/renamed_imports.py")
PACKAGES: tuple[str, ...] = _own_modules.PACKAGES
NAMESPACE: str = _own_modules.FACADE
_HANDED_TO = ("own", "python_m", "tool.command")
_NAME = re.compile(rf"({'|'.join(PACKAGES)})(\.[a-z_][a-z0-9_]*)+")


def build_wheel(
    wheel_directory: str, config_settings: Any = None, metadata_directory: str | None = None
) -> str:
    """Builds the wheel and returns its file's name. Raises ``ValueError`` for a name that would point nowhere."""
    with tempfile.TemporaryDirectory() as folder, _built_in(Path(folder)):
        # Not with the metadata that may have been prepared: it has been rewritten already.
        name: str = build_meta.build_wheel(folder, config_settings)
        with zipfile.ZipFile(Path(folder) / name) as wheel:
            files = {entry: wheel.read(entry) for entry in wheel.namelist() if not entry.endswith("/")}
    Path(wheel_directory, name).write_bytes(_zipped(in_one_namespace(files)))
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: Any = None) -> str:
    """Writes the wheel's metadata alone, and returns its folder's name."""
    with tempfile.TemporaryDirectory() as folder, _built_in(Path(folder)):
        name: str = build_meta.prepare_metadata_for_build_wheel(metadata_directory, config_settings)
    for file in Path(metadata_directory, name).iterdir():
        if file.name in _METADATA:
            file.write_text(_METADATA[file.name](file.read_text()))
    return name


@contextmanager
def _built_in(folder: Path) -> Iterator[None]:
    """Lets setuptools put its files elsewhere: what an earlier build left in the tree would get into the wheel."""
    setting = folder / "distutils.cfg"
    setting.write_text(f"[build]\nbuild_base = {folder}/build\n[egg_info]\negg_base = {folder}\n")
    before = os.environ.get("DIST_EXTRA_CONFIG")
    os.environ["DIST_EXTRA_CONFIG"] = str(setting)
    try:
        yield
    finally:
        if before is None:
            del os.environ["DIST_EXTRA_CONFIG"]
        else:
            os.environ["DIST_EXTRA_CONFIG"] = before


def in_one_namespace(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the files of a wheel, by name, with the packages below one, and with the list of all files renewed."""
    modules = {_module_name(name) for name in files if name.endswith(".py")}
    found: dict[str, bytes] = {}
    for name, content in files.items():
        first = name.partition("/")[0]
        if first in (*PACKAGES, NAMESPACE):
            where = name if first == NAMESPACE else f"{NAMESPACE}/{name}"
            if where in found:
                raise ValueError(f"two files of the wheel would be {where}")
            found[where] = _rewritten(name, content, modules) if name.endswith(".py") else content
        elif ".dist-info/" in name and (rewrite := _METADATA.get(name.rpartition("/")[2])):
            found[name] = rewrite(content.decode()).encode()
        elif not name.endswith(".dist-info/RECORD"):
            found[name] = content
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    found[record] = _record(found, record)
    return found


def _module_name(file: str) -> str:
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _rewritten(name: str, content: bytes, modules: set[str]) -> bytes:
    text = content.decode()
    if name != "migrator/own_modules.py":
        for line, value in loose_names(text, modules):
            raise ValueError(f"{name}:{line}: {value!r} is a module's name: hand it to own() or python_m()")
    meant = lambda module, names: module.partition(".")[0] in PACKAGES  # noqa: E731
    renamed: str = _renamed_imports.with_prefix(text, NAMESPACE, meant)
    compile(renamed, name, "exec", dont_inherit=True)
    return renamed.encode()


def loose_names(text: str, modules: set[str]) -> Iterator[tuple[int, str]]:
    """Line and content of each text that is the name of one of the modules and goes through no ``own``."""
    tree = ast.parse(text)
    through = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _HANDED_TO
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or id(node) in through:
            continue
        if _NAME.fullmatch(node.value) and node.value in modules:
            yield node.lineno, node.value


def _entry_points(text: str) -> str:
    """The entry points with modules by their new names; groups and names stay: others join by them."""
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    for section in parser.sections():
        for name, value in parser.items(section):
            if re.split(r"[.:]", value)[0] in PACKAGES:
                parser.set(section, name, f"{NAMESPACE}.{value}")
    written = io.StringIO()
    parser.write(written)
    return written.getvalue()


def _absolute_links(text: str) -> str:
    """The description with links that work where it is shown alone: its pages lie in the repository."""
    [home] = re.findall(r"(?m)^Project-URL: Homepage, (\S+)$", text)
    return re.sub(r"\]\((?!https?:|#)", f"]({home}/blob/main/", text)


_METADATA: Mapping[str, Callable[[str], str]] = {
    "METADATA": _absolute_links,
    "entry_points.txt": _entry_points,
    "top_level.txt": lambda _: f"{NAMESPACE}\n",
}
"""What is written anew of the wheel's metadata."""


def _record(files: Mapping[str, bytes], record: str) -> bytes:
    lines = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    if any("," in name or '"' in name for name in files):
        raise ValueError("a file's name would have to be quoted")
    return "\n".join([*lines, f"{record},,", ""]).encode()


def _zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o100644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    return buffer.getvalue()
