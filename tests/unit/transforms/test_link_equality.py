"""Which foreign keys compare as links do."""

from __future__ import annotations

from typing import Any

import pytest

from migrator.model.reach import Reference
from migrator.model.table import NONDETERMINISTIC, Column, TableId, TableSchema
from transforms.analysis.grain import reaches
from transforms.analysis.link_equality import compared_exactly
from transforms.declared_grain import GrainProblem
from transforms.registry import Mapping

Kind = tuple[str, str, str]
TEXT: Kind = ("string", "text", "")
EXACT: list[tuple[Kind, Kind]] = [
    (("int32", "integer", ""), ("int64", "bigint", "")),
    (("decimal(20,0)", "bigint unsigned", ""), ("decimal(20,0)", "bigint unsigned", "")),
    (("decimal(10,2)", "numeric(10,2)", ""), ("decimal(12,2)", "numeric(12,2)", "")),
    (("bool", "boolean", ""), ("bool", "boolean", "")),
    (("date", "date", ""), ("date", "date", "")),
    (("timestamp", "timestamp(3) without time zone", ""), ("timestamp", "timestamp without time zone", "")),
    (("string", "datetime(3)", ""), ("string", "datetime(3)", "")),
    (TEXT, ("string", "character varying(20)", "de_DE")),
    (("string", "uuid", ""), ("string", "uuid", "")),
    (("string", "character(4)", ""), ("string", "character(4)", "C")),
    (("binary", "bytea", ""), ("binary", "bytea", "")),
    (("binary", "binary(16)", ""), ("binary", "binary(16)", "")),
    (("binary", "varbinary(16)", ""), ("binary", "varbinary(16)", "")),
    (("string", "char(4)", "latin1_bin"), ("string", "char(4)", "latin1_bin")),
    (("string", "varchar(9)", "utf8mb4_0900_bin"), ("string", "varchar(20)", "utf8mb4_0900_bin")),
    (("string", "varchar(9)", "utf8mb4_nopad_bin"), ("string", "varchar(9)", "utf8mb4_nopad_bin")),
]
WIDER: list[tuple[Kind, Kind]] = [
    (("int32", "integer", ""), ("decimal(10,2)", "numeric(10,2)", "")),
    (("decimal(10,2)", "numeric(10,2)", ""), ("decimal(10,3)", "numeric(10,3)", "")),
    (("float64", "double", ""), ("float64", "double", "")),
    (("string", "numeric", ""), ("string", "numeric", "")),
    (("string", "citext", ""), ("string", "citext", "")),
    (("string", "interval", ""), ("string", "interval", "")),
    (("string", "datetime(3)", ""), ("string", "datetime(6)", "")),
    (("string", "jsonb", ""), ("string", "jsonb", "")),
    (TEXT, ("string", "text", f"folded {NONDETERMINISTIC}")),
    (("string", "character(4)", ""), ("string", "character(5)", "")),
    (("string", "character(4)", ""), TEXT),
    (("binary", "binary(16)", ""), ("binary", "binary(20)", "")),
    (("string", "char(4)", "latin1_swedish_ci"), ("string", "char(4)", "latin1_swedish_ci")),
    (("string", "varchar(9)", "utf8mb4_bin"), ("string", "varchar(9)", "utf8mb4_bin")),
    (("string", "varchar(9)", "utf8mb4_0900_as_cs"), ("string", "varchar(9)", "utf8mb4_0900_as_cs")),
    (("string", "enum('a','b')", "utf8mb4_bin"), ("string", "enum('a','b')", "utf8mb4_bin")),
    (("string", "a type of tomorrow", ""), ("string", "a type of tomorrow", "")),
]


def column(name: str, kind: Kind) -> Column:
    return Column(name, kind[0], False, kind[1], kind[2])


@pytest.mark.parametrize(("child", "parent"), EXACT, ids=str)
def test_what_is_equal_to_the_server_only_if_it_is_to_us(child: Kind, parent: Kind) -> None:
    assert compared_exactly(column("a", child), column("b", parent))
    assert compared_exactly(column("b", parent), column("a", child))


@pytest.mark.parametrize(("child", "parent"), WIDER, ids=str)
def test_what_may_be_equal_to_the_server_alone(child: Kind, parent: Kind) -> None:
    assert not compared_exactly(column("a", child), column("b", parent))
    assert not compared_exactly(column("b", parent), column("a", child))


def linked(kind: Kind, own_equality: bool = False, links: list[str] | None = None) -> int:
    """How many nodes a mapping of two tables reaches, which a foreign key of such columns links."""
    schemas = {
        "item": TableSchema(
            TableId("old", "item"), (Column("id", "int32", False, "int"), column("code", kind)), ("id",)
        ),
        "kind": TableSchema(TableId("old", "kind"), (column("code", kind),), ("code",)),
    }
    key = Reference(schemas["item"].id, ("code",), schemas["kind"].id, ("code",), own_equality)
    mapping = Mapping()

    @mapping.target("t", key="id", grain="item.id", links=links)
    def t(item: object, kind: object) -> Any: ...

    [reach] = reaches(mapping["t"], schemas, [key])
    return len(reach.nodes)


def test_a_wider_key_is_refused_with_what_to_declare_and_goes_once_it_is() -> None:
    kind = ("string", "varchar(9)", "utf8mb4_general_ci")
    with pytest.raises(GrainProblem) as caught:
        linked(kind)
    assert "item.code is varchar(9) by utf8mb4_general_ci" in caught.value.cause
    assert 'links=["item.code = kind.code"]' in caught.value.remedy
    assert linked(kind, links=["item.code = kind.code"]) == 2
    assert linked(TEXT) == 2


def test_a_key_by_somebodys_operator_is_refused() -> None:
    with pytest.raises(GrainProblem, match="may join values"):
        linked(TEXT, own_equality=True)
