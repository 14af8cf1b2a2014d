"""The registry that a user's mapping fills: one function per target table, its parameters named after source tables.

    mapping = Mapping()

    @mapping.target("person", key="person_id")
    def person(customer: DataFrame) -> DataFrame: ...

Every mistake a user can make here becomes a :class:`~migrator.errors.MappingError` that names file and line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Mapping as MappingType
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from migrator.errors import MappingError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

F = TypeVar("F", bound="Callable[..., DataFrame]")
Value = Callable[["DataFrame"], object]
Grain = str | Sequence[str] | Callable[..., object] | None
_holding: ContextVar[bool] = ContextVar("_holding", default=False)


@dataclass(frozen=True, slots=True)
class TargetMapping:
    """The definition of one target table.

    Attributes:
        name: target table.
        key: target key columns, in order; never empty.
        grain: what a joined or aggregated target depends on, as given; None for a row-wise one.
        function: takes one DataFrame per source table, by position, and returns the target's rows.
        sources: source tables in the order of the function's parameters; never empty.
        links: how a joined target's tables belong together, as declared; None leaves it to the foreign keys.
        roles: further names for tables that take part more than once, with the table.
        values: per computed value its table, its name, and the function of the table's rows.
        surrogates: target columns that hold numbers instead of what the function gives, each with its key map.
    """

    name: str
    key: tuple[str, ...]
    grain: Grain
    function: Callable[..., DataFrame]
    sources: tuple[str, ...]
    links: tuple[str, ...] | None = None
    roles: tuple[tuple[str, str], ...] = ()
    values: tuple[tuple[str, str, Value], ...] = ()
    surrogates: tuple[tuple[str, str], ...] = ()

    def where(self) -> str:
        """The function with file and line, for messages."""
        return _where(self.function)

    def where_named(self, table: str) -> str:
        """Tells where one of the source tables is named: of a query its line, else the function."""
        place_of = getattr(self.function, "where_named", None)
        return str(place_of(table)) if callable(place_of) else self.where()


class Mapping:
    """The target tables of a migration, in the order they were declared.

    Attributes:
        aside: ``.sql`` files beside the mapping that hold none, to be named to the user.
        gaps: target tables that are not mapped yet, and why.
        nexts: second functions of row-wise targets, by target table (see ``next``).
    """

    def __init__(self) -> None:
        self.aside: tuple[Path, ...] = ()
        self.gaps: dict[str, str] = {}
        self._order: list[str | MappingError] = []
        self._targets: dict[str, TargetMapping] = {}
        self.nexts: dict[str, TargetMapping] = {}

    @property
    def targets(self) -> tuple[TargetMapping, ...]:
        """All target mappings in order of declaration."""
        return tuple(self._targets.values())

    @property
    def declared(self) -> list[TargetMapping | MappingError]:
        """Target mappings, and what is wrong where one can't be declared, as they stand in the files."""
        found = [self._targets.get(one) if isinstance(one, str) else one for one in self._order]
        return [one for one in found if one is not None]

    @property
    def broken(self) -> list[MappingError]:
        """Problems of declarations that were held, in the order of the files."""
        return [one for one in self.declared if isinstance(one, MappingError)]

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
        surrogates: MappingType[str, str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> Callable[[F], F]:
        """Declares that the decorated function makes target table ``name``.

        Args:
            name: target table.
            key: key column or columns of the target.
            grain: for joined or aggregated targets: what a target row depends on (see
                ``transforms.analysis.grain``).
            links: ``"child.column = parent.column"`` for every link the function joins by, where the source's
                foreign keys don't say it or say too much.
            roles: further names for source tables that take part more than once, to be used in ``links``.
            values: values computed from single rows, to be used in ``grain`` and ``links`` like columns:
                ``{"title.code": lambda title: slug(title.title)}``.
            surrogates: columns whose old keys become numbers of a key map, with the map's name:
                ``{"person_id": "person"}``.
            sources: source tables in parameter order, where a table's name is no Python name.

        Raises:
            MappingError: empty name or key, a target declared twice, parameters that can't be source tables.
        """

        options = {"grain": grain, "links": links, "roles": roles, "values": values, "surrogates": surrogates}
        return self._declaring(self.add, name, key, sources, options)

    def next(
        self,
        name: str,
        *,
        key: str | Sequence[str],
        grain: Grain = None,
        surrogates: MappingType[str, str] | None = None,
        sources: Sequence[str] | None = None,
    ) -> Callable[[F], F]:
        """Declares the function that is to make the row-wise target table ``name`` from `migrator remap` on.

        Until then ``target``'s function makes it, and this one is only checked. Arguments, errors: see ``target``.
        """
        options = {"grain": grain, "surrogates": surrogates}
        return self._declaring(self.add_next, name, key, sources, options)

    def _declaring(
        self,
        add: Callable[[TargetMapping], None],
        name: str,
        key: str | Sequence[str],
        sources: Sequence[str] | None,
        options: dict[str, Any],
    ) -> Callable[[F], F]:
        def register(function: F) -> F:
            where = _where(function)
            with self.held():
                tables = _sources(sources, _parameters(function, where), where)
                add(declared(name, key=key, function=function, where=where, parameters=tables, **options))
            return function

        return register

    def add_next(self, target: TargetMapping) -> None:
        """Adds a function that is to follow. Raises ``MappingError`` if the target table has one."""
        if target.name in self.nexts:
            raise MappingError(
                f"target table {target.name!r} has two next functions",
                where=target.where(),
                cause=f"the other is {self.nexts[target.name].where()}",
                remedy="keep the one that is to come into force",
            )
        self.nexts[target.name] = target

    def gap(self, table: str, why: str) -> None:
        """Marks a target table as not mapped yet: no run starts until this line is deleted, also where a function
        makes it."""
        self.gaps[table] = why

    def add(self, target: TargetMapping) -> None:
        """Adds a mapping. Raises ``MappingError`` if the target table has one."""
        if target.name in self._targets:
            raise MappingError(
                f"target table {target.name!r} is mapped twice",
                where=target.where(),
                cause=f"it is already mapped by {self._targets[target.name].where()}",
                remedy="keep one function or query per target table; combine sources with unionByName",
            )
        self._targets[target.name] = target
        self._order.append(target.name)

    def hold(self, error: MappingError) -> None:
        """Adds what is wrong with a declaration."""
        self._order.append(error)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps a ``MappingError`` of the block in ``declared``, while somebody collects them; else it goes on."""
        try:
            yield
        except MappingError as error:
            if not _holding.get():
                raise
            self.hold(error)


@contextmanager
def holding() -> Iterator[None]:
    """Within it a declaration that can't be used doesn't end the loading of the mapping: see ``Mapping.broken``."""
    before = _holding.set(True)
    try:
        yield
    finally:
        _holding.reset(before)


def declared(
    name: str,
    *,
    key: str | Sequence[str],
    function: Callable[..., DataFrame],
    where: str,
    parameters: tuple[str, ...],
    grain: Grain,
    links: str | Sequence[str] | None = None,
    roles: MappingType[str, str] | None = None,
    values: MappingType[str, Value] | None = None,
    surrogates: MappingType[str, str] | None = None,
) -> TargetMapping:
    """A target mapping from what was declared, in Python or above a query. Raises ``MappingError``."""
    return TargetMapping(
        name=_name(name, "target table", where),
        key=_key(key, where),
        grain=grain,
        function=function,
        sources=parameters,
        links=_links(links, grain, where),
        roles=_role_names(roles, grain, parameters, where),
        values=_values(values, grain, where),
        surrogates=_surrogates(surrogates, where),
    )


def _where(function: Callable[..., object]) -> str:
    written = getattr(function, "where", None)
    if callable(written):  # a query knows its file and line
        return str(written())
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
    tables = (sources,) if isinstance(sources, str) else tuple(sources)
    names = tuple(_name(table, "source table", where) for table in tables)
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
    texts = (links,) if isinstance(links, str) else tuple(links) if isinstance(links, Sequence) else (links,)
    if grain is None or any(not isinstance(link, str) for link in texts):
        raise MappingError(
            "links= can't be used like this",
            where=where,
            cause="there is no grain=" if grain is None else f"links={links!r}",
            remedy='give grain= as well, and links as texts: links=["line.order_id = orders.order_id"]',
        )
    return tuple(str(link) for link in texts)


def _role_names(
    roles: object, grain: Grain, parameters: tuple[str, ...], where: str
) -> tuple[tuple[str, str], ...]:
    if roles is None:
        return ()
    if grain is None or not isinstance(roles, MappingType):
        raise MappingError(
            "roles= can't be used like this",
            where=where,
            cause="there is no grain=" if grain is None else f"roles={roles!r}",
            remedy='give grain= as well, and roles by name: roles={"manager": "employee"}',
        )
    for role in (one for one in roles if one in parameters):
        raise MappingError(
            f"the role {role!r} is a table that the function reads",
            where=where,
            cause=f"a role is a further name of {roles[role]!r} for links=; the function's parameters are tables",
            remedy=f"leave {role} out of the parameters and take {roles[role]} for it, or give the role another name",
        )
    return tuple((_name(role, "role", where), _name(table, "table", where)) for role, table in roles.items())


def _values(values: object, grain: Grain, where: str) -> tuple[tuple[str, str, Value], ...]:
    if values is None:
        return ()
    functions = dict(values) if isinstance(values, MappingType) else {}
    found = [(*str(name).rpartition(".")[::2], function) for name, function in functions.items()]
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


def _surrogates(surrogates: object, where: str) -> tuple[tuple[str, str], ...]:
    if surrogates is None:
        return ()
    if not isinstance(surrogates, MappingType) or not surrogates:
        raise MappingError(
            "surrogates= can't be used like this",
            where=where,
            cause=f"surrogates={surrogates!r}",
            remedy='give target columns with the name of their key map: surrogates={"person_id": "person"}',
        )
    return tuple(
        (_name(c, "target column", where), _name(n, "key map", where)) for c, n in surrogates.items()
    )
