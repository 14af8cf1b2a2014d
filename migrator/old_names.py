"""Names under which projects imported this tool before it had one package, ``dbmigrator``.

Where the wheel is installed, ``transforms``, ``verify`` and ``migrator`` are anybody's names. They mean this tool's
modules in the code of a user's project alone, and not where the project has a module so named. A mapping is read with
its imports rewritten (``is_old_name`` says which). Alembic reads its own files: while it does, they find the modules.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from migrator.own_modules import NAMESPACE, own

OLD_NAMES = ("migrator", "transforms", "verify")


def has_module(folder: Path, name: str) -> Path | None:
    """Returns the file of a folder that ``import name`` means where the folder comes first; None without one."""
    for file in (folder / name / "__init__.py", folder / f"{name}.py"):
        if file.is_file():
            return file
    return None


def is_old_name(module: str, names: Sequence[str], folder: Path) -> bool:
    """Tells whether an import of a project's code means this tool, which is installed under another name.

    Args:
        module: what is imported, or imported from.
        names: what is imported from it; none where the module itself is.
        folder: the project's.
    """
    first = module.partition(".")[0]
    if not NAMESPACE or first not in OLD_NAMES or has_module(folder, first):
        return False
    try:
        found = import_module(own(module))
    except ImportError:
        return False
    return all(
        name == "*" or hasattr(found, name) or find_spec(own(f"{module}.{name}")) is not None
        for name in names
    )


@contextmanager
def old_names(folder: Path) -> Iterator[None]:
    """Lets imports in this block find this tool's modules by their old names; afterwards all is as it was.

    Of the whole process: one project is loaded at a time, before there are threads that import.
    """
    meant = [name for name in OLD_NAMES if NAMESPACE and not has_module(folder, name)]
    others = _taken(meant)
    finder = _Finder(meant)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _taken(meant)
        sys.modules.update(others)


def _taken(names: Sequence[str]) -> dict[str, ModuleType]:
    """Returns the imported modules of these packages, which are forgotten."""
    found = [module for module in sys.modules if module.partition(".")[0] in names]
    return {module: sys.modules.pop(module) for module in found}


class _Finder(MetaPathFinder):
    def __init__(self, names: Sequence[str]):
        self._names = names

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in self._names or find_spec(own(fullname)) is None:
            return None
        return ModuleSpec(fullname, _Same())


class _Same(Loader):
    """Gives the module that is there already, and leaves it as it is."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(own(spec.name))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # Python has put the spec of the other name into it
        other = module.__spec__
        if other is not None and other.loader_state is not None:
            module.__spec__ = other.loader_state
