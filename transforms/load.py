"""Loads a user's mapping: the Python file, and the queries in ``.sql`` files beside it or instead of it."""

from __future__ import annotations

import importlib.util
import itertools
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from migrator.errors import MappingError, together
from transforms.on_spark.session import small_session
from transforms.project_code import ProjectFile, folder_last, hidden_old_name
from transforms.registry import Mapping, holding
from transforms.sql_file import add_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_numbers = itertools.count(1)
_BELOW = ". What stands below it is looked at after that"
_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_beside: dict[str, Path] = {}
"""Modules that a mapping imported from its own folder; forgotten before the next mapping is loaded."""


def load_mapping(path: Path, spark: Callable[[], SparkSession] | None = None) -> Mapping:
    """The mapping of a project: its Python file, and every ``.sql`` file beside it that holds a mapping.

    Either may be missing, not both. With a path that ends in ``.sql``, that file alone is the mapping. Each
    call runs the Python file afresh, under a new module name, together with the modules beside it. Functions
    of those modules travel to Python workers by value, so executors need no copy of the project.

    Args:
        path: ``migration.mapping``.
        spark: starts Spark, whose parser says which tables a query reads; by default a small local session. Called
            only where there is a query.

    Raises:
        MappingError: the file is missing, can't be run or parsed, or doesn't hold exactly one Mapping with a
            target; all problems of its declarations, together.
    """
    mapping = read_mapping(path, spark)
    if mapping.broken:
        raise together(mapping.broken)
    return mapping


def read_mapping(path: Path, spark: Callable[[], SparkSession] | None = None) -> Mapping:
    """The mapping of a project as ``load_mapping`` reads it, with all declarations that can't be used in ``broken``.

    For those who look at all of it: what is broken isn't among its targets. Args and errors as of ``load_mapping``;
    it raises only where there is nothing to read.
    """
    with holding():
        return _read(path, spark)


def _read(path: Path, spark: Callable[[], SparkSession] | None) -> Mapping:
    file = path.resolve()
    alone = file.suffix == ".sql"
    queries = ([file] if file.is_file() else []) if alone else sorted(file.parent.glob("*.sql"))
    with_python = not alone and file.is_file()
    mapping = _python_mapping(file) if with_python else Mapping()
    mapping.aside = tuple(add_queries(mapping, queries, spark or small_session))
    if mapping.declared:
        return mapping
    if not with_python and not (alone and queries):
        raise MappingError(
            f"mapping file {path} does not exist",
            where=str(file),
            remedy="create it, or correct migration.mapping; a .sql file is one if it says `-- target: <table>`",
        )
    raise MappingError(
        f"the mapping in {path.name} has no target table",
        where=str(file),
        remedy='decorate at least one function with @mapping.target("table", key="column"), '
        "or head a query with `-- target: table` and `-- key: column`",
    )


def _python_mapping(file: Path) -> Mapping:
    module, failed = _run(file)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Mapping)}
    mapping = next(iter(found.values())) if len(found) == 1 else Mapping()
    with mapping.held():
        if failed is not None:
            raise failed  # what stands above the line that failed is looked at all the same
        if len(found) != 1:
            raise MappingError(
                f"{file.name} must define exactly one Mapping",
                where=str(file),
                cause=f"{len(found)} found at the top level of the file",
                remedy="write `mapping = Mapping()` once (from dbmigrator import Mapping) and use it throughout",
            )
    return mapping


def _run(file: Path) -> tuple[ModuleType, MappingError | None]:
    """The module of a mapping file as far as it could be run, and what ended that."""
    name = f"migration_mapping_{next(_numbers)}"
    loader = ProjectFile(name, str(file), file.parent)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader) if file.suffix == ".py" else None
    if spec is None or spec.loader is None:
        raise MappingError(
            f"{file.name} is not a Python file", where=str(file), remedy="name it something.py"
        )
    module = importlib.util.module_from_spec(spec)
    with _afresh(file.parent):
        before = set(sys.modules)
        sys.modules[name] = module
        failed: MappingError | None = None
        try:
            _execute(spec.loader, module, file)
        except MappingError as error:
            failed = error
        finally:
            if failed is not None:
                sys.modules.pop(name)
            _note_modules_beside(set(sys.modules) - before, file.parent)
    return module, failed


def _execute(loader: Loader, module: ModuleType, file: Path) -> None:
    try:
        loader.exec_module(module)
    except MappingError:
        raise
    except (Exception, SystemExit) as error:
        raise _load_error(error, file) from error


@contextmanager
def _afresh(folder: Path) -> Iterator[None]:
    """Lets the mapping import modules beside it, and none left over from a mapping in another folder."""
    for name in _beside:
        sys.modules.pop(name, None)
    _beside.clear()
    with folder_last(folder):
        yield


def _note_modules_beside(names: set[str], folder: Path) -> None:
    # Pickled by reference, a function of these modules could not be found by a worker, whose path is not
    # ours.
    from pyspark import cloudpickle

    for name in sorted(names):
        module = sys.modules.get(name)
        origin = getattr(module, "__file__", None)
        if module is not None and origin and _is_beside(Path(origin), folder):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
            if not name.startswith("migration_mapping_"):
                _beside[name] = Path(origin)


def _is_beside(file: Path, folder: Path) -> bool:
    """Tells whether a file is the project's: not of a virtual environment that lies in the folder."""
    return file.resolve().is_relative_to(folder) and not str(file).startswith(_INSTALLED)


def _load_error(error: BaseException, file: Path) -> MappingError:
    if isinstance(error, SyntaxError):
        where, cause = f"{error.filename or file}:{error.lineno or 0}", error.msg
        return MappingError(
            f"{file.name} is not valid Python", where=where, cause=cause, remedy="correct the line"
        )
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename).is_relative_to(file.parent)
    ]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else str(file)
    cause = f"{type(error).__name__}: {error}"
    if (
        isinstance(error, AssertionError)
        and "pyspark" in traceback.extract_tb(error.__traceback__)[-1].filename
    ):
        return MappingError(
            f"{file.name} uses Spark while it is loaded",
            where=where,
            cause="a Spark function such as F.col, F.lit or F.expr is called outside the target functions",
            remedy="move the line into the function that needs it" + _BELOW,
        )
    if isinstance(error, ImportError):
        return MappingError(
            f"{file.name} imports something that can't be imported",
            where=where,
            cause=cause,
            remedy=hidden_old_name(error, file.parent)
            or "install the package into this environment, or put the module beside the mapping file"
            + _BELOW,
        )
    return MappingError(
        f"{file.name} fails while it is loaded",
        where=where,
        cause=cause,
        remedy="correct the line; a mapping file only declares functions and runs no queries when loaded"
        + _BELOW,
    )
