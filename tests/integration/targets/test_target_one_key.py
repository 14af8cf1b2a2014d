"""Keys that differ and that the target takes for one: the rows are right, or both are named, in dump and stream."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, seed, settings

from migrator.errors import TargetError
from tests.drawn import GENERATED, SEED
from tests.integration import target_bench, target_bench_mysql
from tests.integration.key_spellings import (
    MARIADB,
    MYSQL,
    POSTGRES,
    POSTGRES_EXTENSIONS,
    Batch,
    Kind,
    Repair,
    histories,
    one_key_twice,
    repairs,
    set_up,
)
from tests.servers import MariaDBServer, PostgresServer, fresh_database

pytestmark = pytest.mark.integration
Bench = target_bench.Bench | target_bench_mysql.Bench
FEW, MANY = 5, 12
examples = pytest.mark.parametrize("histories_drawn", [FEW, pytest.param(MANY, marks=pytest.mark.slow)])
"""How many histories of each kind of key are drawn, and repairs in proportion."""


def table(kind: Kind, rows: Any) -> pa.Table:
    """Mapped rows of spellings and numbers."""
    pairs = list(rows.items()) if isinstance(rows, dict) else list(rows)
    keys = pa.array([kind.arrow(one) for one, _ in pairs], kind.arrow_type)
    return pa.table({"k": keys, "v": pa.array([number for _, number in pairs], pa.int32())})


def apply(bench: Bench, kind: Kind, batch: Batch, name: str) -> None:
    """One batch, new rows strict once the dump is over."""
    part = bench.part(
        name, table(kind, batch.chunk), table(kind, batch.before), table(kind, batch.after), strict=batch.done
    )
    bench.apply(part, done=batch.done)


def refusal(bench: Bench, kind: Kind, batch: Batch, name: str) -> TargetError | None:
    """What a batch is refused with."""
    try:
        apply(bench, kind, batch, name)
    except TargetError as error:
        return error
    return None


def check(bench: Bench, kind: Kind, name: str, drawn: int) -> None:
    """Each batch of drawn histories is right, or refused with both keys or the collation named."""
    seen = {"right": 0, "refused": 0}

    @seed(SEED)
    @settings(GENERATED, max_examples=drawn)
    @given(histories(kind.groups))
    def held(history: list[Batch]) -> None:
        with bench.database.connect() as connection:
            cursor = connection.cursor()
            cursor.execute(f"DELETE FROM {name}")
            connection.commit()
            for batch in history:
                twice = one_key_twice(batch.delivered, kind.groups)
                error = refusal(bench, kind, batch, name)
                if (
                    error is not None
                ):  # at the latest when both are delivered; a chunk has both before its netting
                    assert twice or one_key_twice(batch.chunk, kind.groups), error
                    assert "for one" in str(error) or "may take different" in str(error), error
                    assert "COLLATE" not in kind.declared or "by collation" in str(error), error
                    seen["refused"] += 1
                    return
                assert not twice, batch
                cursor.execute(f"SELECT {kind.shown.replace('{0}', 'k')}, v FROM {name}")
                assert dict(cursor.fetchall()) == {kind.printed(k): v for k, v in batch.delivered.items()}
                connection.commit()
                seen["right"] += 1

    held()
    assert seen["right"] > drawn - 2
    assert not any(len(group) > 1 for group in kind.groups) or seen["refused"] > drawn // 4 - 1


def check_repairs(bench: Bench, kind: Kind, name: str, drawn: int) -> None:
    """After a repair of the keys that differ as text the target holds the source's rows, spelled as there."""

    def held(repair: Repair) -> None:
        with bench.database.connect() as connection:
            cursor = connection.cursor()
            cursor.execute(f"DELETE FROM {name}")
            connection.commit()
            bench.apply(bench.part(name, table(kind, repair.target)))
            doubted = table(kind, [(key, 0) for key in repair.doubted]).select(["k"])
            part = bench.part(name, table(kind, repair.chunk))
            bench.apply(replace(part, doubted=doubted))
            cursor.execute(f"SELECT {kind.shown.replace('{0}', 'k')}, v FROM {name}")
            assert dict(cursor.fetchall()) == {kind.printed(k): v for k, v in repair.source.items()}, repair
            connection.commit()

    several = [group for group in kind.groups if len(group) > 1]
    for otherwise in ([], several) if several else ([],):
        seed(SEED)(
            settings(GENERATED, max_examples=drawn // 2 - 1)(given(repairs(kind.groups, otherwise))(held))
        )()


@pytest.fixture(scope="module")
def postgres_bench(postgres: PostgresServer) -> Iterator[Bench]:
    with fresh_database(postgres, "new") as database, target_bench.bench(database) as made:
        yield made


@examples
@pytest.mark.parametrize("kind", POSTGRES, ids=lambda kind: kind.name)
def test_rows_are_right_or_named_in_postgres(postgres_bench: Bench, kind: Kind, histories_drawn: int) -> None:
    run_in_postgres(postgres_bench, kind, histories_drawn)


@examples
@pytest.mark.parametrize("kind", POSTGRES_EXTENSIONS, ids=lambda kind: kind.name)
def test_rows_are_right_or_named_by_an_extensions_type(
    postgres_bench: Bench, kind: Kind, histories_drawn: int
) -> None:
    if not postgres_bench.database.query(
        "SELECT FROM pg_available_extensions WHERE name = %s", [kind.declared]
    ):
        pytest.skip("this server's packages have no citext (Debian's have)")
    run_in_postgres(postgres_bench, kind, histories_drawn)


def run_in_postgres(bench: Bench, kind: Kind, drawn: int) -> None:
    name = f"t_{kind.name.replace(' ', '_')}_{drawn}"  # one database for the whole module
    primary = "" if kind.index else " PRIMARY KEY"
    set_up(bench.database, kind)
    bench.database.execute(f"CREATE TABLE {name} (k {kind.declared}{primary}, v int)")
    if kind.index:
        bench.database.execute(kind.index.format(table=name))
    check(bench, kind, name, drawn)
    check_repairs(bench, kind, name, drawn)


@pytest.fixture(scope="module")
def mysql_bench(mysql: MariaDBServer) -> Iterator[Bench]:
    with fresh_database(mysql, "new") as database, target_bench_mysql.bench(database) as made:
        yield made


@pytest.fixture(scope="module")
def mariadb_bench(mariadb: MariaDBServer) -> Iterator[Bench]:
    with fresh_database(mariadb, "new") as database, target_bench_mysql.bench(database) as made:
        yield made


def run_in_mysql(bench: Bench, kind: Kind, drawn: int) -> None:
    name = f"t_{kind.name}_{drawn}"
    bench.database.execute(f"CREATE TABLE {name} (k {kind.declared} PRIMARY KEY, v int)")
    check(bench, kind, name, drawn)
    check_repairs(bench, kind, name, drawn)


@pytest.mark.slow
@examples
@pytest.mark.parametrize("kind", MYSQL, ids=lambda kind: kind.name)
def test_rows_are_right_or_named_in_mysql(mysql_bench: Bench, kind: Kind, histories_drawn: int) -> None:
    run_in_mysql(mysql_bench, kind, histories_drawn)


@examples
@pytest.mark.parametrize("kind", MARIADB, ids=lambda kind: kind.name)
def test_rows_are_right_or_named_in_mariadb(mariadb_bench: Bench, kind: Kind, histories_drawn: int) -> None:
    run_in_mysql(mariadb_bench, kind, histories_drawn)


@pytest.mark.parametrize("rows", [2, 7, 900])
@pytest.mark.parametrize("given", ["mysql_bench", "mariadb_bench"])
def test_both_of_two_keys_of_one_chunk_are_named_wherever_they_stand(
    request: pytest.FixtureRequest, given: str, rows: int
) -> None:
    """What the server prints of a duplicate is one of them alone. 900 rows are loaded as a file."""
    it: Bench = request.getfixturevalue(given)
    name = f"t_both_{rows}"
    it.database.execute(
        f"CREATE TABLE {name} (k varchar(20) COLLATE utf8mb4_general_ci, n int, v int, PRIMARY KEY (n, k))"
    )
    for one, other in {(0, rows - 1), (max(rows - 3, 0) // 2, rows - 1), (0, 1)}:
        keys = [f"key {number}" for number in range(rows)]
        keys[one], keys[other] = "the same", "The SAME"
        chunk = pa.table(
            {"k": keys, "n": pa.array([5] * rows, pa.int32()), "v": pa.array([1] * rows, pa.int32())}
        )
        with pytest.raises(TargetError, match="takes two keys of") as caught:
            it.apply(it.part(name, chunk))
        assert caught.value.what.endswith("for one: n=5, k='the same' and n=5, k='The SAME'")
        assert "by collation utf8mb4_general_ci" in caught.value.cause
