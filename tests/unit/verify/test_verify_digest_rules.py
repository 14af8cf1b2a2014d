"""What digests of servers must not be blind to, by the words they are asked with (by values:
test_verify_digest)."""

from __future__ import annotations

import pytest

from migrator.model.table import Column
from verify.readers.chunk_keys import INTEGER, KeyColumn
from verify.readers.mysql.chunks import DIALECT as MYSQL
from verify.readers.postgres.chunks import DIALECT as POSTGRES
from verify.readers.snapshot import TargetColumnText
from verify.tables.hashed_by_servers import text_hash
from verify.tables.hashed_by_servers.digest import Pair, Pushed, pushed
from verify.tables.hashed_by_servers.engines import (
    _MYSQL_CLASSES,
    _OTHERS_OF_MYSQL,
    _POSTGRES_CLASSES,
    HASHING,
)
from verify.tables.hashed_by_servers.sql_value import SqlValue

DIALECTS = {"postgresql": POSTGRES, "mysql": MYSQL, "mariadb": MYSQL}
NAMES = {
    "numeric(12,2)": "numeric",
    "numeric(12,4)": "numeric",
    "double precision": "float8",
    "bigint": "int8",
}


def digest(kinds: tuple[str, str], source: Column | SqlValue, *natives: str) -> Pushed | None:
    pairs = [
        Pair(source, TargetColumnText("d", native, NAMES.get(native, native), False)) for native in natives
    ]
    return pushed(kinds, (DIALECTS[kinds[0]], DIALECTS[kinds[1]]), pairs, [KeyColumn("k", "k", INTEGER)])


@pytest.mark.parametrize(
    "kinds", [("postgresql", "postgresql"), ("mysql", "postgresql"), ("postgresql", "mysql")]
)
def test_a_row_whose_value_is_not_known_gets_a_hash_that_none_can_have(kinds: tuple[str, str]) -> None:
    """Else a value that Spark makes otherwise than the server would be called equal."""
    target = "bigint"
    found = [digest(kinds, SqlValue("(a + 1)", "long", ("(a > 99)",)), target) for _ in range(2)]
    assert found[0] is not None
    assert found[1] is not None
    assert "(a > 99)" in found[0].source
    assert "(a > 99)" not in found[0].target
    assert found[0].source != found[1].source, "the hash in its place is another one each time"
    sure = [digest(kinds, SqlValue("(a + 1)", "long"), target) for _ in range(2)]
    assert sure[0] is not None
    assert "(a > 99)" not in sure[0].source


def test_one_column_that_servers_print_otherwise_leaves_the_whole_row_to_be_read() -> None:
    source = Column("c", "float64", True, "double precision")
    same = ("postgresql", "postgresql")
    assert digest(same, source, "double precision") is not None
    assert digest(same, source, "double precision", "bigint") is None


def test_numbers_with_other_decimals_are_hashed_as_numbers() -> None:
    same = ("postgresql", "postgresql")
    source = Column("c", "decimal(12,2)", True, "numeric(12,2)")
    alike, wider = digest(same, source, "numeric(12,2)"), digest(same, source, "numeric(12,4)")
    assert alike is not None
    assert wider is not None
    assert "trim_scale" not in alike.source
    assert "trim_scale" in wider.source
    assert "trim_scale" in wider.target


def test_what_only_postgresql_can_hash_is_read_beside_another_engine() -> None:
    source = Column("c", "string", True, "interval")
    assert digest(("postgresql", "mysql"), source, "interval") is None


def test_types_of_mysql_are_no_types_of_mariadb() -> None:
    source = Column("c", "string", True, "set('a')")
    assert digest(("mysql", "mysql"), source, "set('a')") is not None
    assert digest(("mysql", "mariadb"), source, "set('a')") is None


def test_a_whole_number_of_the_mapping_is_one_of_64_bits() -> None:
    made = SqlValue("(a * b)", "long")
    found = digest(("postgresql", "postgresql"), made, "bigint")
    assert found is not None
    assert "((a * b))::int8" in found.source


def test_an_engine_without_rules_of_its_own_has_its_rows_read() -> None:
    column = Column("c", "int32", True, "int")
    pair = Pair(column, TargetColumnText("c", "integer", "int4", False))
    for kinds in (("another", "postgresql"), ("mysql", "another")):
        assert pushed(kinds, (MYSQL, POSTGRES), [pair], [KeyColumn("k", "k", INTEGER)]) is None
    assert (
        pushed(("mysql", "postgresql"), (MYSQL, POSTGRES), [pair], [KeyColumn("k", "k", INTEGER)]) is not None
    )


def test_classes_that_unlike_engines_share_are_written_by_both() -> None:
    """Of one kind of server, values may be compared by its own text; of two kinds only by a text both have."""
    native = {
        "postgresql": (*_POSTGRES_CLASSES, "inet", "json", "time without time zone", "money"),
        "mysql": (*_MYSQL_CLASSES, *_OTHERS_OF_MYSQL, "bit(3)", "geometry"),
    }
    of = {kind: {HASHING[kind].declared(type_) for type_ in types} for kind, types in native.items()}
    shared = (of["postgresql"] & of["mysql"]) - {None}
    assert {"integer", "text", "bytea", "numeric"} <= shared
    assert shared <= set(text_hash._POSTGRES) & set(text_hash._MYSQL)
