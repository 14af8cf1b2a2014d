"""The Python code of a user's project while it is loaded: the mapping's file, and the modules beside it.

The project's folder comes last on the path: a file in it can't take the place of a module that is installed. Where a
mapping imports such a name, it is refused, and both files are named.
"""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import decode_source
from pathlib import Path
from types import CodeType, ModuleType

from migrator.errors import MappingError
from migrator.old_names import OLD_NAMES, has_module, is_old_name
from migrator.own_modules import FACADE, NAMESPACE
from migrator.renamed_imports import with_prefix


class ProjectFile(SourceFileLoader):
    """Runs a file of a project: old names of this tool in it mean the tool, wherever their lines are run.

    Without Python's cache of compiled files, in which other programs look for what the file itself says.
    """

    def __init__(self, fullname: str, path: str, folder: Path):
        super().__init__(fullname, path)
        self._folder = folder

    def get_code(self, fullname: str) -> CodeType:
        """The file's code. Raises ``SyntaxError``, ``OSError``, ``MappingError`` for an import with two meanings."""
        path = self.get_filename(fullname)
        text = decode_source(self.get_data(path))
        _refuse_hidden(ast.parse(text, path), Path(path), self._folder)
        code: CodeType = compile(in_new_names(text, self._folder), path, "exec", dont_inherit=True)
        return code


def in_new_names(text: str, folder: Path) -> str:
    """Returns a project's code with the imports of this tool under the names that they have here."""
    if not NAMESPACE:
        return text
    return with_prefix(text, NAMESPACE, lambda module, names: is_old_name(module, names, folder))


@contextmanager
def folder_last(folder: Path) -> Iterator[None]:
    """Lets code that runs in this block import modules of ``folder``, after all that are installed."""
    importlib.invalidate_caches()
    above = [
        path for path in sys.path if Path(path).resolve() == folder
    ]  # the working folder, of `python -m`
    before = list(sys.path)
    sys.path[:] = [path for path in sys.path if path not in above]
    finder = _Finder(folder)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        sys.path[:] = [*before, *(path for path in sys.path if path not in before)]


class _Finder(MetaPathFinder):
    """Finds modules of the folder: those at its top that are nowhere else, and those of its packages."""

    def __init__(self, folder: Path):
        self._folder = folder

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is not None:
            places = [one for one in path if Path(one).resolve().is_relative_to(self._folder)]
        else:
            mine = has_module(self._folder, fullname) and not _elsewhere(fullname, self._folder)
            places = [str(self._folder)] if mine else []
        spec = PathFinder.find_spec(fullname, places) if places else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = ProjectFile(fullname, spec.loader.path, self._folder)
        return spec


def _refuse_hidden(code: ast.Module, file: Path, folder: Path) -> None:
    """Refuses an import that means one file to who wrote it and another to Python."""
    for line, name in _imported(code):
        beside = has_module(folder, name)
        if beside is None or name == FACADE:
            continue
        other = _elsewhere(name, folder)
        if other and not _is_copy(Path(other), beside):
            raise MappingError(
                f"{beside.relative_to(folder)} has the name of an installed module",
                where=f"{file}:{line}",
                cause=f"`import {name}` means {other}, never {beside}: what is installed comes first",
                remedy="rename the file and its imports",
            )


def _is_copy(other: Path, beside: Path) -> bool:
    """Tells whether what is installed is the project's own file: then both names mean one thing."""
    return other.is_file() and other.read_bytes() == beside.read_bytes()


def _imported(code: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and first name of each absolute import, wherever it stands."""
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, one.name.partition(".")[0]) for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.lineno, node.module.partition(".")[0]


def _elsewhere(name: str, folder: Path) -> str:
    """Returns where a module is found that isn't the folder's; empty if there is none."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    others = (one for one in sys.meta_path if not isinstance(one, _Finder))
    while spec is None and (finder := next(others, None)) is not None:
        spec = finder.find_spec(name, None)
    if spec is None or (spec.origin is None and spec.submodule_search_locations is not None):
        return ""  # a folder without modules of its own gives way
    origin = spec.origin or "a module without a file"
    own_file = Path(origin).is_absolute() and Path(origin).resolve().parent in (folder, folder / name)
    return "" if own_file else origin


def hidden_old_name(error: ImportError, folder: Path) -> str:
    """Returns the remedy where a file of the project stands in the place of an old name of this tool; else empty."""
    name = (error.name or "").partition(".")[0]
    beside = has_module(folder, name) if name in OLD_NAMES else None
    if beside is None:
        return ""
    return (
        f"`{name}` means {beside} here: import this tool's names from {FACADE} (from {FACADE} import Mapping),"
        " or rename the file"
    )
