"""The links between a mapping's tables, derived from its declarations and the source's foreign keys. Pure.

    grain="orders.order_id"                       one column of one of the function's tables
    grain=["film_actor.film_id", "film_actor.actor_id"]     several columns of one table: one grain
    grain=["customer.customer_id", "staff.staff_id"]        columns of several tables: one grain each (a union)
    grain="customer.city = staff.city = supplier.city"      one grain whose values are in several tables
    grain=lambda actor: [F.trim(actor.first_name)]          computed from rows of the first table, to which
    the others
                                                            are linked many-to-one

With ``values={"title.code": lambda title: slug(title.title)}``, ``title.code`` stands for a column in both.

Without ``links=`` the source's foreign keys between the function's tables are the links. They must form a
tree: where two ways lead from one table to another, only the author knows which of them the function takes.
They must compare exactly, as links do: by a key that takes 'a' for 'A' only the author knows how the function
joins.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from migrator.model.reach import VALUE, Node, Reach, Reference, spoken
from migrator.model.table import Column, TableSchema
from transforms.analysis.link_equality import compared_exactly, spoken_type
from transforms.declared_grain import (
    DeclaredGrain,
    GrainProblem,
    check_grain_types,
    columns_of,
    declared_grains,
    named_column,
    value_column,
)
from transforms.registry import TargetMapping

_SIDE = re.compile(r"\s*(?P<role>[^.=]+?)\s*\.\s*(?P<column>[^=]+?)\s*")
_FAMILIES = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "int",
    "float32": "float",
    "float64": "float",
}


@dataclass(frozen=True, slots=True)
class _Link:
    """Two roles whose rows belong together where these columns are equal."""

    left: str
    left_columns: tuple[str, ...]
    right: str
    right_columns: tuple[str, ...]

    def __str__(self) -> str:
        pairs = zip(self.left_columns, self.right_columns, strict=True)
        return " and ".join(f"{self.left}.{spoken(a)} = {self.right}.{spoken(b)}" for a, b in pairs)

    def turned(self) -> _Link:
        return _Link(self.right, self.right_columns, self.left, self.left_columns)


def reaches(
    target: TargetMapping, schemas: Mapping[str, TableSchema], references: Iterable[Reference]
) -> tuple[Reach, ...]:
    """The reach of each of a target's grains.

    Args:
        target: with ``grain``.
        schemas: at least the tables of ``target.sources``.
        references: foreign keys of the source.

    Raises:
        GrainProblem: naming the table or link at fault, and what to declare.
    """
    schemas = _with_values(target, schemas)
    roles = _roles(target, schemas)
    grains = declared_grains(target, schemas)
    check_grain_types(grains, schemas)
    if target.links is None:
        links = _from_references(target.sources, schemas, references)
    else:
        links = [_declared(target, text, roles) for text in target.links]
    found = tuple(_reach(target, roles, links, grain) for grain in grains)
    met = {node.role for reach in found for node in reach.nodes}
    lost = [role for role in roles if role not in met]
    if lost:
        grain = " and ".join(reach.nodes[index].role for reach in found for index in reach.roots())
        known = "; ".join(map(str, links)) or "none"
        raise GrainProblem(
            f"nothing links table {', '.join(lost)} to the grain's table {grain}",
            f"links {'that are declared' if target.links is not None else 'from foreign keys'}: {known}",
            f"declare them all: links=[{', '.join(_quoted(links, lost[0], grain))}]",
        )
    return found


def _with_values(target: TargetMapping, schemas: Mapping[str, TableSchema]) -> dict[str, TableSchema]:
    """The tables with a column for each computed value."""
    found = {name: schemas[name] for name in target.sources}
    for table, name, _ in target.values:
        if table not in found:
            raise GrainProblem(
                f"the value '{table}.{name}' is of no table of the function",
                f"it reads {', '.join(target.sources)}",
                "write table.name, with a parameter of the function as the table",
            )
        if name in found[table].names():
            raise GrainProblem(
                f"the value '{table}.{name}' has the name of a column", "", "give it another name"
            )
        more = Column(value_column(target.name, name), "int64", True, "bigint")
        found[table] = replace(found[table], columns=(*found[table].columns, more))
    return found


def _quoted(links: Sequence[_Link], lost: str, grain: str) -> list[str]:
    return [*(f'"{link}"' for link in links), f'"{lost}.<column> = {grain.split(" ")[0]}.<column>"']


def _roles(target: TargetMapping, schemas: Mapping[str, TableSchema]) -> dict[str, TableSchema]:
    roles = {name: schemas[name] for name in target.sources}
    for role, table in target.roles:
        if table not in target.sources:
            cause = f"it reads {', '.join(target.sources)}"
            raise GrainProblem(
                f"the role {role!r} names table {table!r}, which the function doesn't read",
                cause,
                "name a table among the function's parameters",
            )
        roles[role] = schemas[table]
    return roles


def _from_references(
    sources: Sequence[str], schemas: Mapping[str, TableSchema], references: Iterable[Reference]
) -> list[_Link]:
    """The links by foreign keys. Raises ``GrainProblem`` for one whose key joins what a link tells apart."""
    names = {schemas[name].id: name for name in sources}
    between = [one for one in sorted(set(references)) if one.child in names and one.parent in names]
    links = [_Link(names[one.child], one.columns, names[one.parent], one.parent_columns) for one in between]
    for link, reference in zip(links, between, strict=True):
        pairs = zip(
            columns_of(schemas[link.left], link.left_columns),
            columns_of(schemas[link.right], link.right_columns),
            strict=True,
        )
        for a, b in pairs:
            if reference.own_equality or not compared_exactly(a, b):
                raise _wider_key(link, a, b, links)
    return links


def _wider_key(link: _Link, a: Column, b: Column, links: Sequence[_Link]) -> GrainProblem:
    child, parent = f"{link.left}.{a.name}", f"{link.right}.{b.name}"
    name, known = f"{a.name}_joined", ", ".join(f'"{one}"' for one in links)
    return GrainProblem(
        f"the foreign key {link} may join values that a link tells apart",
        f"{child} is {spoken_type(a)}, {parent} is {spoken_type(b)}: values of other spelling (case, accents, blanks"
        " at the end, digits) may be one to the server, and links compare exactly",
        f"declare what the function joins by. If it compares the columns as they are: links=["
        f"{known}]. If it computes what it compares, give that a name on both"
        f' sides: values={{"{link.left}.{name}": lambda t: F.lower(t["{a.name}"]), "{link.right}.{name}":'
        f' lambda t: F.lower(t["{b.name}"])}}, and write {link.left}.{name} = {link.right}.{name} in links=',
    )


def _declared(target: TargetMapping, text: str, roles: Mapping[str, TableSchema]) -> _Link:
    ends: list[tuple[str, list[str], str, list[str]]] = []
    for condition in re.split(r"\s+and\s+", text.strip(), flags=re.IGNORECASE):
        left, equals, right = condition.partition("=")
        sides = [_SIDE.fullmatch(side) for side in (left, right)]
        if not equals or sides[0] is None or sides[1] is None:
            raise GrainProblem(f"link {text!r} can't be read", "", 'write "child.column = parent.column"')
        named = []
        for side in sides:
            role, column = side.group("role", "column")  # type: ignore[union-attr]
            column = named_column(target, roles[role], column) if role in roles else column
            _check_column(text, role, column, roles)
            named.append((role, column))
        (role_a, column_a), (role_b, column_b) = named
        _check_types(text, roles[role_a], column_a, roles[role_b], column_b)
        ends.append((role_a, [column_a], role_b, [column_b]))
    first = ends[0]
    if any((one[0], one[2]) != (first[0], first[2]) for one in ends):
        cause = "its conditions name other tables, or the same ones in another order"
        raise GrainProblem(
            f"link {text!r} is more than one link", cause, "write one link for each pair of tables"
        )
    if first[0] == first[2]:
        raise GrainProblem(
            f"link {text!r} links {first[0]!r} to itself",
            "rows of one table in two parts need two names",
            f'name the other part: roles={{"other": "{first[0]}"}} and link to "other"',
        )
    left_columns = tuple(column for one in ends for column in one[1])
    return _Link(first[0], left_columns, first[2], tuple(column for one in ends for column in one[3]))


def _check_column(text: str, role: str, column: str, roles: Mapping[str, TableSchema]) -> None:
    if role not in roles:
        raise GrainProblem(
            f"link {text!r} names {role!r}, which is neither a table of the function nor a role",
            f"known: {', '.join(roles)}",
            "correct the name, or add it to roles=",
        )
    if column not in roles[role].names():
        known = f"it has {', '.join(roles[role].names())}"
        raise GrainProblem(f"link {text!r}: {role} has no column {column!r}", known, "correct the name")


def _check_types(text: str, a: TableSchema, column_a: str, b: TableSchema, column_b: str) -> None:
    if column_a.startswith(VALUE) != column_b.startswith(VALUE):
        raise GrainProblem(
            f"link {text!r} compares a computed value with a column",
            "of a computed value a hash is kept",
            "declare a value for the other side as well, with values=",
        )
    types = [
        next(column.type for column in schema.columns if column.name == name)
        for schema, name in ((a, column_a), (b, column_b))
    ]
    families = {_FAMILIES.get(kind, kind.partition("(")[0]) for kind in types}
    if len(families) > 1 and families != {"int", "decimal"}:
        raise GrainProblem(
            f"link {text!r} compares {types[0]} with {types[1]}",
            "values of these types are never looked up by each other",
            "link columns of one type, or declare a coarser grain that needs no such link",
        )


def _reach(
    target: TargetMapping,
    roles: Mapping[str, TableSchema],
    links: Sequence[_Link],
    grain: DeclaredGrain,
) -> Reach:
    """Walks the links from the grain's tables outwards. Raises ``GrainProblem`` where two ways meet."""
    (table, columns), *others = grain.items()
    nodes = [Node(table, roles[table]), *(Node(one, roles[one], columns=own) for one, own in others)]
    places = {node.role: place for place, node in enumerate(nodes)}
    used: set[int] = set()
    for place, node in enumerate(nodes):  # grows while it is walked
        for number, link in enumerate(links):
            if number in used or node.role not in (link.left, link.right):
                continue
            used.add(number)
            outward = link if link.left == node.role else link.turned()
            role = outward.right
            if role in places:
                raise _two_ways(target, nodes[places[role]].role, node.role, links, grain.keys())
            places[role] = len(nodes)
            nodes.append(Node(role, roles[role], place, outward.right_columns, outward.left_columns))
    return Reach(columns, tuple(nodes), "" if columns else f"{target.name} grain")


def _two_ways(
    target: TargetMapping, a: str, b: str, links: Sequence[_Link], shared: Collection[str]
) -> GrainProblem:
    pair = f"table {a} with itself" if a == b else f"tables {a} and {b}"
    if {a, b} <= set(shared):
        remedy = (
            "they share the grain: declare with links= what the function joins by other columns (links=[] for none),"
            f" with another name for the part that is joined so: roles={{'other_{b}': '{b}'}}"
        )
    elif target.links is not None:
        remedy = f'give one of them another name for its second part: roles={{"second_{b}": "{b}"}}'
    else:
        remedy = (
            "declare with links= those that the function joins by, and a second part of a table with roles=; "
            f"known: {', '.join(repr(str(link)) for link in links)}"
        )
    return GrainProblem(f"more than one way links {pair}", "; ".join(map(str, links)), remedy)
