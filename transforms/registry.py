"""What a user writes: one function per target table, its parameters named after source tables.

    mapping = Mapping()

    @mapping.target("person", key="person_id")
    def person(customer: DataFrame) -> DataFrame: ...

Every mistake a user can make here becomes a :class:`~migrator.errors.MappingError` that names file and line.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingType
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from migrator.errors import MappingError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

F = TypeVar("F", bound="Callable[..., DataFrame]")
Value = Callable[["DataFrame"], object]
Grain = str | Sequence[str] | Callable[..., object] | None

_numbers = itertools.count(1)
_beside: dict[str, Path] = {}
"""Modules that a mapping imported from its own folder; forgotten before the next mapping is loaded."""


@dataclass(frozen=True, slots=True)
class TargetMapping:
    """How one target table is made.

    Attributes:
        name: target table.
        key: target key columns, in order; never empty.
        grain: what a joined or aggregated target depends on, as given; None for a row-wise one.
        function: takes one DataFrame per source table, by position, and returns the target's rows.
        sources: source tables in the order of the function's parameters; never empty.
        links: how a joined target's tables belong together, as declared; None leaves it to the foreign keys.
        roles: further names for tables that take part more than once, with the table.
        values: per computed value its table, its name, and the function of the table's rows.
    """

    name: str
    key: tuple[str, ...]
    grain: Grain
    function: Callable[..., DataFrame]
    sources: tuple[str, ...]
    links: tuple[str, ...] | None = None
    roles: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str, Value], ...] = ()

    def where(self) -> str:
        """The function with file and line, for messages."""
        return _where(self.function)


class Mapping:
    """The target tables of a migration, in the order they were declared."""

    def __init__(self) -> None:
        self._targets: dict[str, TargetMapping] = {}

    @property
    def targets(self) -> tuple[TargetMapping, ...]:
        """All target mappings in order of declaration."""
        return tuple(self._targets.values())

    def __getitem__(self, name: str) -> TargetMapping:
        """The mapping of one target table. Raises KeyError if there is none."""
        return self._targets[name]

    def __contains__(self, name: object) -> bool:
        return name in self._targets

    def __iter__(self) -> Iterator[TargetMapping]:
        return iter(self.targets)

    def __len__(self) -> int:
        return len(self._targets)

    def target(
        self,
        name: str,
        *,
        key: str | Sequence[str],
        grain: Grain = None,
        links: str | Sequence[str] | None = None,
        roles: MappingType[str, str] | None = None,
        values: MappingType[str, Value] | None = None,
        sources: Sequence[str] | None = None,
    ) -> Callable[[F], F]:
        """Declares that the decorated function makes target table ``name``.

        Args:
            name: target table.
            key: key column or columns of the target.
            grain: for joined or aggregated targets: what a target row depends on (see ``transforms.grain``).
            links: ``"child.column = parent.column"`` for every link the function joins by, where the source's
                foreign keys don't say it or say too much.
            roles: further names for source tables that take part more than once, to be used in ``links``.
            values: values computed from single rows, to be used in ``grain`` and ``links`` like columns:
                ``{"title.code": lambda title: slug(title.title)}``.
            sources: source tables in parameter order, where a table's name is no Python name.

        Raises:
            MappingError: empty name or key, a target declared twice, parameters that can't be source tables.
        """

        def register(function: F) -> F:
            where = _where(function)
            parameters = _parameters(function, where)
            target = TargetMapping(
                name=_name(name, "target table", where),
                key=_key(key, where),
                grain=grain,
                function=function,
                sources=_sources(sources, parameters, where),
                links=_links(links, grain, where),
                roles=_role_names(roles, grain, where),
                values=_values(values, grain, where),
            )
            if name in self._targets:
                raise MappingError(
                    f"target table {name!r} is mapped twice",
                    where=where,
                    cause=f"it is already mapped by {self._targets[name].where()}",
                    remedy="keep one function per target table; combine several sources with unionByName",
                )
            self._targets[name] = target
            return function

        return register


def load_mapping(path: Path) -> Mapping:
    """Runs the user's mapping file and returns its one ``Mapping``.

    Each call runs the file afresh, under a new module name, together with the modules beside it. Functions
    of those modules travel to Python workers by value, so executors need no copy of the project.

    Raises:
        MappingError: the file is missing, can't be run, or doesn't hold exactly one Mapping with a target.
    """
    file = path.resolve()
    if not file.is_file():
        raise MappingError(
            f"mapping file {path} does not exist",
            where=str(file),
            remedy="create it, or correct migration.mapping",
        )
    module = _run(file)
    found = {id(value): value for value in vars(module).values() if isinstance(value, Mapping)}
    if len(found) != 1:
        raise MappingError(
            f"{path.name} must define exactly one Mapping",
            where=str(file),
            cause=f"{len(found)} found at the top level of the file",
            remedy="write `mapping = Mapping()` once (from transforms import Mapping) and use it throughout",
        )
    mapping = next(iter(found.values()))
    if not mapping.targets:
        raise MappingError(
            f"the mapping in {path.name} has no target table",
            where=str(file),
            remedy='decorate at least one function with @mapping.target("table", key="column")',
        )
    return mapping


def _run(file: Path) -> ModuleType:
    name = f"migration_mapping_{next(_numbers)}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise MappingError(
            f"{file.name} is not a Python file", where=str(file), remedy="name it something.py"
        )
    module = importlib.util.module_from_spec(spec)
    with _folder_first(file.parent):
        before = set(sys.modules)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except MappingError:
            sys.modules.pop(name)
            raise
        except (Exception, SystemExit) as error:
            sys.modules.pop(name)
            raise _load_error(error, file) from error
        finally:
            _note_modules_beside(set(sys.modules) - before, file.parent)
    return module


@contextmanager
def _folder_first(folder: Path) -> Iterator[None]:
    """Lets the mapping import modules beside it, and none left over from a mapping in another folder."""
    for name in _beside:
        sys.modules.pop(name, None)
    _beside.clear()
    importlib.invalidate_caches()
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


def _note_modules_beside(names: set[str], folder: Path) -> None:
    # Pickled by reference, a function of these modules could not be found by a worker, whose path is not
    # ours.
    from pyspark import cloudpickle

    for name in sorted(names):
        module = sys.modules.get(name)
        origin = getattr(module, "__file__", None)
        if module is not None and origin and Path(origin).resolve().is_relative_to(folder):
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
            if not name.startswith("migration_mapping_"):
                _beside[name] = Path(origin)


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
            remedy="move the line into the function that needs it",
        )
    if isinstance(error, ImportError):
        return MappingError(
            f"{file.name} imports something that can't be imported",
            where=where,
            cause=cause,
            remedy="install the package into this environment, or put the module beside the mapping file",
        )
    return MappingError(
        f"{file.name} fails while it is loaded",
        where=where,
        cause=cause,
        remedy="correct the line; a mapping file only declares functions and runs no queries when loaded",
    )


def _where(function: Callable[..., object]) -> str:
    name = getattr(function, "__qualname__", repr(function))
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}, function {name}" if code else f"function {name}"


def _name(name: object, role: str, where: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise MappingError(f"{name!r} is no {role}", where=where, remedy="give a name that is not empty")
    return name


def _key(key: object, where: str) -> tuple[str, ...]:
    columns = (key,) if isinstance(key, str) else tuple(key) if isinstance(key, Sequence) else ()
    names = tuple(_name(column, "key column", where) for column in columns)
    if not names or len(set(names)) != len(names):
        raise MappingError(
            "the key names no column, or one column twice",
            where=where,
            cause=f"key={key!r}",
            remedy='give the target\'s key columns, e.g. key="person_id" or key=("order_id", "line_no")',
        )
    return names


def _parameters(function: Callable[..., object], where: str) -> tuple[str, ...]:
    if (
        not callable(function)
        or inspect.iscoroutinefunction(function)
        or inspect.isgeneratorfunction(function)
    ):
        raise MappingError(
            "only a plain function can make a target table",
            where=where,
            remedy="use def and return one DataFrame",
        )
    parameters = inspect.signature(function).parameters.values()
    wrong = [p for p in parameters if p.kind is not p.POSITIONAL_OR_KEYWORD or p.default is not p.empty]
    if wrong or not parameters:
        raise MappingError(
            "the function's parameters can't be read as source tables",
            where=where,
            cause=f"not a plain parameter: {', '.join(map(str, wrong))}" if wrong else "it has no parameter",
            remedy="name each parameter after one source table, without default, * or /",
        )
    return tuple(p.name for p in parameters)


def _sources(sources: Sequence[str] | None, parameters: tuple[str, ...], where: str) -> tuple[str, ...]:
    if sources is None:
        return parameters
    given = (sources,) if isinstance(sources, str) else tuple(sources)
    names = tuple(_name(source, "source table", where) for source in given)
    if len(names) != len(parameters) or len(set(names)) != len(names):
        raise MappingError(
            "sources= must name one source table for each parameter, none twice",
            where=where,
            cause=f"{len(parameters)} parameters {parameters}, sources={names}",
            remedy="give the tables in the order of the parameters",
        )
    return names


def _links(links: object, grain: Grain, where: str) -> tuple[str, ...] | None:
    if links is None:
        return None
    given = (links,) if isinstance(links, str) else tuple(links) if isinstance(links, Sequence) else (links,)
    if grain is None or any(not isinstance(link, str) for link in given):
        raise MappingError(
            "links= can't be used like this",
            where=where,
            cause="there is no grain=" if grain is None else f"links={links!r}",
            remedy='give grain= as well, and links as texts: links=["line.order_id = orders.order_id"]',
        )
    return tuple(str(link) for link in given)


def _role_names(roles: object, grain: Grain, where: str) -> tuple[tuple[str, str], ...]:
    if roles is None:
        return ()
    if grain is None or not isinstance(roles, MappingType):
        raise MappingError(
            "roles= can't be used like this",
            where=where,
            cause="there is no grain=" if grain is None else f"roles={roles!r}",
            remedy='give grain= as well, and roles by name: roles={"manager": "employee"}',
        )
    return tuple((_name(role, "role", where), _name(table, "table", where)) for role, table in roles.items())


def _values(values: object, grain: Grain, where: str) -> tuple[tuple[str, str, Value], ...]:
    if values is None:
        return ()
    given = dict(values) if isinstance(values, MappingType) else {}
    found = [(*str(name).rpartition(".")[::2], function) for name, function in given.items()]
    if grain is None or not found or any(not table or not callable(f) for table, _, f in found):
        raise MappingError(
            "values= can't be used like this",
            where=where,
            cause="there is no grain=" if grain is None else f"values={values!r}",
            remedy='give grain= as well, and functions by name: {"title.code": lambda title: slug(title.title)}',
        )
    wrong = [name for _, name, _ in found if not (name.isascii() and name.isidentifier())]
    if wrong:
        raise MappingError(
            f"the computed value's name {wrong[0]!r} is no plain word",
            where=where,
            remedy="use letters, digits and _ after the table's name",
        )
    return tuple(found)
